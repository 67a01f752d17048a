"""A verdict's answers as lines of text: may it ship, for which cohorts, how many more prompts."""

from collections.abc import Iterator

from collector.contract import (
    Change,
    Family,
    LaunchCounts,
    MayShip,
    Outcome,
    Role,
    ScopeLooks,
    Verdict,
)
from collector.nouns import counted
from evals.report.drafting_words import adaptation_words

_SHIPS = {
    Outcome.PASS: "May it ship: yes.",
    Outcome.FAIL: "May it ship: no.",
    Outcome.INCONCLUSIVE: "May it ship: unknown.",
}
MARKS = {MayShip.YES: "✓", MayShip.NO: "✕", MayShip.UNKNOWN: "?"}


def may_it_ship(verdict: Verdict) -> str:
    """Return the sentence that says whether the release may ship."""
    return _SHIPS[verdict.outcome]


def cohort_lines(verdict: Verdict) -> list[str]:
    """Return one line per cohort: yes, no, or unknown with the missing evidence."""
    lines = []
    for one in verdict.cohorts:
        more = "" if one.prompts_needed is None else f"; {_about(one.prompts_needed)}"
        mark = f"{MARKS[one.answer]} {one.cohort}: {one.answer.value}"
        lines.append(f"{mark}, {one.because}{more}")
    return lines


def need_lines(verdict: Verdict) -> list[str]:
    """Return how many more prompts and launches are needed, if known."""
    lines = []
    if verdict.prompts_needed is not None:
        lines.append(f"To prove what must pass: {_about(verdict.prompts_needed)}.")
    if verdict.prompts_needed_for_guards is not None:
        lines.append(
            f"To decide every guard: {_about(verdict.prompts_needed_for_guards)}; "
            "an undecided guard does not hold a release up."
        )
    if (launches := verdict.launches_needed) is not None:
        more = f"about {counted(launches, 'more launch', 'more launches')} of each arm"
        lines.append(f"To prove what must pass: {more}.")
    return lines


def look_lines(verdict: Verdict) -> list[str]:
    """Return how far each scope's declared looks went, and the one that decided it."""
    return [_of_looks(one, look_decision(one, verdict)) for one in verdict.looks]


def look_decision(found: ScopeLooks, verdict: Verdict) -> str:
    """Return which look decided a scope, in words."""
    if found.decided_at is not None:
        return f"decided at look {found.decided_at}"
    proofs = [f for f in verdict.findings if f.role is Role.PROVE and f.cohort == found.cohort]
    return "undecided" if proofs else "guards alone"


def confidence_words(verdict: Verdict) -> str:
    """Return the confidence of the findings' limits."""
    if verdict.looks:
        return "each at its look's confidence"
    return f"{verdict.findings[0].confidence if verdict.findings else 0.95:.0%} each"


def _of_looks(found: ScopeLooks, decision: str) -> str:
    scope = "all cohorts" if found.cohort is None else found.cohort
    if not found.taken:
        return f"{scope}: {decision}, before the first look"
    reached, planned = found.pairs[found.taken - 1], found.pairs[-1]
    return (
        f"{scope}: {decision}; look {found.taken} of {len(found.pairs)} is reached, with "
        f"{reached:,} of {planned:,} pairs"
    )


def scope_lines(verdict: Verdict) -> list[str]:
    """Return the limits of the verdict: its change, launches, loads and assumption."""
    lines = [] if verdict.change is None else [f"The change: {_in_words(verdict.change)}."]
    lines += [] if verdict.family is None else [_of_family(verdict.family)]
    lines += [] if verdict.launches is None else [_of_launches(verdict.launches)]
    lines += map(adaptation_words, verdict.load_adaptations)
    return [*lines, verdict.assumption] if verdict.assumption else lines


def _in_words(change: Change) -> str:
    return change.value.replace("_", " ")


def _of_family(family: Family) -> str:
    return (
        f"One of {len(family.arms)} candidates of {family.name}: each is judged at the policy's "
        f"levels divided by {len(family.arms)}, so that they hold for all candidates together."
    )


def _of_launches(found: LaunchCounts) -> str:
    if found.holds_over_launches:
        return f"Times hold over launches: {found.independent} independent ones of each server."
    seen = f"{found.baseline} of the baseline's server and {found.candidate} of the candidate's"
    return (
        f"Times speak of these launches alone, {seen}: another launch may be faster or slower, "
        "which 3 or more of each can tell (`load.launches`)."
    )


def answers(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Yield (name, line) of each answer."""
    yield "ship", f"{may_it_ship(verdict)} {verdict.summary}"
    for one, line in zip(verdict.cohorts, cohort_lines(verdict), strict=True):
        yield f"cohort {one.cohort}", line
    for line in need_lines(verdict):
        yield "prompts needed", line
    for line in look_lines(verdict):
        yield "looks", line
    for line in scope_lines(verdict):
        yield "assumption", line


def _about(prompts: int) -> str:
    return f"about {counted(prompts, 'more workload prompt')}"
