"""The hooks: events of a compilation that plugins may listen to. Nothing a hook returns is used.

A plugin in the entry-point group ``raptor.hooks`` is a module or an object with ``api_version`` and functions marked
with ``hookimpl``::

    from raptor_core.plugins.hookspecs import hookimpl

    api_version = 1

    @hookimpl
    def after_pass(name, seconds):
        print(f"{name} took {seconds:.3f} s")

An implementation names the arguments it wants and leaves out the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pluggy

from raptor_core.ir.module import Module

PROJECT = "raptor"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks an implementation of a hook."""


@hookspec
def before_pass(name: str, module: Module) -> None:
    """The pass ``name`` is about to run on ``module``."""


@hookspec
def after_pass(name: str, module: Module, seconds: float) -> None:
    """The pass ``name`` made ``module``, which was found valid, in ``seconds``."""


@hookspec
def after_emit(path: Path, manifest: Mapping[str, Any]) -> None:
    """The program folder ``path`` was written whole; ``manifest`` holds the fields that the driver put into it."""
