"""From the verified module of the pim dialect to the artifact folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import InternalError
from raptor_core.ir.module import Module
from raptor_pim.artifacts import Artifact, ArtifactConfig, TensorInfo, write_artifact
from raptor_pim.artifacts.export_chip import chip_files
from raptor_pim.artifacts.source_map import SOURCE_MAP_FILE
from raptor_pim.codegen.program import generate_programs
from raptor_pim.codegen.replay import replay_communication
from raptor_pim.dialect import Groups, HostMemory
from raptor_pim.machine import PimMachine


def emit_artifact(
    module: Module,
    machine: PimMachine,
    path: Path,
    *,
    manifest: Mapping[str, Any],
    reports: Mapping[str, str],
    options: Mapping[str, Any],
    overwrite: bool,
) -> dict[str, Any]:
    """Generate all programs and write the folder; gives instruction, core, crossbar and byte counts.

    Raises RaptorError when the folder exists and ``overwrite`` is false, or cannot be written.
    """
    generated = generate_programs(module, machine.core_count)
    programs = generated.records
    if options.get("verify_communication"):
        replay_communication(programs)
    (groups,) = module.find(Groups)
    (host,) = module.find(HostMemory)
    matrices = tuple(_padded(module.constants[name], machine.crossbar_rows) for name in groups.operands)
    artifact = Artifact(
        config=_config(module, machine, groups, host),
        programs=programs,
        matrices=matrices,
        memory=_memory_image(module, host),
        manifest=None,
    )
    extra = {f"reports/{name}": text.encode() for name, text in reports.items()}
    extra.update(chip_files(machine.configuration, machine.mesh))
    extra[SOURCE_MAP_FILE] = generated.source_map.to_bytes()
    write_artifact(
        path,
        artifact,
        manifest_fields=manifest,
        emit_json=bool(options.get("emit_json")),
        overwrite=overwrite,
        extra_files=extra,
    )
    return {
        "instructions": sum(int(program.size) for program in programs),
        "cores_in_use": sum(1 for program in programs if program.size),
        "crossbars_in_use": int(groups.crossbars.sum()),
        "crossbars_available": machine.core_count * machine.crossbars_per_core,
        "distinct_matrices": len(matrices),
        "host_memory_bytes": host.total,
    }


def _padded(matrix: npt.NDArray[Any], rows: int) -> npt.NDArray[np.float32]:
    """The matrix with zero rows up to the crossbar height."""
    padded = np.zeros((rows, matrix.shape[1]), dtype=np.float32)
    padded[: matrix.shape[0]] = matrix
    return padded


def _memory_image(module: Module, host: HostMemory) -> npt.NDArray[np.uint8]:
    """Constants in the element order of their type, zero elsewhere."""
    image = np.zeros(host.total, dtype=np.uint8)
    for name, address, size in zip(host.values, host.addresses, host.sizes, strict=True):
        data = module.constants.get(name)
        if data is None:
            continue
        ordered = np.ascontiguousarray(np.transpose(data, module.types[name].order), dtype="<f4")
        image[address : address + size] = ordered.reshape(-1).view(np.uint8)
    return image


def _config(module: Module, machine: PimMachine, groups: Groups, host: HostMemory) -> ArtifactConfig:
    widths: list[list[int]] = [[] for _ in range(machine.core_count)]
    weights: list[list[int]] = [[] for _ in range(machine.core_count)]
    for core, matrix, width in zip(
        groups.cores.tolist(), groups.matrices.tolist(), groups.crossbars.tolist(), strict=True
    ):
        widths[core].append(width)
        weights[core].append(matrix)
    inputs, outputs = _regions(module, module.inputs, host), _regions(module, module.outputs, host)
    return ArtifactConfig(
        core_cnt=machine.core_count,
        xbar_size=(machine.crossbar_rows, machine.crossbar_columns),
        xbar_array_count=machine.crossbars_per_core,
        array_group_map=tuple(map(tuple, widths)),
        weights=tuple(map(tuple, weights)),
        inputs_addresses=tuple(region.address for region in inputs),
        inputs_sizes=tuple(region.size for region in inputs),
        inputs=tuple(region.tensor for region in inputs),
        outputs_addresses=tuple(region.address for region in outputs),
        outputs_sizes=tuple(region.size for region in outputs),
        outputs=tuple(region.tensor for region in outputs),
        pipeline_stages=1,
    )


@attrs.frozen
class _Region:
    """A network input or output in host memory: byte address and size."""

    tensor: TensorInfo
    address: int
    size: int


def _regions(module: Module, names: tuple[str, ...], host: HostMemory) -> list[_Region]:
    found = []
    for name in names:
        type_ = module.types[name]
        if type_.layout is not None and not type_.layout.is_dense:
            raise InternalError("not-dense", f"network value '{name}' is not dense at the host")
        at = host.values.index(name)
        found.append(_Region(TensorInfo(name, type_.shape), host.addresses[at], host.sizes[at]))
    return found
