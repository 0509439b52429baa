"""The target plugin ``pim``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from raptor_core.ir.module import Module
from raptor_core.options import Option
from raptor_core.passes.base import Pass
from raptor_core.targets.contract import HardwareProfile, TargetConfiguration
from raptor_core.targets.inspection import Signature
from raptor_pim import options as pim_options


@attrs.frozen
class PimTarget:
    """Machines of spec "functional ISA": crossbar cores on a mesh with one host memory."""

    name: ClassVar[str] = "pim"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = "processing-in-memory chips with ReRAM crossbar cores on a mesh"
    options: ClassVar[tuple[Option, ...]] = pim_options.OPTIONS

    def configure(
        self, options: Mapping[str, Any], profile: HardwareProfile | None, profile_file: Path | None
    ) -> TargetConfiguration:
        """See raptor_pim.options.configure."""
        return pim_options.configure(options, profile, profile_file)

    def pipeline(self, configuration: TargetConfiguration) -> Sequence[Pass]:
        """The core's spatial passes, then conversion to the pim dialect, order, memory planning and verification."""
        from raptor_core.spatial.passes import spatial_passes
        from raptor_pim.passes.order_events import ORDER_EVENTS
        from raptor_pim.passes.plan_memory import PLAN_MEMORY
        from raptor_pim.passes.to_pim import TO_PIM
        from raptor_pim.passes.verify import VERIFY

        return (*spatial_passes(), TO_PIM, ORDER_EVENTS, PLAN_MEMORY, VERIFY)

    def emit(
        self,
        module: Module,
        configuration: TargetConfiguration,
        path: Path,
        *,
        manifest: Mapping[str, Any],
        reports: Mapping[str, str],
        options: Mapping[str, Any],
        overwrite: bool,
    ) -> Mapping[str, Any]:
        """See raptor_pim.emit.emit_artifact."""
        from raptor_pim.emit import emit_artifact

        return emit_artifact(
            module,
            configuration.data,
            path,
            manifest=manifest,
            reports=reports,
            options=options,
            overwrite=overwrite,
        )

    def signature(self, path: Path) -> Signature:
        """See raptor_pim.inspection.read_signature."""
        from raptor_pim.inspection import read_signature

        return read_signature(path)

    def figures(self, path: Path) -> Mapping[str, Any]:
        """See raptor_pim.inspection.program_figures."""
        from raptor_pim.inspection import program_figures

        return program_figures(path)

    def disassemble(self, path: Path, core: int, start: int, count: int) -> Sequence[tuple[int, str]]:
        """See raptor_pim.inspection.disassemble_core."""
        from raptor_pim.inspection import disassemble_core

        return disassemble_core(path, core, start, count)


TARGET = PimTarget()
