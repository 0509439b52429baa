"""The shapes of a network's inputs: what the model says, what the user gives, and whether they agree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs
import onnx

from raptor_core.diagnostics import RaptorError, UsageError, unknown_name
from raptor_core.frontend.elements import tensor_type, type_words

Shape = tuple[int, ...]

_EXTENT = re.compile(r"[0-9]{1,10}")
MAXIMUM_EXTENT = 2**31 - 1
_FORM = "give it in the form NAME=1x3x224x224: an input's name and its whole shape"


def parse_shape_option(text: str) -> tuple[str, Shape]:
    """``name=1x3x224x224`` as ``("name", (1, 3, 224, 224))``. Raises UsageError for any other text."""
    name, equals, extents = text.rpartition("=")
    if not equals or not name or not extents:
        raise _bad_option(text, "it is not a name, '=' and a shape")
    shape = []
    for extent in extents.split("x"):
        if not _EXTENT.fullmatch(extent) or not 0 < int(extent) <= MAXIMUM_EXTENT:
            raise _bad_option(text, f"'{extent}' is not a whole number from 1 to {MAXIMUM_EXTENT}")
        shape.append(int(extent))
    return name, tuple(shape)


def parse_shape_options(texts: Iterable[str]) -> dict[str, Shape]:
    """Several options by name. Raises UsageError for bad text and for a name given twice with different shapes."""
    shapes: dict[str, Shape] = {}
    for text in texts:
        name, shape = parse_shape_option(text)
        if shapes.setdefault(name, shape) != shape:
            raise _bad_option(text, f"input '{name}' was given the shape {shape_text(shapes[name])} before")
    return shapes


def shape_text(shape: Iterable[object]) -> str:
    """``1x3x224x224``."""
    return "x".join(map(str, shape))


def _dims_text(dims: Iterable[object]) -> str:
    """``[batch,3,224,224]``: extents that may be symbols."""
    return f"[{','.join(map(str, dims))}]"


def _bad_option(text: str, reason: str) -> UsageError:
    return UsageError("bad-shape-option", f"bad value '{text}' for --shape", reason=reason, hint=_FORM)


@attrs.frozen
class BoundInputs:
    """Static types of all inputs, and the extents that the model's symbols stand for."""

    types: Mapping[str, onnx.TypeProto]
    symbols: Mapping[str, int]


def bind_inputs(inputs: Sequence[onnx.ValueInfoProto], shapes: Mapping[str, Sequence[int]], where: str) -> BoundInputs:
    """Static types for the network's inputs from the model's types and the given ``shapes``.

    A symbol stands for one extent: giving it once settles every input that uses it. Raises UsageError for the name of
    no input and bad numbers, RaptorError for a shape that contradicts the model or another, for inputs that are no
    tensors, and, listing all of them, for inputs that have no element and for those whose shape stays open.
    """
    known = [info.name for info in inputs]
    for name, shape in shapes.items():
        if name not in known:
            raise unknown_name("network input", name, known)
        _check_numbers(name, shape)
    for info in inputs:
        if info.type.WhichOneof("value") != "tensor_type" or not info.type.tensor_type.elem_type:
            raise RaptorError(
                "unsupported-input",
                f"input '{info.name}' is not a tensor",
                where=where,
                reason=f"it is {type_words(info.type)}",
                hint="only tensors can be inputs of a network",
            )
    symbols: dict[str, tuple[int, str]] = {}
    for info in inputs:
        if info.name in shapes:
            _bind_symbols(info, tuple(shapes[info.name]), symbols, where)
    extents = {symbol: extent for symbol, (extent, _) in symbols.items()}
    types, unresolved = {}, []
    for info in inputs:
        dims = tuple(shapes[info.name]) if info.name in shapes else _resolved(info, extents)
        if dims is None or not all(isinstance(dim, int) for dim in dims):
            unresolved.append((info.name, dims))
        else:
            types[info.name] = tensor_type(info.type.tensor_type.elem_type, [int(dim) for dim in dims])
    empty = [info for info in inputs if 0 in (_dims(info) or ())]
    if empty:
        raise _empty(empty, where)
    if unresolved:
        raise _unresolved(unresolved, where)
    return BoundInputs(types, extents)


def resolve_symbols(type_: onnx.TypeProto, symbols: Mapping[str, int]) -> onnx.TypeProto:
    """The type with the symbols that are known replaced by their extents."""
    result = onnx.TypeProto()
    result.CopyFrom(type_)
    if result.WhichOneof("value") == "tensor_type":
        for dim in result.tensor_type.shape.dim:
            if dim.dim_param in symbols:
                dim.dim_value = symbols[dim.dim_param]
    return result


def _check_numbers(name: str, shape: Sequence[int]) -> None:
    for extent in shape:
        if isinstance(extent, bool) or not isinstance(extent, int) or not 0 < extent <= MAXIMUM_EXTENT:
            raise UsageError(
                "bad-shape-option",
                f"bad shape {shape_text(shape)} for input '{name}'",
                reason=f"{extent!r} is not a whole number from 1 to {MAXIMUM_EXTENT}",
            )


def _dims(info: onnx.ValueInfoProto) -> tuple[int | str, ...] | None:
    """Extents as the model states them, 0 included; ``?`` for an open one without a name.

    None when not even their number is known.
    """
    if not info.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else (dim.dim_param or "?")
        for dim in info.type.tensor_type.shape.dim
    )


def _resolved(info: onnx.ValueInfoProto, extents: Mapping[str, int]) -> tuple[int | str, ...] | None:
    dims = _dims(info)
    return None if dims is None else tuple(extents.get(dim, dim) if isinstance(dim, str) else dim for dim in dims)


def _bind_symbols(info: onnx.ValueInfoProto, given: Shape, symbols: dict[str, tuple[int, str]], where: str) -> None:
    """Record what the symbols of one input stand for. Raises RaptorError for contradictions."""
    dims = _dims(info)
    if dims is None:
        return
    contradicted = len(dims) != len(given) or any(
        isinstance(dim, int) and dim != extent for dim, extent in zip(dims, given, strict=True)
    )
    if contradicted:
        raise _conflict(info.name, given, f"the model says {_dims_text(dims)}, --shape says {shape_text(given)}", where)
    for dim, extent in zip(dims, given, strict=True):
        if not isinstance(dim, str) or dim == "?":
            continue
        before, by = symbols.setdefault(dim, (extent, info.name))
        if before != extent:
            other = "another place" if by == info.name else f"input '{by}'"
            reason = f"the model calls the extents {before} (of {other}) and {extent} both '{dim}'"
            raise _conflict(info.name, given, reason, where)


def _conflict(name: str, given: Shape, reason: str, where: str) -> RaptorError:
    return RaptorError(
        "shape-conflict",
        f"the shape {shape_text(given)} does not fit input '{name}'",
        where=where,
        reason=reason,
        hint="give only what the model leaves open, with the model's extents everywhere else",
    )


def _empty(inputs: Sequence[onnx.ValueInfoProto], where: str) -> RaptorError:
    return RaptorError(
        "empty-input",
        "an input of no elements cannot be compiled",
        where=where,
        reason="the model gives a dimension the extent 0",
        details=[f"input '{info.name}' {_dims_text(_dims(info) or ())}" for info in inputs],
        hint="export the model with the input's extents, or with a name for each that is open",
    )


def _unresolved(inputs: Sequence[tuple[str, tuple[int | str, ...] | None]], where: str) -> RaptorError:
    details, flags = [], []
    for name, dims in inputs:
        if dims is None:
            details.append(f"input '{name}': the model states no shape")
            flags.append(f"--shape '{name}=<extent>x<extent>x...'")
            continue
        open_dims = [f"dimension {k} is {_symbol_words(dim)}" for k, dim in enumerate(dims) if isinstance(dim, str)]
        details.append(f"input '{name}' {_dims_text(dims)}: {', '.join(open_dims)}")
        flags.append(f"--shape {_flag_value(name, dims)}")
    return RaptorError(
        "symbolic-shape",
        "the shapes of the network's inputs must be known",
        where=where,
        reason="every address of the program is worked out when it is compiled",
        details=details,
        hint=f"give {' '.join(flags)}",
    )


def _symbol_words(symbol: str) -> str:
    return "open" if symbol == "?" else f"'{symbol}'"


def _flag_value(name: str, dims: Sequence[int | str]) -> str:
    """The option's value with 1 for an open batch axis and the symbols in brackets for others."""
    words = [
        dim if isinstance(dim, int) else 1 if k == 0 and len(dims) > 1 else f"<{'extent' if dim == '?' else dim}>"
        for k, dim in enumerate(dims)
    ]
    value = f"{name}={shape_text(words)}"
    return value if re.fullmatch(r"[\w.:/=-]+", value) else f"'{value}'"
