"""Programs out again, for the published performance simulator."""

from __future__ import annotations

import json
from pathlib import Path

from raptor_core.diagnostics import RaptorError
from raptor_performance.program import read_program
from raptor_performance.view import softmax_as, timing_view
from raptor_pim.artifacts.chip import ChipConfiguration, SimulationMode
from raptor_pim.artifacts.export_chip import write_chip
from raptor_pim.artifacts.model import CONFIG_FILE, binary_program_file, core_key
from raptor_pim.artifacts.replace import publish, temporary_sibling
from raptor_pim.isa.records import encode_program

CHIP_FOLDER = "chip"


def export_program(
    source: Path,
    target: Path,
    *,
    view: str,
    configuration: ChipConfiguration | None = None,
    softmax: str | None = None,
) -> Path:
    """Writes the program at ``source`` as a folder that the published simulator loads as it is; gives ``target``.

    ``view`` is ``timing`` (see raptor_performance.view) or ``float32``. With ``configuration`` the chip's files go
    along, in the subfolder ``chip``, for both modes. ``softmax`` names the instruction that takes the place of every
    softmax, which that simulator refuses; the program can then only be timed. The folder appears whole or not at all.
    Raises RaptorError for a bad program, or when ``target`` exists or cannot be written.
    """
    program = read_program(source)
    if target.exists():
        raise RaptorError(
            "folder-exists", "the folder to write exists already", where=str(target), hint="choose another folder"
        )
    config = {
        "core_cnt": len(program.programs),
        "array_group_map": {core_key(core): list(groups) for core, groups in enumerate(program.groups)},
    }
    try:
        with temporary_sibling(target.absolute()) as folder:
            (folder / CONFIG_FILE).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
            for core, records in enumerate(program.programs):
                timed = softmax_as(records, softmax)
                seen = timing_view(timed) if view == "timing" else timed
                (folder / binary_program_file(core)).write_bytes(encode_program(seen))
            if configuration is not None:
                for mode in SimulationMode:
                    name = f"{mode.name.lower()}_config.json"
                    write_chip(configuration.with_mode(mode), folder / CHIP_FOLDER, name=name)
            publish(folder, target.absolute())
    except OSError as error:
        raise RaptorError(
            "cannot-write",
            "the program cannot be written",
            where=str(target),
            reason=error.strerror or str(error),
            hint="choose another folder, or make room and try again",
        ) from error
    return target
