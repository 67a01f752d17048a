"""How many draft tokens the target accepted, from summed counts."""

import numpy as np

from collector.contract import Acceptance, Arm
from evals.evidence import BoolColumn, Evidence, Side


def acceptance(evidence: Evidence) -> tuple[Acceptance, ...]:
    """Return the acceptance of each arm that speculated: the pool first, then each cohort."""
    found = []
    for cohort in (None, *evidence.cohorts):
        for arm in Arm:
            side, scope = evidence.side(arm), evidence.scope(cohort)
            if (side.speculated & side.present & scope).any():
                found.append(_of(side, scope, arm, cohort))
    return tuple(found)


def rate(accepted_tokens: int, draft_tokens: int) -> float | None:
    """Return accepted/proposed draft tokens, `None` where nothing was proposed.

    With `length`, the single source of truth for the acceptance ratios.
    """
    return accepted_tokens / draft_tokens if draft_tokens > 0 else None


def length(accepted_tokens: int, steps: int) -> float | None:
    """Return tokens emitted a verify step, bonus token included; `None` without steps."""
    return 1 + accepted_tokens / steps if steps > 0 else None


def _of(side: Side, scope: BoolColumn, arm: Arm, cohort: str | None) -> Acceptance:
    speculated = side.speculated & side.present & scope
    usable = speculated & side.counts_usable
    with_steps = usable & (side.steps >= 0)
    drafts = int(side.draft_tokens[usable].sum())
    accepted = int(side.accepted_tokens[usable].sum())
    steps = int(side.steps[with_steps].sum())
    drafts_per_pos, rate_per_pos = _per_position(side, usable)
    return Acceptance(
        cohort=cohort,
        arm=arm,
        generations=int(usable.sum()),
        excluded=int((speculated & ~usable).sum()),
        steps=steps,
        draft_tokens=drafts,
        accepted_tokens=accepted,
        rate=rate(accepted, drafts),
        # A generation without a step count cannot lengthen the steps of the others.
        length=length(int(side.accepted_tokens[with_steps].sum()), steps),
        rate_per_pos=rate_per_pos,
        drafts_per_pos=drafts_per_pos,
    )


def _per_position(side: Side, usable: BoolColumn) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Sum the per-position counts of the generations that have both lists, up to the last draft."""
    drafts: list[int] = []
    accepted: list[int] = []
    for i in np.flatnonzero(usable):
        proposed, kept = side.draft_tokens_per_pos[i], side.accepted_tokens_per_pos[i]
        if proposed is None or kept is None:
            continue
        _add(drafts, proposed)
        _add(accepted, kept)
    drafted = [n for n in drafts if n > 0]
    accepted += [0] * (len(drafted) - len(accepted))
    return tuple(drafted), tuple(a / d for a, d in zip(accepted, drafted, strict=False))


def _add(totals: list[int], counts: tuple[int, ...]) -> None:
    totals += [0] * (len(counts) - len(totals))
    for position, count in enumerate(counts):
        totals[position] += count
