"""What the people who got the answers did about them, by arm and cohort."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from collector.contract import Arm, Feedback, FeedbackKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackCount:
    """Generations of one arm in one cohort on which somebody gave feedback of one kind."""

    arm: Arm
    cohort: str | None
    kind: FeedbackKind
    given: int
    generations: int
    """All of the arm in the cohort that were looked at, with feedback or without."""


def by_arm(feedback: Iterable[Feedback], table: pa.Table) -> tuple[FeedbackCount, ...]:
    """Return counts over the rows of `Client.generation_batches`, none where nobody gave any.

    Several sources that say the same of one generation count once.
    """
    names = ("trace_id", "span_id", "arm", "cohort")
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    of = {(trace, span): (arm, cohort) for trace, span, arm, cohort in rows if arm is not None}
    said = {(f.trace_id, f.span_id, f.kind) for f in feedback}
    given = Counter((*of[trace, span], kind) for trace, span, kind in said if (trace, span) in of)
    if not given:
        return ()
    groups = Counter(of.values())
    ordered = sorted(groups, key=lambda group: (group[1] or "", group[0]))
    return tuple(
        FeedbackCount(
            arm=Arm(arm),
            cohort=cohort,
            kind=kind,
            given=given[arm, cohort, kind],
            generations=groups[arm, cohort],
        )
        for arm, cohort in ordered
        for kind in FeedbackKind
    )
