"""The passes from the frontend's graph to a communicated module, the same for every target."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raptor_core.passes.base import Pass


def spatial_passes() -> tuple[Pass, ...]:
    """From ``lower`` to ``communicate``, in their order."""
    from raptor_core.spatial.passes.communicate import COMMUNICATE
    from raptor_core.spatial.passes.lower import LOWER
    from raptor_core.spatial.passes.merge import MERGE
    from raptor_core.spatial.passes.mirror import MIRROR
    from raptor_core.spatial.passes.plan_layouts import PLAN_LAYOUTS
    from raptor_core.spatial.passes.realise import REALISE
    from raptor_core.spatial.passes.schedule import SCHEDULE
    from raptor_core.spatial.passes.stage_inputs import STAGE_INPUTS

    return (LOWER, PLAN_LAYOUTS, REALISE, MERGE, STAGE_INPUTS, SCHEDULE, MIRROR, COMMUNICATE)
