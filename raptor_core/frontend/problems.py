"""What keeps nodes of a network from being compiled, collected so that one error lists all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from raptor_core.diagnostics import RaptorError
from raptor_core.frontend.structure import GraphNode

HasLowering = Callable[[str], bool]
"""Whether an operator, by the name of OnnxNode.operator, can be lowered by an installed plugin."""


@attrs.frozen
class Problem:
    """Why one node is refused; ``code`` and ``hint`` are those of the error when all problems are alike."""

    code: str
    reason: str
    hint: str


def refuse_nodes(
    nodes: Sequence[GraphNode],
    problems: Iterable[tuple[GraphNode, Problem]],
    has_lowering: HasLowering | None,
    network: str,
    where: str,
) -> None:
    """Raise one RaptorError for all problems, in the order of ``nodes``; do nothing when there is none.

    With ``has_lowering``, nodes of other operators that nobody can lower are listed along with them, so that the user
    need not find them one run later.
    """
    found = {id(node): problem for node, problem in problems}
    if not found:
        return
    details, missing = [], 0
    for node in nodes:
        if has_lowering is not None and not has_lowering(node.operator):
            missing += 1
            reason = "no installed plugin lowers this operator"
            if id(node) in found:
                reason += f"; {found[id(node)].reason}"
        elif id(node) in found:
            reason = found[id(node)].reason
        else:
            continue
        details.append(f"{node.label} (node {node.index}): {reason}")
    ordered = [found[id(node)] for node in nodes if id(node) in found]
    codes = {problem.code for problem in ordered}
    code = "unsupported-operators" if missing else ordered[0].code if len(codes) == 1 else "unsupported-nodes"
    hint = "; ".join(dict.fromkeys(problem.hint for problem in ordered))
    if missing:
        hint = "'raptor plugins list --kind operator-lowering' shows the operators that can be compiled; "
        hint += "a plugin may add others"
    count = f"{len(details)} of {len(nodes)} nodes"
    raise RaptorError(
        code,
        f"{count} cannot be compiled",
        where=f"network '{network}' ({where})",
        details=details,
        hint=hint,
    )
