"""How large a value may be, settled before anything is made for each of its parts.

Without a limit a model of a few bytes could ask for a cut into 2**62 boxes, or for offsets that no integer type holds.
"""

from __future__ import annotations

from raptor_core.diagnostics import RaptorError
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Operation

MAXIMUM_ELEMENTS = 2**31
"""No value, and no operand with the padding around it, may have more elements."""
_SHOWN = 10


def refuse_sizes(module: Module) -> None:
    """Raise one RaptorError naming the inputs and results that are too large, if there are any."""
    large = [f"input '{name}' {_words(module, name)}" for name in module.inputs if _is_large(module, name)]
    for op in module.operations:
        results = [name for name in op.results if name and _is_large(module, name)]
        large += [f"{_label(op)}: its result '{name}' {_words(module, name)}" for name in results]
    if not large:
        return
    more = [f"and {len(large) - _SHOWN} more"] if len(large) > _SHOWN else []
    raise RaptorError(
        "value-too-large",
        "the network has values that are too large",
        where=f"network '{module.name}'",
        reason=f"no value may have more than {MAXIMUM_ELEMENTS} elements",
        details=[*large[:_SHOWN], *more],
        hint="use a smaller batch or smaller images, or split the network",
    )


def _is_large(module: Module, name: str) -> bool:
    return name in module.types and module.types[name].elements > MAXIMUM_ELEMENTS


def _words(module: Module, name: str) -> str:
    type_ = module.types[name]
    return f"{type_} has {type_.elements} elements"


def _label(op: Operation) -> str:
    label = getattr(op, "label", None)
    return label if isinstance(label, str) else f"operation '{op.name}'"
