"""Operator set versions: what a model imports, and bringing old models up to the oldest version that is supported."""

from __future__ import annotations

import onnx
import onnx.helper

from raptor_core.diagnostics import RaptorError
from raptor_core.frontend.tensors import TensorReader

OLDEST_OPSET = 9
"""The oldest version of the default operator set; older models are converted to it."""


def normalised_domain(domain: str) -> str:
    """The name of an operator domain; the default one is the empty string."""
    return "" if domain == "ai.onnx" else domain


def imported_versions(model: onnx.ModelProto, where: str) -> dict[str, int]:
    """The version of every imported operator set. Raises RaptorError for contradictions and versions not yet known."""
    versions: dict[str, int] = {}
    for item in model.opset_import:
        domain = normalised_domain(item.domain)
        if versions.setdefault(domain, item.version) != item.version:
            raise RaptorError(
                "invalid-model",
                f"the model imports two versions of the operator set '{domain or 'ai.onnx'}'",
                where=where,
                reason=f"{versions[domain]} and {item.version}",
            )
    newest = onnx.defs.onnx_opset_version()
    if versions.get("", 0) > newest:
        raise RaptorError(
            "unsupported-version",
            f"the model uses operator set {versions['']}, and the installed onnx {onnx.__version__} "
            f"knows versions up to {newest}",
            where=where,
            hint="install a newer onnx, or export the model for an older operator set",
        )
    return versions


def with_supported_version(model: onnx.ModelProto, where: str, reader: TensorReader) -> onnx.ModelProto:
    """The model in at least OLDEST_OPSET. Raises RaptorError for one that is older and cannot be converted."""
    versions = imported_versions(model, where)
    version = versions.get("", 1 if not versions else OLDEST_OPSET)
    if version >= OLDEST_OPSET:
        return model
    import onnx.version_converter

    embedded = onnx.ModelProto()
    embedded.CopyFrom(model)
    reader.embed(embedded.graph)
    _list_initializers(embedded.graph)
    try:
        return onnx.version_converter.convert_version(embedded, OLDEST_OPSET)
    except Exception as error:
        raise RaptorError(
            "unsupported-version",
            f"the model uses operator set {version}; versions {OLDEST_OPSET} to "
            f"{onnx.defs.onnx_opset_version()} are supported",
            where=where,
            reason=f"converting it failed: {_first_line(error)}",
            hint=f"export the model for operator set {OLDEST_OPSET} or newer",
        ) from error


def _list_initializers(graph: onnx.GraphProto) -> None:
    """List every initializer among the graph's inputs, as models of old operator sets must."""
    listed = {info.name for info in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in listed:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))


def with_functions_inlined(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The model with calls of its own functions replaced by their bodies."""
    if not model.functions:
        return model
    import onnx.inliner

    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:
        raise RaptorError(
            "invalid-model",
            "the model's own functions cannot be inlined",
            where=where,
            reason=_first_line(error),
            hint="export the model without local functions",
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
