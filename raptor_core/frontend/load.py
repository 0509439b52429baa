"""An ONNX model as a module of the graph stage: the whole of the frontend, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from raptor_core.diagnostics import RaptorError
from raptor_core.frontend.batch_norm import fold_batch_norm
from raptor_core.frontend.convert import check_input_types, make_module, with_properties
from raptor_core.frontend.model_file import ModelFile, read_model
from raptor_core.frontend.problems import HasLowering
from raptor_core.frontend.shapes import bind_inputs, resolve_symbols
from raptor_core.frontend.structure import check_names, live_nodes, named_nodes, sorted_nodes, used_values
from raptor_core.frontend.tensors import TensorReader
from raptor_core.frontend.versions import imported_versions, with_functions_inlined, with_supported_version
from raptor_core.frontend.walk import Walk
from raptor_core.ir.module import Module


def load_graph(
    source: Path | str | onnx.ModelProto,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    has_lowering: HasLowering | None = None,
) -> Module:
    """The network at a path, or of a ModelProto, as a module of stage ``graph``.

    ``shapes`` gives whole shapes of inputs that the model leaves open, by input name. ``has_lowering`` says of an
    operator whether it can be lowered; it is used only to complete the list of an error.

    In the module every value has a static type; inputs, outputs and all results are float32; constants are folded,
    BatchNormalization is folded where it can be, and nodes that no output needs are gone. Nodes and outputs keep the
    names of the model. ``properties`` has ``onnx.sha256`` (of the file and its external data), ``onnx.file`` (its name,
    without folders), ``onnx.opset`` (versions by domain; the default domain is ``ai.onnx``), ``onnx.ir_version`` and
    ``onnx.producer``.

    Raises UsageError for bad ``shapes``, and RaptorError for everything in the model that cannot be compiled.
    """
    file = read_model(source)
    reader = TensorReader(file.where, file.folder)
    external_files = reader.external_files(file.model.graph)
    _refuse_sparse(file.model.graph, file.where)
    model = with_functions_inlined(file.model, file.where)
    model = with_supported_version(model, file.where, reader)
    walk, inputs = _walk(model, file, reader, shapes or {})
    outputs = [info.name for info in model.graph.output]
    module = fold_batch_norm(make_module(walk, file.name, inputs, outputs, has_lowering))
    return with_properties(module, _properties(file, external_files))


def _walk(
    model: onnx.ModelProto, file: ModelFile, reader: TensorReader, shapes: Mapping[str, Sequence[int]]
) -> tuple[Walk, list[str]]:
    """The finished walk over the nodes that the outputs need, and the names of the network's inputs."""
    graph, where = model.graph, file.where
    nodes = named_nodes(graph.node)
    names = check_names(graph, nodes, where)
    nodes = sorted_nodes(live_nodes(nodes, [info.name for info in graph.output]), where)
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in initializers]
    bound = bind_inputs(inputs, shapes, where)
    check_input_types(bound.types, where)
    walk = Walk(
        where=where,
        reader=reader,
        versions=imported_versions(model, where),
        declared={info.name: resolve_symbols(info.type, bound.symbols) for info in (*graph.value_info, *graph.output)},
        names=names,
        types=dict(bound.types),
    )
    used = {name for node in nodes for name in used_values(node.proto)}
    used.update(info.name for info in graph.output)
    for name, tensor in initializers.items():
        if name in used:
            walk.add_constant(name, reader.array(tensor))
    for node in nodes:
        walk.visit(node)
    return walk, [info.name for info in inputs]


def _refuse_sparse(graph: onnx.GraphProto, where: str) -> None:
    if graph.sparse_initializer:
        names = ", ".join(f"'{tensor.values.name}'" for tensor in graph.sparse_initializer)
        raise RaptorError(
            "sparse-tensors",
            "the model has sparse initializers",
            where=where,
            reason=f"these are sparse: {names}",
            hint="only dense tensors are supported: convert them, or export the model with dense weights",
        )


def _properties(file: ModelFile, external_files: Sequence[Path]) -> dict[str, Any]:
    versions = imported_versions(file.model, file.where)
    producer = " ".join(filter(None, (file.model.producer_name, file.model.producer_version)))
    return {
        "onnx.file": file.path.name if file.path is not None else "",
        "onnx.ir_version": int(file.model.ir_version),
        "onnx.opset": {domain or "ai.onnx": version for domain, version in sorted(versions.items())},
        "onnx.producer": producer,
        "onnx.sha256": file.sha256(external_files),
    }
