"""What a network's convolutions and matrix products ask of crossbars, before anything is decided about them.

The least work of a network is counted from these facts (``reports/products.json`` of a program folder).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from raptor_core.ir.operation import Types
from raptor_core.spatial.plans import ConvPlan

FACTS_FILE = "products.json"


def product_facts(plan: ConvPlan, types: Types) -> dict[str, str | int]:
    """One plan: ``groups`` matrices of ``rows`` x ``columns``, each multiplied at ``positions`` positions."""
    weights, result = types[plan.operands[1]].shape, types[plan.results[0]].shape
    return {
        "layer": plan.name,
        "positions": math.prod(result) // max(result[plan.channel_axis], 1),
        "groups": plan.groups,
        "rows": math.prod(weights[1:]),
        "columns": weights[0] // plan.groups,
    }


def facts_text(plans: Iterable[ConvPlan], types: Types) -> str:
    """The facts of all plans as JSON, one line for each."""
    lines = ",\n".join(json.dumps(product_facts(plan, types)) for plan in plans)
    return f"[\n{lines}\n]\n"
