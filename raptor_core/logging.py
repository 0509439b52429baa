"""Structured logs: a short constant event and keywords, through structlog to the standard logger ``raptor``.

As a library Raptor says nothing until the application configures logging; the command line does so with
:func:`show_logs`. structlog is imported when the first logger is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import IO, Any

ROOT = "raptor"
logging.getLogger(ROOT).addHandler(logging.NullHandler())


def get_logger(name: str = ROOT, **bound: Any) -> Any:
    """A structlog logger below ``raptor``, with keywords bound: ``get_logger(model="m").info("compiled", cores=3)``."""
    import structlog

    full_name = name if name.split(".")[0] == ROOT else f"{ROOT}.{name}"
    logger = structlog.wrap_logger(
        logging.getLogger(full_name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_log_level,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
    )
    return logger.bind(**bound)


def show_logs(stream: IO[str], *, verbosity: int, as_json: bool, color: bool) -> Callable[[], None]:
    """Write logs to ``stream``: warnings, with ``verbosity`` 1 also what is done, with 2 everything.

    ``as_json`` writes one JSON object a line. Gives a function that ends it.
    """
    import structlog

    renderer: Any = (
        structlog.processors.JSONRenderer(sort_keys=True) if as_json else structlog.dev.ConsoleRenderer(colors=color)
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                renderer,
            ]
        )
    )
    root = logging.getLogger(ROOT)
    level, propagate = root.level, root.propagate
    root.addHandler(handler)
    root.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])
    root.propagate = False

    def end() -> None:
        root.removeHandler(handler)
        root.setLevel(level)
        root.propagate = propagate

    return end
