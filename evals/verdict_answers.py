"""A verdict's answers as lines of text: may it ship, for which cohorts, how many more prompts."""

from collections.abc import Iterator

from collector.contract import Answer, Change, LaunchCounts, Outcome, Verdict

_SHIPS = {
    Outcome.PASS: "May it ship: yes.",
    Outcome.FAIL: "May it ship: no.",
    Outcome.INCONCLUSIVE: "May it ship: unknown.",
}
_MARKS = {Answer.YES: "✓", Answer.NO: "✕", Answer.UNKNOWN: "?"}


def may_it_ship(verdict: Verdict) -> str:
    """Return the sentence that says whether the release may ship."""
    return _SHIPS[verdict.outcome]


def cohort_lines(verdict: Verdict) -> list[str]:
    """Return one line per cohort: yes, no, or unknown with the missing evidence."""
    lines = []
    for one in verdict.cohorts:
        more = "" if one.prompts_needed is None else f"; {_about(one.prompts_needed)}"
        mark = f"{_MARKS[one.answer]} {one.cohort}: {one.answer.value}"
        lines.append(f"{mark}, {one.because}{more}")
    return lines


def need_lines(verdict: Verdict) -> list[str]:
    """Return how many more prompts and launches are needed, if known."""
    lines = []
    if verdict.prompts_needed is not None:
        lines.append(f"To prove what must pass: {_about(verdict.prompts_needed)}.")
    if verdict.prompts_needed_for_guards is not None:
        lines.append(
            f"To decide every guard too: {_about(verdict.prompts_needed_for_guards)}; "
            "an undecided guard does not hold a release up."
        )
    if (launches := verdict.launches_needed) is not None:
        more = f"about {launches:,} more launch{'' if launches == 1 else 'es'} of each arm"
        lines.append(f"To prove what must pass: {more}.")
    return lines


def scope_lines(verdict: Verdict) -> list[str]:
    """Return the limits of the verdict: its change, its launches, and its assumption."""
    lines = [] if verdict.change is None else [f"The change: {_in_words(verdict.change)}."]
    lines += [] if verdict.launches is None else [_of_launches(verdict.launches)]
    return [*lines, verdict.assumption] if verdict.assumption else lines


def _in_words(change: Change) -> str:
    return change.value.replace("_", " ")


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
    for line in scope_lines(verdict):
        yield "assumption", line


def _about(prompts: int) -> str:
    return f"about {prompts:,} more workload prompts"
