"""Where a compilation starts: an ONNX model, or the text of a stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from raptor_core.diagnostics import RaptorError, UsageError
from raptor_core.ir.module import Module
from raptor_core.ir.operation import Dialect
from raptor_core.plugins.manager import PluginManager

if TYPE_CHECKING:
    import onnx

DIALECTS, LOWERINGS = "raptor.dialects", "raptor.operator_lowerings"
TEXT_SUFFIX = ".rir"
_TARGET, _MACHINE = "raptor.target", "raptor.machine"


@attrs.frozen(eq=False)
class InstalledDialects(Mapping[str, Dialect]):
    """The installed dialects by name, each loaded when it is looked at."""

    plugins: PluginManager

    def __getitem__(self, name: str) -> Dialect:
        if not self.plugins.has(DIALECTS, name):
            raise KeyError(name)
        return self.plugins.get(DIALECTS, name)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(self.plugins.names(DIALECTS))

    def __len__(self) -> int:
        return len(self.plugins.names(DIALECTS))


def is_text(model: object) -> bool:
    """Whether a model is given as the text of a stage."""
    return isinstance(model, str | Path) and Path(model).suffix == TEXT_SUFFIX


def read_source(
    model: str | Path | onnx.ModelProto, shapes: Mapping[str, Sequence[int]], plugins: PluginManager
) -> Module:
    """The module of an ONNX model (stage ``graph``), or of a stage's text.

    Raises RaptorError when the model cannot be read, UsageError for ``shapes`` that do not fit it.
    """
    if is_text(model):
        assert isinstance(model, str | Path)
        return _read_text(Path(model), shapes, plugins)
    from raptor_core.frontend.load import load_graph

    return load_graph(model, shapes=shapes, has_lowering=lambda name: plugins.has(LOWERINGS, name))


def _read_text(path: Path, shapes: Mapping[str, Sequence[int]], plugins: PluginManager) -> Module:
    from raptor_core.ir.files import read_module

    if shapes:
        raise UsageError(
            "shape-of-text",
            "shapes cannot be given for the text of a stage",
            where=str(path),
            reason="its values have static shapes already",
        )
    return read_module(path, InstalledDialects(plugins))


def with_machine(module: Module, target: str, facts: Mapping[str, Any]) -> Module:
    """The module, marked with the chip it is compiled for.

    Raises RaptorError when it is the text of a stage that was compiled for another one.
    """
    marks = {_TARGET: target, _MACHINE: _plain(facts)}
    for key, value in marks.items():
        earlier = _plain(module.properties.get(key, value))
        if earlier != value:
            raise RaptorError(
                "other-chip",
                f"the stage '{module.stage}' was compiled for another chip",
                where=f"network '{module.name}'",
                reason=f"the text says {earlier}, this compilation {value}",
                hint="give the target and chip options of the first compilation",
            )
    return attrs.evolve(module, properties={**module.properties, **marks})


def _plain(value: Any) -> Any:
    """Lists as tuples, as the text form gives them back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
