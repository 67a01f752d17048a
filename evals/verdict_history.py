"""Add the policy's registration, earlier looks and earlier rollouts to a verdict."""

from collections.abc import Sequence
from dataclasses import replace

from collector.contract import (
    EarlierRollout,
    EarlierVerdict,
    Outcome,
    RolloutHistory,
    Standing,
    Verdict,
    VerdictHistory,
)
from collector.nouns import counted
from evals.policy import Policy
from evals.policy.registration import changes

_SHOWN = 20
_NAMED = 5


def with_history(
    verdict: Verdict, history: RolloutHistory, policy: Policy, *, strict: bool = False
) -> Verdict:
    """Return the verdict with the history of its registration and of earlier tries.

    With `strict`, a pass under any policy but the registered one becomes inconclusive.
    """
    past = _history(verdict, history, policy, strict=strict)
    verdict = replace(verdict, history=past)
    if past.standing is Standing.REGISTERED or verdict.outcome is not Outcome.PASS:
        return verdict
    if not strict:
        return replace(verdict, summary=f"{verdict.summary} {_WARNINGS[past.standing]}")
    summary = f"{verdict.rollout} is inconclusive: its policy is {past.standing} (--strict)."
    reasons = (past.notes[0], f"Without --strict: {verdict.summary}", *verdict.reasons)
    return replace(verdict, outcome=Outcome.INCONCLUSIVE, summary=summary, reasons=reasons)


_WARNINGS = {
    Standing.EDITED: "The policy is not the one that was registered before the first pair.",
    Standing.LATE: "The policy was registered after the first pair.",
    Standing.UNREGISTERED: "No policy was registered before the first pair.",
}


def _history(
    verdict: Verdict, history: RolloutHistory, policy: Policy, *, strict: bool
) -> VerdictHistory:
    registered = history.registered
    differing = () if registered is None else changes(registered.text, policy)
    parts = [part for part in verdict.evidence if not part.control]
    siblings = () if policy.family is None else policy.family.rollouts
    ours = {part.rollout for part in parts}.union(siblings)
    after = next((p.arrived_after for p in parts if p.rollout == verdict.rollout), 0)
    earlier = [v for v in history.verdicts if _key(v) != (verdict.data_hash, verdict.policy_hash)]
    rollouts = tuple(one for one in history.rollouts if one.rollout not in ours)
    standing = _standing(history, policy)
    looks = {v.data_hash for v in earlier if not v.watch and (v.arrived_after or 0) == after}
    holds_for_all = "watch" in verdict.versions or verdict.looks != ()
    look = 1 if holds_for_all else 1 + len(looks - {verdict.data_hash})
    notes = (
        _registration_words(history, standing, differing),
        *_look_words(look, policy.alpha_pass),
        *_earlier_words(earlier),
        *_rollout_words(verdict.rollout, rollouts, policy),
    )
    return VerdictHistory(
        standing=standing,
        strict=strict,
        registered_name=None if registered is None else registered.policy_name,
        registered_hash=None if registered is None else registered.policy_hash,
        registered_by=None if registered is None else registered.who,
        changes=differing,
        look=look,
        earlier=len(earlier),
        verdicts=tuple(earlier[-_SHOWN:]),
        rollouts=rollouts,
        notes=notes,
    )


def _key(verdict: EarlierVerdict) -> tuple[str, str]:
    return (verdict.data_hash, verdict.policy_hash)


def _standing(history: RolloutHistory, policy: Policy) -> Standing:
    if history.registered is not None:
        same = history.registered.policy_hash == policy.policy_hash
        return Standing.REGISTERED if same else Standing.EDITED
    return Standing.LATE if history.registrations else Standing.UNREGISTERED


def _registration_words(
    history: RolloutHistory, standing: Standing, differing: Sequence[str]
) -> str:
    registered, name = history.registered, history.rollout
    if registered is not None:
        which = f"{registered.policy_name} {registered.policy_hash[:12]}"
        if standing is Standing.REGISTERED:
            return f"The policy is {which}, registered by {registered.who} before the first pair."
        what = "; ".join(differing) or "the name"
        return (
            f"The policy is not the registered one, {which} (by {registered.who} before the first "
            f"pair). What changed: {what}."
        )
    if standing is Standing.LATE:
        return (
            "The policy was registered after the first pair, so that it may have been chosen to "
            "fit the answers: register it before the next rollout's first request."
        )
    return (
        "No policy was registered before the first pair: `draftgate run` does that, and for other "
        f"traffic `draftgate register {name} --policy FILE`."
    )


def _look_words(look: int, level: float) -> tuple[str, ...]:
    if look == 1:
        return ()
    words = (
        f"This is the {_ordinal(look)} look at this rollout's growing data; the level {level:g} "
        "holds for one look. Look once, when the planned pairs are there, or use `draftgate "
        "watch`, whose level holds for all its looks together."
    )
    return (words,)


def _earlier_words(earlier: Sequence[EarlierVerdict]) -> tuple[str, ...]:
    if not earlier:
        return ()
    named = [
        f"{v.outcome} on {counted(v.pairs, 'pair')} under {v.policy_name} {v.policy_hash[:8]} "
        f"({v.id[:8]})"
        for v in earlier[-_NAMED:]
    ]
    more = f"; {len(earlier) - _NAMED} before these" if len(earlier) > _NAMED else ""
    return (f"{counted(len(earlier), 'earlier verdict')}: {', '.join(named)}{more}.",)


def _rollout_words(
    rollout: str, rollouts: Sequence[EarlierRollout], policy: Policy
) -> tuple[str, ...]:
    if not rollouts:
        return ()
    named = [f"{r.rollout} ({r.outcome or 'no verdict'})" for r in rollouts[-_NAMED:]]
    more = f" and {len(rollouts) - _NAMED} before these" if len(rollouts) > _NAMED else ""
    pool = " ".join([rollout, *(r.rollout for r in rollouts[-_NAMED:])])
    remedy = "Watch one rollout with `draftgate watch`"
    if policy.paired:
        remedy = f"Judge them together with `draftgate gate {pool}`, or watch one rollout instead"
    words = (
        f"{counted(len(rollouts), 'earlier rollout')} of the same candidate: "
        f"{', '.join(named)}{more}. The level {policy.alpha_pass:g} holds for one try. {remedy}."
    )
    return (words,)


def _ordinal(number: int) -> str:
    last = number % 10 if number % 100 not in (11, 12, 13) else 0
    ending = {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
    return f"{number}{ending}"
