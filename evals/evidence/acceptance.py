"""Acceptance of draft tokens by the target, from summed counts."""

from collector.contract import Acceptance, Arm
from evals.evidence.columns import BoolColumn, Evidence, Side


def acceptance(evidence: Evidence) -> tuple[Acceptance, ...]:
    """Return the acceptance of each arm that speculated: all pairs first, then each cohort."""
    found = []
    for cohort in (None, *evidence.all_cohorts):
        for arm in Arm:
            side, scope = evidence.side(arm), evidence.scope(cohort)
            if (side.speculated & side.present & scope).any():
                found.append(_of(side, scope, arm, cohort))
    return tuple(found)


def rate(accepted_tokens: int, draft_tokens: int) -> float | None:
    """Return accepted/proposed draft tokens, `None` if none were proposed.

    With `length`, the single source of truth for the acceptance ratios.
    """
    return accepted_tokens / draft_tokens if draft_tokens > 0 else None


def length(accepted_tokens: int, steps: int) -> float | None:
    """Return tokens emitted per verify step, bonus token included; `None` without steps."""
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
        # Tokens of generations without a step count are left out, like their steps.
        length=length(int(side.accepted_tokens[with_steps].sum()), steps),
        rate_per_pos=rate_per_pos,
        drafts_per_pos=drafts_per_pos,
    )


def _per_position(side: Side, usable: BoolColumn) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return draft tokens and acceptance rates by position, up to the last drafted position.

    Only generations that have both lists count.
    """
    both = usable & side.draft_tokens_per_pos.given & side.accepted_tokens_per_pos.given
    drafts = side.draft_tokens_per_pos.totals(both)
    drafted = [int(n) for n in drafts if n > 0]
    accepted = [int(n) for n in side.accepted_tokens_per_pos.totals(both)]
    accepted += [0] * (len(drafted) - len(accepted))
    return tuple(drafted), tuple(a / d for a, d in zip(accepted, drafted, strict=False))
