"""The longest disturbance that a verdict protects against."""

from collections.abc import Sequence

from collector.contract import Role
from collector.nouns import counted
from evals.evidence.declared_looks import DeclaredLooks
from evals.gate.cells import Cell
from evals.gate.wording import margin, subject
from evals.policy import Policy
from evals.stats.stretches import needed

_LONGER = 25
"""Requests in the example of a longer outage, if the policy declares a shorter one."""


def assumption(cells: Sequence[Cell], policy: Policy, looks: DeclaredLooks | None = None) -> str:
    """Return the stretch of harm that a verdict protects against, and the need of a longer one.

    With declared looks, also why it holds although the run ended when it was decided.
    """
    stopping = "" if looks is None else f" {_stopping(looks, policy)}"
    return f"{_stretch(cells, policy)}{stopping}"


def _stopping(looks: DeclaredLooks, policy: Policy) -> str:
    return (
        f"Judged at {looks.count} looks that were declared before the first pair and share the "
        f"level {policy.alpha_pass:g}, so that it holds although the run ends when it is decided."
    )


def _stretch(cells: Sequence[Cell], policy: Policy) -> str:
    rules = policy.dependence
    longer = max(_LONGER, 2 * rules.stretch)
    if rules.stretch_s is not None:
        lasts, longer = f"{rules.stretch_s:g} s", _LONGER
    else:
        lasts = counted(rules.stretch, "request")
    words = f"Holds against harm that lasts up to {lasts} (`dependence.stretch`)"
    shares = [c for c in cells if c.rule.stat == "diff" and c.rule.role is Role.PROVE]
    if not shares:
        return f"{words}."
    tightest = min(shares, key=lambda cell: abs(cell.rule.margin))
    pairs = needed(longer, abs(tightest.rule.margin), policy.alpha_pass)
    return (
        f"{words}; harm to {longer:,} requests in a row would need at least {pairs:,} unharmed "
        f"{tightest.unit} to be excluded, for the {subject(tightest)}, {margin(tightest)}."
    )
