"""Programs to be timed: from our folder, somebody's folder, or a single file."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import numpy as np

from raptor_core.diagnostics import RaptorError
from raptor_performance.single_file import read_single_file
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pim.artifacts.export_chip import CHIP_FILE
from raptor_pim.artifacts.read import read_artifact
from raptor_pim.isa.opcodes import Opcode
from raptor_pim.isa.records import Records

_CORE_FILE = re.compile(r"core_(0|[1-9][0-9]*)\.(json|pim)")
_CORE_PREFIX = "core_"


@attrs.frozen(eq=False)
class Program:
    """The programs of cores 0, 1, ...

    ``groups`` holds for every core the crossbars of each group; ``listed`` says which cores the program speaks of:
    they cost static power even when idle. ``chip_file`` is the chip configuration that came with the program, if one
    did; ``own`` says that Raptor made the folder.
    """

    programs: tuple[Records, ...]
    groups: tuple[tuple[int, ...], ...]
    listed: tuple[bool, ...]
    where: str
    chip_file: Path | None = None
    own: bool = False

    @property
    def instruction_count(self) -> int:
        """Instructions of all cores."""
        return sum(int(records.size) for records in self.programs)

    @property
    def softmax_count(self) -> int:
        """Instructions of all cores that are a softmax."""
        return sum(int(np.count_nonzero(records["op"] == Opcode.VSOFTMAX)) for records in self.programs)


def read_program(path: Path) -> Program:
    """The program in the folder or file at ``path``, checked as to its form.

    Raises RaptorError, naming the file, for anything that is not a program.
    """
    if path.is_dir():
        return _read_folder(path)
    if path.suffix == ".pim":
        raise RaptorError(
            "not-a-program",
            "one core's binary is not a whole program",
            where=str(path),
            hint="give the folder that holds the core_N.pim files and config.json",
        )
    programs, groups, listed = read_single_file(path)
    return Program(programs, groups, listed, str(path))


def _read_folder(path: Path) -> Program:
    _check_names(path)
    artifact = read_artifact(path, programs_only=True)
    _check_numbers(path, len(artifact.programs))
    chip = path / CHIP_FILE
    return Program(
        artifact.programs,
        artifact.config.array_group_map,
        (True,) * len(artifact.programs),
        str(path),
        chip if artifact.manifest is not None and chip.is_file() else None,
        artifact.manifest is not None,
    )


def _core_files(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir() if entry.name.startswith(_CORE_PREFIX) and entry.is_file())


def _check_names(path: Path) -> None:
    for name in _core_files(path):
        if not _CORE_FILE.fullmatch(name):
            raise _bad_name(path, name, "program files are named core_N.pim or core_N.json")


def _check_numbers(path: Path, cores: int) -> None:
    for name in _core_files(path):
        match = _CORE_FILE.fullmatch(name)
        if match and int(match[1]) >= cores:
            raise _bad_name(path, name, f"core_cnt in config.json is {cores}")


def _bad_name(path: Path, name: str, reason: str) -> RaptorError:
    return RaptorError(
        "bad-program-file-name",
        "the folder holds a program file of no core",
        where=str(path / name),
        reason=reason,
        hint="remove the file, or correct core_cnt",
    )


def check_program(program: Program, configuration: ChipConfiguration, *, softmax_timed: bool = False) -> None:
    """Whether the chip can run the program, and the model can time it; with ``softmax_timed`` a softmax, too.

    Raises RaptorError for more cores or crossbars than the chip has, an instruction that the model does not know, a
    product of no weight bits, or a partner that the program does not list.
    """
    if len(program.programs) > configuration.core_count:
        raise _unfit(
            program,
            f"it has {len(program.programs)} cores, the chip {configuration.core_count}",
        )
    for core, groups in enumerate(program.groups):
        if sum(groups) > configuration.crossbars_per_core:
            raise _unfit(
                program,
                f"the groups of core {core} hold {sum(groups)} crossbars, a core of the chip has "
                f"{configuration.crossbars_per_core}",
            )
    for core, records in enumerate(program.programs):
        if not softmax_timed:
            _check_no_softmax(program, core, records)
        _check_instructions(program, core, records)


def _check_no_softmax(program: Program, core: int, records: Records) -> None:
    found = records["op"] == Opcode.VSOFTMAX
    if found.any():
        raise _untimed(
            program,
            core,
            int(found.argmax()),
            "vsoftmax has no timing in this model",
            "say what to take its time from: --softmax-as vsigm",
        )


def _check_instructions(program: Program, core: int, records: Records) -> None:
    op = records["op"]
    weightless = (op == Opcode.MVMUL) & (records["r2_or_imm"] < 1)
    if weightless.any():
        raise _untimed(program, core, int(weightless.argmax()), "a product needs mbiw of at least 1")
    if all(program.listed):
        return
    peers = np.isin(op, [Opcode.SEND, Opcode.RECV, Opcode.SYNC])
    absent = np.zeros(op.size, dtype=np.bool_)
    absent[peers] = ~np.array(program.listed)[records["r2_or_imm"][peers]]
    if absent.any():
        pc = int(absent.argmax())
        raise _untimed(program, core, pc, f"its partner, core {records['r2_or_imm'][pc]}, is not in the program")


def _unfit(program: Program, reason: str) -> RaptorError:
    return RaptorError(
        "program-does-not-fit",
        "the program does not fit the chip",
        where=program.where,
        reason=reason,
        hint="give the configuration of the chip that the program was made for (--config)",
    )


def _untimed(program: Program, core: int, pc: int, reason: str, hint: str | None = None) -> RaptorError:
    return RaptorError(
        "cannot-time-program",
        "the program cannot be timed",
        where=f"{program.where}: core {core} pc {pc}",
        reason=reason,
        hint=hint,
    )
