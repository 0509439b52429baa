"""Looking into program folders: inputs and outputs, figures, and single instructions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from raptor_core.diagnostics import UsageError
from raptor_core.targets.inspection import Signature, TensorSignature
from raptor_pim.artifacts import Artifact, TensorInfo, read_artifact
from raptor_pim.artifacts.config_file import decode_config
from raptor_pim.artifacts.json_fields import bad_file
from raptor_pim.artifacts.model import CONFIG_FILE, ELEMENT_BYTES
from raptor_pim.isa import BY_MNEMONIC, disassemble

_LARGEST_CONFIG = 1 << 30


def read_signature(path: Path) -> Signature:
    """Inputs and outputs of the program, from its configuration file alone.

    Those without names are ``input_0``, ... and ``output_0``, ..., of one dimension. Raises RaptorError for a file
    that cannot be read or is not a configuration.
    """
    file = path / CONFIG_FILE
    try:
        if file.stat().st_size > _LARGEST_CONFIG:
            raise bad_file(CONFIG_FILE, "the configuration is too large", f"more than {_LARGEST_CONFIG} bytes")
        content = file.read_bytes()
    except OSError as error:
        raise bad_file(CONFIG_FILE, "the file cannot be read", error.strerror or str(error)) from error
    config, _ = decode_config(content)
    return Signature(
        _tensors(config.inputs, "input", config.inputs_sizes),
        _tensors(config.outputs, "output", config.outputs_sizes or ()),
    )


def program_figures(path: Path) -> dict[str, Any]:
    """Figures of the whole program: what it is for, how much of the chip it uses, and instructions by mnemonic."""
    artifact = read_artifact(path, programs_only=True)
    config, manifest = artifact.config, artifact.manifest or {}
    groups = [len(core) for core in config.array_group_map]
    sizes = np.array([program.size for program in artifact.programs])
    signature = read_signature(path)
    return {
        **{key: manifest[key] for key in ("raptor_version", "target", "profile", "model") if key in manifest},
        "cores": config.core_cnt,
        "cores_with_instructions": int(np.count_nonzero(sizes)),
        "crossbar_size": list(config.xbar_size) if config.xbar_size else None,
        "crossbar_groups": sum(groups),
        "crossbars": sum(sum(core) for core in config.array_group_map),
        "pipeline_stages": config.pipeline_stages,
        "instructions": int(sizes.sum()),
        "longest_program": int(sizes.max(initial=0)),
        "instructions_by_opcode": _by_opcode(artifact),
        "inputs": [_as_json(tensor) for tensor in signature.inputs],
        "outputs": [_as_json(tensor) for tensor in signature.outputs],
    }


def disassemble_core(path: Path, core: int, start: int, count: int) -> list[tuple[int, str]]:
    """Program counter and text of ``count`` instructions, or as many as there are. Raises UsageError outside."""
    artifact = read_artifact(path, programs_only=True)
    if not 0 <= core < len(artifact.programs):
        raise UsageError(
            "no-such-core",
            f"there is no core {core}",
            where=str(path),
            reason=f"the program has cores 0 to {len(artifact.programs) - 1}",
        )
    program = artifact.programs[core]
    if not 0 <= start <= program.size or (start == program.size and program.size):
        raise UsageError(
            "no-such-instruction",
            f"core {core} has no instruction {start}",
            where=str(path),
            reason=f"it has {program.size} instructions, counted from 0",
        )
    stop = min(start + count, int(program.size))
    return list(zip(range(start, stop), disassemble(program, start, stop), strict=True))


def _by_opcode(artifact: Artifact) -> dict[str, int]:
    totals: Counter[int] = Counter()
    for program in artifact.programs:
        codes, counts = np.unique(program["op"], return_counts=True)
        totals.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
    names = {int(info.opcode): mnemonic for mnemonic, info in BY_MNEMONIC.items()}
    return {names[code]: totals[code] for code in sorted(totals)}


def _tensors(tensors: tuple[TensorInfo, ...], kind: str, sizes: tuple[int, ...]) -> tuple[TensorSignature, ...]:
    if tensors:
        return tuple(TensorSignature(tensor.name, tensor.shape, tensor.dtype) for tensor in tensors)
    return tuple(
        TensorSignature(f"{kind}_{k}", (size // ELEMENT_BYTES,), shape_known=False) for k, size in enumerate(sizes)
    )


def _as_json(tensor: TensorSignature) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}
