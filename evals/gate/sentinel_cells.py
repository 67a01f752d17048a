"""Judge whether answers depend on the requests before them, by prompts asked again and again.

Rounding may change a greedy answer when requests share a batch, in any arm and at any time. An
answer depends on earlier requests if its changes stand together in time, or come directly after
prompts of the same prefix. A lossless policy also compares how often the arms' answers change.
"""

from collections.abc import Iterator, Sequence

from collector.contract import Arm, Finding, Outcome, Reason, Role, SentinelAnswers, SentinelChange
from evals.evidence.sentinels import SentinelSeries
from evals.gate.lossless_finding import LosslessComparison, lossless_finding
from evals.gate.measured import Obstacle
from evals.policy import Policy
from evals.report.sentinel_words import changed_words
from evals.stats import Insufficient, Interval
from evals.stats.exchangeable import combined_p, group_p, order_p
from evals.stats.holm import adjusted
from evals.stats.tango import METHOD, paired_difference

METRIC, STAT = "sentinel_answers", "diff"
MARGIN = 0.05
"""Share of the answers by which the candidate's may change more often than the baseline's."""


def sentinel_answers(
    every: Sequence[SentinelSeries], policy: Policy
) -> tuple[SentinelAnswers, ...]:
    """Return the answers by sentinel, launch and arm, and whether they depend on earlier requests.

    Each series is tested for an order in time and for a difference after its neighbour; Fisher's
    method combines each test's p values over an arm's series, Holm's covers tests and arms. The
    level is the policy's for drift.
    """
    ps = [_tests(one) for one in every]
    of_arms = [
        combined_p([p[test] for one, p in zip(every, ps, strict=True) if one.arm is arm])
        for arm in Arm
        for test in range(_TESTS)
    ]
    corrected = adjusted(of_arms)
    found = []
    for one, own in zip(every, ps, strict=True):
        first = _TESTS * tuple(Arm).index(one.arm)
        clear = [
            p is not None and p < policy.validity.drift_p_min
            for p in corrected[first : first + _TESTS]
        ]
        likely = [p is not None and p <= _LIKELY for p in own]
        found.append(_answers(one, depends=any(map(all, zip(clear, likely, strict=True)))))
    return tuple(found)


_TESTS = 2
_LIKELY = 0.2
"""Largest p value of a series that takes part in its arm's dependence."""


def _tests(series: SentinelSeries) -> tuple[float | None, float | None]:
    changed = series.changed
    if not changed.any():
        return None, None
    return order_p(changed), group_p(changed, series.after_neighbour)


def _answers(series: SentinelSeries, *, depends: bool) -> SentinelAnswers:
    return SentinelAnswers(
        sentinel=series.sentinel,
        arm=series.arm,
        launch=series.launch,
        answers=len(series.asks),
        changed=int(series.changed.sum()),
        depends=depends,
        first_change=_first_change(series),
    )


def _first_change(series: SentinelSeries) -> SentinelChange | None:
    place = series.first_change
    if place is None:
        return None
    ask, before = series.asks[place], series.preceding
    requests = before[place].requests - before[place - 1].requests
    return SentinelChange(
        trace_id=ask.trace_id,
        start_unix_ns=ask.start_unix_ns,
        number=place + 1,
        after=ask.after,
        requests=requests,
        prompt_id=before[place].prompt_id if requests else None,
    )


def state_obstacles(every: Sequence[SentinelSeries], policy: Policy) -> Iterator[Obstacle]:
    """Yield an obstacle for each arm whose answers depend on the requests before them.

    The candidate's state may do harm, which can still fail a cell; the baseline's makes it no
    reference, so that nothing can.
    """
    for arm, words in _dependent(every, policy):
        of_baseline = arm is Arm.BASELINE
        yield Obstacle(Reason.STATE, words, bars_fail=of_baseline, bars_harm=of_baseline)


def state_suspicions(every: Sequence[SentinelSeries], policy: Policy) -> tuple[str, ...]:
    """Return a sentence for each arm whose answers depend on the requests before them."""
    return tuple(words for _, words in _dependent(every, policy))


def _dependent(every: Sequence[SentinelSeries], policy: Policy) -> Iterator[tuple[Arm, str]]:
    found = sentinel_answers(every, policy)
    for arm in Arm:
        of_arm = [one for one in found if one.arm is arm and one.depends]
        if of_arm:
            words = f"the {arm.value}'s answers depend on the requests before them"
            yield arm, f"{words}: {_earliest(of_arm)}"


def _earliest(found: Sequence[SentinelAnswers]) -> str:
    """Return the sentinel that changed first, in words, and the number of others that changed."""
    changed = [one for one in found if one.first_change is not None]
    first = min(changed, key=lambda one: one.first_change.start_unix_ns if one.first_change else 0)
    more = len(changed) - 1
    return changed_words(first) + (f"; and {more} more" if more else "")


def sentinel_findings(every: Sequence[SentinelSeries], policy: Policy) -> tuple[Finding, ...]:
    """Return a lossless policy's guard: the candidate's answers change no more often.

    The baseline's changes at the same requests show how often rounding alone changes an answer.
    None without a lossless policy or sentinels.
    """
    rules = policy.lossless
    if rules is None or not every:
        return ()
    alone, both, neither, other = _counts(every)
    n = alone + both + neither + other
    found = paired_difference(
        alone, other, n, margin=MARGIN, bound="max", confidence=1 - rules.alpha
    )
    outcome, why = _outcome(found, rules.alpha)
    counts = f"candidate {alone + both} of {n} changed, baseline {other + both}: "
    return (
        lossless_finding(
            LosslessComparison(METRIC, STAT, MARGIN, rules.alpha, METHOD),
            outcome,
            None if outcome is not Outcome.INCONCLUSIVE else Reason.TOO_FEW,
            f"answers to sentinels, pooled: {counts}{why}{_such(every, policy, outcome)}",
            n=n,
            needed=None,
            interval=None if isinstance(found, Insufficient) else found,
            p_fail=None if isinstance(found, Insufficient) else found.p_fail,
            role=Role.GUARD,
            unit="difference",
        ),
    )


def _outcome(found: Interval | Insufficient, alpha: float) -> tuple[Outcome, str]:
    if isinstance(found, Insufficient):
        return Outcome.INCONCLUSIVE, "no sentinel was answered by both arms: inconclusive"
    words = f"at most {MARGIN:.0%} more are allowed: "
    if found.upper is not None and found.upper <= MARGIN:
        return Outcome.PASS, f"{words}pass"
    if found.p_fail <= alpha:
        return Outcome.FAIL, f"{words}fail"
    return Outcome.INCONCLUSIVE, f"{words}inconclusive, too few to decide"


def _such(every: Sequence[SentinelSeries], policy: Policy, outcome: Outcome) -> str:
    """Return the candidate's sentinel that changed first, if the cell fails."""
    if outcome is not Outcome.FAIL:
        return ""
    found = [one for one in sentinel_answers(every, policy) if one.arm is Arm.CANDIDATE]
    return f"; {_earliest(found)}"


def _counts(every: Sequence[SentinelSeries]) -> tuple[int, int, int, int]:
    """Count requests by which arm's answer changed: the candidate's alone, both, none, the other's.

    Only requests that both arms answered.
    """
    changed = dict[Arm, dict[tuple[str, int | None], bool]]()
    for series in every:
        of_arm = changed.setdefault(series.arm, {})
        for ask, is_changed in zip(series.asks, series.changed, strict=True):
            of_arm[ask.sentinel, ask.number] = bool(is_changed)
    candidate, baseline = changed.get(Arm.CANDIDATE, {}), changed.get(Arm.BASELINE, {})
    pairs = [(candidate[key], baseline[key]) for key in candidate if key in baseline]
    kinds = ((True, False), (True, True), (False, False), (False, True))
    alone, both, neither, other = (pairs.count(kind) for kind in kinds)
    return alone, both, neither, other
