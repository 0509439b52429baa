"""Hardware profiles of the target ``pim``: chips as data.

Each names a chip configuration in ``data``; all share one rule for the mesh (``data/mesh.json``).
"""

from __future__ import annotations

from pathlib import Path

from raptor_core.targets.contract import HardwareProfile

_DATA = Path(__file__).parent / "data"


def _profile(name: str, summary: str) -> HardwareProfile:
    return HardwareProfile(
        name=f"pim-{name}", target="pim", summary=summary, configuration=_DATA / f"{name.replace('-', '_')}.json"
    )


ARCH_A = _profile("arch-a", "168 cores (12 x 14), 96 crossbars of 128 x 128 each")
ARCH_B = _profile("arch-b", "138 cores (6 x 23), 128 crossbars of 128 x 128 each")
ARCH_C = _profile("arch-c", "64 cores (8 x 8), 8 crossbars of 512 x 1024 each")
STANDARD = _profile("standard", "144 cores (12 x 12), 64 crossbars of 128 x 128 each")

PROFILES = (ARCH_A, ARCH_B, ARCH_C, STANDARD)
"""All built-in profiles."""
