"""Constant folding: the value of a node whose inputs are all known, by onnx's reference implementation.

Nodes are folded one at a time with onnx.reference, not with the optimizer of onnxscript: that one takes seconds to
import, rewrites names, and needs the whole model in its own form, while here the names of nodes and values stay as they
are and what is folded is decided by the rules below.

Only operators listed here are folded: those whose reference implementation gives what onnxruntime gives in every
operator set (it disregards the version in a few). Results that are large and larger than their inputs are not folded
(``GROWTH_ELEMENTS``), so that a small model cannot ask for a huge constant. Nodes that are not folded stay.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from raptor_core.frontend.elements import static_shape
from raptor_core.ir.module import Array

GROWTH_ELEMENTS = 2**24
"""A folded result may have this many elements, or as many as the node's inputs together if that is more."""
SLOW_ELEMENTS = 2**16
"""The same limit for operators whose reference implementation visits elements one by one in Python."""

_BY_DATA = frozenset({"Compress", "NonZero", "Unique"})
"""Operators whose result's shape depends on their data; it is never larger than rank times the input."""
# fmt: off
_ARRAY_OPERATORS = frozenset({
    "Abs", "Add", "And", "BatchNormalization", "Cast", "CastLike", "Ceil", "Clip", "Concat", "ConstantOfShape", "Cos",
    "DequantizeLinear", "Div", "Equal", "Erf", "Exp", "Expand", "EyeLike", "Flatten", "Floor", "Gather", "Gemm",
    "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Log", "MatMul", "Max", "Mean", "Min", "Mod", "Mul", "Neg",
    "Not", "Or", "Pad", "Pow", "QuantizeLinear", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Round", "Sigmoid",
    "Sign", "Sin", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Trilu",
    "Unsqueeze", "Where", "Xor",
})
"""Operators that the reference implementation computes with whole arrays."""
_ELEMENT_OPERATORS = frozenset({
    "ArgMax", "ArgMin", "Compress", "CumSum", "GatherElements", "GatherND", "IsInf", "IsNaN", "NonZero", "OneHot",
    "ScatterElements", "ScatterND", "TopK", "Unique",
})
"""Operators that it may compute element by element in Python."""
# fmt: on
_FAITHFUL_SINCE: Mapping[str, int] = {"BatchNormalization": 14, "Softmax": 13}
"""Operators that the reference implementation computes in the way of this version whatever the model's version is."""
_REFERENCE_SINCE: Mapping[str, int] = {"DequantizeLinear": 19}
"""Operators that the reference implementation has from this version on only, which contains the older ones."""


def shape_value(node: onnx.NodeProto, shape: Sequence[int]) -> Array | None:
    """The result of a Shape or Size node for an input of a known shape; None for other nodes."""
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Size":
        return np.asarray(math.prod(shape), dtype=np.int64)
    if node.op_type == "Shape":
        given = {attribute.name: attribute.i for attribute in node.attribute}
        return np.asarray(shape[slice(given.get("start", 0), given.get("end"))], dtype=np.int64)
    return None


def fold(
    node: onnx.NodeProto,
    inputs: Mapping[str, Array],
    result_types: Mapping[str, onnx.TypeProto],
    versions: Mapping[str, int],
) -> dict[str, Array] | None:
    """The values of the node's results, or None when the node is not folded. Deterministic; says nothing aloud.

    ``inputs`` has all of the node's inputs.
    """
    if node.domain or versions[""] < _FAITHFUL_SINCE.get(node.op_type, 0) or not _may_fold(node, inputs, result_types):
        return None
    try:
        arrays = _evaluate(node, inputs, versions)
    except Exception:
        # The reference implementation does not cover every operator and case; such a node stays as it is.
        return None
    results = {name: array for name, array in zip(node.output, arrays, strict=False) if name}
    if not all(isinstance(array, np.ndarray | np.generic) for array in results.values()):
        return None
    results = {name: np.asarray(array) for name, array in results.items()}
    return results if _as_inferred(results, result_types) else None


def constant_value(node: onnx.NodeProto) -> Array | None:
    """The value of a Constant node that is given in other ways than as a tensor; None when it is not numeric."""
    attribute = node.attribute[0]
    if attribute.name in ("value_float", "value_floats"):
        value = attribute.f if attribute.name == "value_float" else list(attribute.floats)
        return np.asarray(value, dtype=np.float32)
    if attribute.name in ("value_int", "value_ints"):
        value = attribute.i if attribute.name == "value_int" else list(attribute.ints)
        return np.asarray(value, dtype=np.int64)
    return None


def _may_fold(node: onnx.NodeProto, inputs: Mapping[str, Array], result_types: Mapping[str, onnx.TypeProto]) -> bool:
    given = sum(array.size for array in inputs.values())
    shapes = [static_shape(result_types[name]) if name in result_types else None for name in node.output if name]
    known = [math.prod(shape) for shape in shapes if shape is not None]
    if len(known) < len(shapes) and node.op_type not in _BY_DATA:
        return False
    wanted = sum(known)
    if node.op_type in _ELEMENT_OPERATORS:
        return max(wanted, given) <= SLOW_ELEMENTS
    return node.op_type in _ARRAY_OPERATORS and wanted <= max(GROWTH_ELEMENTS, given)


def _evaluate(node: onnx.NodeProto, inputs: Mapping[str, Array], versions: Mapping[str, int]) -> list[Array]:
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(
        [node],
        "node",
        [helper.make_empty_tensor_value_info(name) for name in inputs],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name],
    )
    imports = dict(versions)
    imports[node.domain] = max(versions[node.domain], _REFERENCE_SINCE.get(node.op_type, 0))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*item) for item in imports.items()])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ReferenceEvaluator(model).run(None, dict(inputs))
    values = iter(found)
    return [next(values) if name else np.empty(0) for name in node.output]


def _as_inferred(results: Mapping[str, Array], types: Mapping[str, onnx.TypeProto]) -> bool:
    """Whether the values have the shapes and element types that inference says."""
    for name, array in results.items():
        type_ = types.get(name)
        if type_ is None:
            continue
        shape = static_shape(type_)
        element = helper.tensor_dtype_to_np_dtype(type_.tensor_type.elem_type)
        if (shape is not None and shape != array.shape) or element != array.dtype:
            return False
    return True
