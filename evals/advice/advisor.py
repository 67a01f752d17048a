"""Decide on speculation for each cohort: keep it, change k, disable it, or record more."""

from collections.abc import Mapping, Sequence

from collector.contract import InputBands, Verdict, acceptance_collapsed, bands_named
from evals.advice import scope_numbers
from evals.advice.forecast import DRAWS, SEED
from evals.advice.observations import Observation, in_bands
from evals.advice.permission import Permission, PermittedAction
from evals.advice.records import Action, Advice, Estimate, KForecast, ScopeAdvice, Trial, Wasted
from evals.advice.router import routes
from evals.advice.scope_numbers import AdviceScope, Numbers, numbers
from evals.advice.thresholds import MIN_GAIN, MIN_PROMPTS, MIN_STEPS
from evals.evidence.drafting import adaptations
from evals.report.number_words import change_of_time


def advise(
    rollout: str,
    pairs: Sequence[Observation],
    others: Mapping[str, Sequence[Observation]] | None = None,
    verdict: Verdict | None = None,
    bands: InputBands | None = None,
) -> Advice:
    """Return the advice on a rollout, from its pairs' speed and its newest verdict.

    `others` are rollouts of the same routes at another k; the forecasts use them too. Without
    `bands`, those that the verdict judged are advised on.
    """
    if bands is None and verdict is not None:
        bands = bands_named(one.cohort for one in verdict.cohorts)
    pairs = in_bands(pairs, bands)
    other_pairs = in_bands([p for found in (others or {}).values() for p in found], bands)
    permission = Permission(rollout, verdict)
    every = _scopes(pairs, bands)
    scopes = tuple(_advice(s, s.of(pairs), s.of(other_pairs), permission) for s in every)
    return Advice(
        rollout=rollout,
        others=tuple(others or ()),
        bootstrap_seed=SEED,
        bootstrap_draws=DRAWS,
        scopes=scopes,
        load_adaptations=adaptations([p.drafts for p in pairs if p.drafts is not None]),
        default=permission.default,
        routes=routes(pairs, scopes, permission.default),
    )


def _scopes(pairs: Sequence[Observation], bands: InputBands | None) -> list[AdviceScope]:
    """Return all pairs, cohorts, bands, and each load of a cohort that has several loads.

    If no pair has a cohort, the loads are of all pairs.
    """
    cohorts = sorted({p.cohort for p in pairs if p.cohort is not None})
    found = [AdviceScope(None), *(AdviceScope(cohort) for cohort in cohorts), *_bands(pairs, bands)]
    leaves: list[str | None] = [*cohorts] or [None]
    for cohort in leaves:
        loads = sorted({p.load for p in AdviceScope(cohort).of(pairs) if p.load is not None})
        if len(loads) > 1:
            found += [AdviceScope(cohort, load) for load in loads]
    return found


def _bands(pairs: Sequence[Observation], bands: InputBands | None) -> list[AdviceScope]:
    """Return the bands that have pairs, from the shortest; unknown lengths last."""
    there = {p.band for p in pairs}
    names = () if bands is None else (*bands.names, bands.UNKNOWN)
    return [AdviceScope(name) for name in names if name in there]


def _advice(
    scope: AdviceScope,
    pairs: Sequence[Observation],
    others: Sequence[Observation],
    permission: Permission,
) -> ScopeAdvice:
    n = numbers(pairs, others)
    decision = permission.limited(_decide(n), scope.cohort)
    here = next((f for f in n.by_k if f.k == n.now), None)
    best = _best(n)
    return ScopeAdvice(
        cohort=scope.cohort,
        load=scope.load,
        action=decision.action,
        reason=decision.reason + _collapse_note(n.wasted),
        judged=permission.answer(scope.cohort),
        missing=decision.missing,
        pairs=n.timed,
        left_out=n.pairs - n.timed,
        k=n.now,
        best_k=best.k if best else None,
        e2e_speedup=n.e2e,
        tpot_speedup=n.tpot,
        predicted_tpot_speedup=here.tpot_speedup.estimate if here and here.tpot_speedup else None,
        predicted_e2e_speedup=n.predicted_e2e,
        steps=n.steps,
        acceptance_survival=n.model.survival.probabilities if n.model else (),
        cost=scope_numbers.cost(n),
        break_even_tokens_a_step=scope_numbers.break_even(n),
        gap=scope_numbers.gap(n),
        wasted=n.wasted,
        trial=scope_numbers.trial(n),
        by_k=n.by_k,
    )


def _collapse_note(wasted: Wasted | None) -> str:
    """Return a note if acceptance is so low that something must be broken, else nothing."""
    if wasted is None:
        return ""
    accepted = wasted.draft_tokens - wasted.wasted_tokens
    if not acceptance_collapsed(accepted, wasted.draft_tokens):
        return ""
    share = accepted / wasted.draft_tokens
    return f"; acceptance collapsed: {share:.1%} of {wasted.draft_tokens:,} draft tokens"


def _decide(n: Numbers) -> PermittedAction:
    missing = _missing(n)
    if n.prompts < MIN_PROMPTS or n.e2e is None or n.e2e.lower is None or n.e2e.upper is None:
        return PermittedAction(Action.UNKNOWN, "too little to judge", missing)
    faster = _end_to_end(n.e2e)
    best = _best(n)
    if best and best.k and best.k != n.now and best.gain and (best.gain.lower or 0) > MIN_GAIN:
        return PermittedAction(
            Action.CHANGE_K,
            f"k = {best.k} instead of {n.now}: {_gained(best.gain.estimate)} a token, "
            f"{_gained(best.gain.lower or 0)} at least; now {faster}{_longer_k_note(n)}",
            missing,
        )
    if 1 / n.e2e.upper - 1 > MIN_GAIN:
        return PermittedAction(Action.DISABLE, f"{faster}{_slow_note(n)}", missing)
    if n.e2e.lower > 1 / (1 + MIN_GAIN):
        return PermittedAction(Action.KEEP, _keep_reason(n, faster), missing)
    words = f"{faster}: the limits hold both a gain and a loss"
    if n.e2e.upper < 1:
        words = f"{faster}: perhaps by less than {MIN_GAIN:.0%}"
    return PermittedAction(Action.UNKNOWN, words, (*missing, "more pairs, to narrow the limits"))


def _end_to_end(speedup: Estimate) -> str:
    time = speedup.inverse()
    limits = f"{time.lower:.2f} to {time.upper:.2f}"
    return f"{change_of_time(time.estimate)} end to end ({time.estimate:.2f}, {limits})"


def _gained(gain: float) -> str:
    """Return a gain of speed as the change of time that it brings."""
    return change_of_time(1 / (1 + gain))


def _keep_reason(n: Numbers, faster: str) -> str:
    if n.e2e is not None and n.e2e.lower is not None and n.e2e.lower < 1:
        return f"{faster}: no change would bring {MIN_GAIN:.0%}"
    tried = scope_numbers.trial(n)
    if tried is not None and tried.gain_at_most > MIN_GAIN:
        return f"{faster}; {_trial_note(tried)}"
    return faster + _longer_k_note(n)


def _longer_k_note(n: Numbers) -> str:
    """Suggest recording a longer k than any recorded one; no advice rests on an extrapolation."""
    best = _best(n)
    if best is None or best.tpot_speedup is None:
        return ""
    above = [f for f in n.by_k if f.extrapolated and f.tpot_speedup and f.gain]
    far = max(above, key=lambda f: f.gain.estimate if f.gain else 0, default=None)
    if far is None or far.gain is None or (far.gain.lower or 0) <= MIN_GAIN:
        return ""
    if best.gain is not None and far.gain.estimate <= best.gain.estimate + MIN_GAIN:
        return ""
    return (
        f"; k = {far.k}, longer than any recorded, might be {_gained(far.gain.estimate)} a token: "
        "record it"
    )


def _trial_note(tried: Trial) -> str:
    return f"k = {tried.k} might be up to {_gained(tried.gain_at_most)} a token: record it"


def _slow_note(n: Numbers) -> str:
    """Compare the tokens a step with those that the cost of a step requires."""
    needed = scope_numbers.break_even(n)
    if needed is None or n.model is None or n.now is None:
        return ""
    emitted = n.model.survival.tokens_a_step(n.now)
    if emitted >= needed:
        return f"; not by its steps ({emitted:.2f} tokens each, {needed:.2f} needed)"
    if needed > n.now + 1:
        return f"; a step costs {needed:.2f} of the baseline's, more than k + 1 tokens could earn"
    return f"; {emitted:.2f} tokens per step, {needed:.2f} needed"


def _best(n: Numbers) -> KForecast | None:
    """Return the fastest k from 0 to the longest recorded; `None` if costs cannot be split."""
    if n.model is None or n.model.cost is None or n.steps < MIN_STEPS:
        return None
    if n.modelled_prompts < MIN_PROMPTS:
        return None
    known = [f for f in n.by_k if f.tpot_speedup is not None and not f.extrapolated]
    return max(known, key=lambda f: f.tpot_speedup.estimate if f.tpot_speedup else 0, default=None)


def _missing(n: Numbers) -> tuple[str, ...]:
    """List the missing evidence, each with its purpose."""
    lacking = []
    if n.prompts < MIN_PROMPTS:
        lacking.append(
            f"{MIN_PROMPTS - n.prompts} more prompts that both arms answered, "
            f"to have the {MIN_PROMPTS} that advice needs"
        )
    elif n.e2e is None:
        lacking.append("durations that vary: equal ratios measure nothing")
    if n.wasted is None:
        lacking.append("usable counts of verify steps: nothing says how drafts fared")
    elif n.now is None:
        lacking.append("accepted tokens by position and times to first token, for a forecast")
    elif n.model is None:
        lacking.append("verify steps after the first token, to tell what one costs")
    else:
        if n.steps < MIN_STEPS:
            lacking.append(f"{MIN_STEPS - n.steps} more verify steps, for another k")
        if n.model.cost is None:
            lacking.append("a rollout at another k, which shows what a draft token costs")
    return tuple(lacking)
