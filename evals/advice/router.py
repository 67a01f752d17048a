"""Rules for a router: which requests go to which arm."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import yaml

from collector.contract import Arm, InputBands, MayShip, is_input_band
from evals.advice.observations import Observation
from evals.advice.observed import e2e_ratios, prompts, speedup
from evals.advice.records import Action, Advice, Route, ScopeAdvice
from evals.advice.thresholds import MIN_GAIN, MIN_PROMPTS
from evals.errors import AdviceError

_HEADER = """\
# Which requests go where, by speed and by the newest verdict: only cohorts that it allows go to
# the candidate. A request matches a rule if every condition of the rule holds; the first that
# matches counts, and without one the default.
"""


def routes(
    pairs: Sequence[Observation], scopes: Sequence[ScopeAdvice], default: Arm
) -> tuple[Route, ...]:
    """Return rules to the baseline for requests that lose or may not ship, then to the candidate.

    Rules for all pairs together are made only if no pair has a cohort.
    """
    bands = [s for s in scopes if is_input_band(s.cohort)]
    scopes = [s for s in scopes if not is_input_band(s.cohort)]
    cohorts = [s for s in scopes if s.load is None and s.cohort is not None]
    whole = cohorts or [s for s in scopes if s.load is None]
    off = {s.cohort for s in whole if s.action is Action.DISABLE or s.judged is not MayShip.YES}
    found = _off_bands(bands)
    if default is Arm.CANDIDATE:
        found += [Route(cohort=s.cohort, reason=s.reason) for s in whole if s.cohort in off]
    found += [
        Route(
            cohort=s.cohort,
            concurrency_at_least=s.load[0],
            concurrency_at_most=s.load[1],
            reason=s.reason,
        )
        for s in scopes
        if s.load is not None and s.cohort not in off and s.action is Action.DISABLE
    ]
    for scope in whole:
        own = [p for p in pairs if scope.cohort in (None, p.cohort)]
        if scope.cohort not in off and (rule := _short_answers_rule(scope.cohort, own)) is not None:
            found.append(rule)
    if default is Arm.BASELINE:
        found += [
            Route(to=Arm.CANDIDATE, cohort=s.cohort, reason=s.reason)
            for s in whole
            if s.cohort not in off
        ]
    return tuple(found)


def _off_bands(bands: Sequence[ScopeAdvice]) -> list[Route]:
    """Return rules to the baseline for bands that lose or may not ship, whatever the cohort.

    Requests of unknown length go there unless a verdict allows them.
    """
    off = [s for s in bands if s.action is Action.DISABLE or s.judged is not MayShip.YES]
    found = [Route(cohort=s.cohort, reason=s.reason) for s in off]
    if bands and InputBands.UNKNOWN not in {s.cohort for s in bands}:
        why = "no pair of unknown length was judged"
        found.append(Route(cohort=InputBands.UNKNOWN, reason=why))
    return found


def write(path: Path, advice: Advice) -> None:
    """Write the rules as YAML; raises `AdviceError` if the file cannot be written."""
    rules = [
        {
            "to": rule.to.value,
            **({} if rule.cohort is None else {"cohort": rule.cohort}),
            **_bounds("concurrency", rule.concurrency_at_least, rule.concurrency_at_most),
            **({} if rule.max_tokens_below is None else _below(rule.max_tokens_below)),
            "reason": rule.reason,
        }
        for rule in advice.routes
    ]
    document = {
        "version": 1,
        "rollout": advice.rollout,
        "default": advice.default.value,
        "rules": rules,
    }
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    try:
        path.write_text(_HEADER + text, encoding="utf-8")
    except OSError as exc:
        raise AdviceError(f"{path}: cannot be written ({exc.strerror or exc})") from exc


def _bounds(name: str, least: int | None, most: int | None) -> dict[str, dict[str, int]]:
    return {} if least is None or most is None else {name: {"at_least": least, "at_most": most}}


def _below(limit: int) -> dict[str, dict[str, int]]:
    return {"max_tokens": {"below": limit}}


def _short_answers_rule(cohort: str | None, pairs: Sequence[Observation]) -> Route | None:
    """Return a rule for short answers (small `max_tokens`), if each group of them loses.

    The error level is split over the groups, so that testing several makes no false loss likelier.
    """
    groups = _groups(pairs)
    if len(groups) < 2:
        return None
    losing = 0
    for group in groups[:-1]:
        found = speedup(e2e_ratios(group), 1 - 0.05 / len(groups))
        if found is None or found.upper is None or 1 / found.upper - 1 <= MIN_GAIN:
            break
        losing += 1
    if not losing:
        return None
    below = min(p.max_tokens for p in groups[losing] if p.max_tokens is not None)
    lost = speedup(e2e_ratios([p for group in groups[:losing] for p in group]))
    times = f"{lost.estimate:.2f}× end to end" if lost else "slower"
    reason = f"short answers lose: {times} where max_tokens < {below}"
    return Route(cohort=cohort, max_tokens_below=below, reason=reason)


def _groups(pairs: Sequence[Observation]) -> list[list[Observation]]:
    """Group pairs by ascending `max_tokens`, with enough prompts each; the rest joins the last."""
    ordered = sorted({p.max_tokens for p in pairs if p.max_tokens is not None})
    groups: list[list[Observation]] = [[]]
    for low, high in pairwise([*ordered, None]):
        groups[-1] += [p for p in pairs if p.max_tokens == low]
        if high is not None and prompts(e2e_ratios(groups[-1])) >= MIN_PROMPTS:
            groups.append([])
    if len(groups) > 1 and prompts(e2e_ratios(groups[-1])) < MIN_PROMPTS:
        last = groups.pop()
        groups[-1] += last
    return groups
