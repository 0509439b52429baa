"""Raptor: compile ONNX networks into programs for processing-in-memory chips, and simulate them.

``compile``, ``simulate`` and ``run`` are the Python API (raptor_core.driver); every refusal is a ``RaptorError``. Names
are loaded when first used, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raptor_core.diagnostics import RaptorError
    from raptor_core.driver import compile, run, simulate

__all__ = ["RaptorError", "__version__", "compile", "run", "simulate"]


def __getattr__(name: str) -> Any:
    if name == "RaptorError":
        from raptor_core.diagnostics import RaptorError

        return RaptorError
    if name in ("compile", "simulate", "run"):
        from raptor_core import driver

        return getattr(driver, name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'raptor_core' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    """The version of the installed distribution."""
    import importlib.metadata

    try:
        return importlib.metadata.version("raptor-pim")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
