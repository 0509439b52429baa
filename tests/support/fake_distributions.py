"""Distributions made by hand in a folder: metadata, entry points, and modules, as pip would leave them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_distribution(
    folder: Path,
    name: str,
    entry_points: Mapping[str, Mapping[str, str]] | str,
    modules: Mapping[str, str] | None = None,
    version: str = "1.0",
) -> None:
    """Write the distribution ``name`` into ``folder`` (to be on ``sys.path``).

    ``entry_points`` maps group to name to value, or is the text of the file. ``modules`` maps module name to source.
    """
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if not isinstance(entry_points, str):
        entry_points = "".join(
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
            for group, points in entry_points.items()
        )
    (info / "entry_points.txt").write_text(entry_points)
    for module, source in (modules or {}).items():
        (folder / f"{module}.py").write_text(source)


def scheduler_source(name: str, *, api_version: object = 1, summary: str = "puts everything on one core") -> str:
    """The source of a module with a scheduler ``PLUGIN`` that hands on to ``peft``."""
    return f'''
from typing import ClassVar
from raptor_core.options import Option
from raptor_schedulers.peft import PEFT


class Fake:
    name: ClassVar[str] = "{name}"
    api_version: ClassVar[int] = {api_version!r}
    summary: ClassVar[str] = "{summary}"
    options = (Option("fake_weight", int, "a weight", default=3, minimum=1, maximum=9),)

    def schedule(self, module, machine, options):
        assert set(options) == {{"fake_weight"}}
        return PEFT.schedule(module, machine, {{}})


PLUGIN = Fake()
'''
