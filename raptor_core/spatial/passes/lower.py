"""The pass ``lower``: ONNX nodes become plan and compute operations, by the installed operator lowerings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from raptor_core.diagnostics import PluginError, RaptorError
from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.attribute_text import ARRAY_DTYPES
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.types import TensorType
from raptor_core.passes.base import PassContext, PassResult
from raptor_core.plugins.contracts import OperatorLowering
from raptor_core.spatial.sizes import refuse_sizes
from raptor_core.spatial.stages import STAGE_OPERATIONS

GROUP = "raptor.operator_lowerings"
_MISSING_HINT = (
    "'raptor plugins list --kind operator-lowering' shows the operators that can be compiled; a plugin may add others"
)

_ELEMENT_NAMES = {dtype.name: name for name, dtype in ARRAY_DTYPES.items()}


@attrs.frozen
class LowerPass:
    """See the module's text. Notes count the nodes and the operations they became."""

    name: ClassVar[str] = "lower"

    def run(self, module: Module, context: PassContext) -> PassResult:
        """Raises RaptorError naming every node that cannot be lowered and every value that is too large.

        Raises PluginError for a lowering that fails.
        """
        refuse_sizes(module)
        lowerings = _find_lowerings(module, context)
        rewriter = Rewriter(module)
        needed = {*module.outputs, *module.users_of()}
        for op in module.operations:
            if isinstance(op, OnnxNode):
                _lower_node(lowerings[op.operator], op, rewriter, needed)
            else:
                rewriter.append(op)
        for name, data in rewriter.constants.items():
            if name not in rewriter.types:
                rewriter.types[name] = TensorType(tuple(data.shape), _ELEMENT_NAMES.get(data.dtype.name, "f32"))
        nodes = sum(1 for _ in module.find(OnnxNode))
        result = rewriter.finish(stage=self.name)
        return PassResult(result, notes={"nodes": nodes, "operations": len(result.operations)})


LOWER = LowerPass()


def _find_lowerings(module: Module, context: PassContext) -> Mapping[str, OperatorLowering]:
    """The lowering of every operator in the module. Raises RaptorError listing all nodes that have none."""
    lowerings: dict[str, OperatorLowering] = {}
    refused: list[str] = []
    missing = 0
    nodes = list(module.find(OnnxNode))
    for node in nodes:
        if node.operator in lowerings:
            reason = _refusal(lowerings[node.operator], node, module)
        elif context.plugins.has(GROUP, node.operator):
            lowerings[node.operator] = context.plugins.get(GROUP, node.operator)
            reason = _refusal(lowerings[node.operator], node, module)
        else:
            reason = "no installed plugin lowers this operator"
            missing += 1
        if reason is not None:
            refused.append(f"{node.label} (node {node.index}, {_result_words(node, module)}): {reason}")
    if refused:
        raise RaptorError(
            "unsupported-operators",
            f"{len(refused)} of {len(nodes)} nodes cannot be compiled",
            where=f"network '{module.name}'",
            details=refused,
            hint=_MISSING_HINT if missing else "change these nodes in the model, or export it in another way",
        )
    return lowerings


def _refusal(lowering: OperatorLowering, node: OnnxNode, module: Module) -> str | None:
    """Why the lowering refuses the node, or None."""
    try:
        reason = lowering.check(node, module)
    except (RaptorError, MemoryError):
        raise
    except Exception as error:
        raise _broken(lowering, node, f"its check stopped with {type(error).__name__}: {error}") from error
    if reason is not None and not isinstance(reason, str):
        raise _broken(lowering, node, f"its check gave {type(reason).__name__}, neither a reason nor None")
    return reason


def _lower_node(lowering: OperatorLowering, node: OnnxNode, rewriter: Rewriter, needed: set[str]) -> None:
    """Let the lowering append its operations, and check that they define the node's results as declared."""
    begin = len(rewriter.operations)
    declared = {name: rewriter.types[name] for name in node.results if name in needed}
    try:
        lowering.lower(node, rewriter)
    except (RaptorError, MemoryError):
        raise
    except Exception as error:
        raise _broken(lowering, node, f"it stopped with {type(error).__name__}: {error}") from error
    appended = rewriter.operations[begin:]
    for op in appended:
        if not isinstance(op, STAGE_OPERATIONS[LowerPass.name]):
            raise _broken(lowering, node, f"it made an operation of kind {op.kind}, which is not a plan operation")
    defined = {result for op in appended for result in op.results}
    for name, type_ in declared.items():
        if name not in defined:
            raise _broken(lowering, node, f"it does not define the node's result '{name}'")
        if rewriter.types.get(name) != type_:
            raise _broken(lowering, node, f"it made '{name}' {rewriter.types.get(name)}, the network says {type_}")


def _result_words(node: OnnxNode, module: Module) -> str:
    names = [name for name in node.results if name]
    types = [str(module.types[name]) if name in module.types else "unknown type" for name in names]
    return ", ".join(f"'{name}' {type_}" for name, type_ in zip(names, types, strict=True)) or "no result"


def _broken(lowering: OperatorLowering, node: OnnxNode, reason: str) -> PluginError:
    cls = type(lowering)
    return PluginError(
        "broken-lowering",
        f"operator lowering '{lowering.name}' failed on {node.label}",
        where=f"{cls.__module__}.{cls.__qualname__}, node {node.index}",
        reason=reason,
        hint=f"this is a bug in the package {cls.__module__.partition('.')[0]}; report it there",
    )
