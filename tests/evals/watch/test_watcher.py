"""Watching a rollout over a real database: each pair counts once, and proven harm acts once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from collector.client import Client, ClientError
from collector.contract import Arm, Outcome, Switch, Watch, WatchCell
from evals import policy as policies
from evals.errors import SourceError
from evals.policy import Policy
from evals.watch.watcher import StepResult, Watcher, WatchStep


def cell(watch: Watch, metric: str, cohort: str | None = None) -> WatchCell:
    (found,) = (c for c in watch.cells if c.metric == metric and c.cohort == cohort)
    return found


def without_times(watch: Watch) -> Watch:
    """Return the watch without what depends on when, and how often, somebody looked."""
    cells = (replace(c, path=type(c.path)(), message="") for c in watch.cells)
    exact = (replace(c, **{k: round(getattr(c, k), 9) for k in ("mean", "squares")}) for c in cells)
    return replace(watch, cells=tuple(map(rounded, exact)), posted="", reasons=())


def rounded(one: WatchCell) -> WatchCell:
    def process(given: Any) -> Any:
        if given is None:
            return None
        return (given.n, round(given.log_e, 6), tuple(round(w, 6) for w in given.log_wealth))

    fields = {k: None if (v := getattr(one, k)) is None else round(v, 6)
              for k in ("estimate", "lower", "upper", "p_fail")}  # fmt: skip
    return replace(one, passing=process(one.passing), failing=process(one.failing), **fields)


def test_a_good_candidate_passes(client: Client, traffic: Any, rules: Policy) -> None:
    """Equal arms: every proof is done, the verdict is posted, nobody touches the switch."""
    traffic.pairs(range(400))
    seen = Watcher(client, "k4", rules).catch_up()
    assert seen.watch.outcome is Outcome.PASS
    assert seen.watch.pairs == 400
    assert client.verdicts("k4")[0].verdict.outcome is Outcome.PASS
    assert client.switch("k4") == ()
    looked = cell(seen.watch, "ttft")
    assert [one.outcome for one in looked.looks] == [Outcome.PASS] * 3


def test_each_pair_counts_once(client: Client, traffic: Any, rules: Policy) -> None:
    """Late second sides, late scores, scores and spans sent again: the same as all at once."""
    watcher = Watcher(client, "k4", rules)
    sides = {arm: [traffic.side(arm, p) for p in range(120)] for arm in Arm}
    traffic.post(sides[Arm.BASELINE])
    watcher.catch_up()
    traffic.post(sides[Arm.CANDIDATE][:60])
    early = traffic.scored(sides[Arm.BASELINE])
    client.post_scores(early)
    watcher.catch_up()
    traffic.post(sides[Arm.CANDIDATE])
    client.post_scores(traffic.scored(sides[Arm.CANDIDATE][:50]))
    watcher.catch_up()
    client.post_scores(early)
    client.post_scores(traffic.scored(sides[Arm.CANDIDATE]))
    traffic.post(sides[Arm.BASELINE])
    last = watcher.catch_up().watch
    assert cell(last, "task_completion").n == 120
    assert cell(last, "failures").n == cell(last, "ttft").n == last.pairs == 120
    assert sum(c.n for c in last.cells if c.cohort and c.metric == "task_completion") == 120
    once = Watcher(client, "k4", replace(rules, name="another hash")).catch_up().watch
    for one, other in zip(without_times(last).cells, without_times(once).cells, strict=True):
        assert one == other


def test_a_run_that_declared_looks_is_the_gates(
    client: Client, traffic: Any, rules: Policy
) -> None:
    """Which pairs come next depends on what they show, so the stream has no fixed mix."""
    traffic.post([replace(traffic.side(arm, 1), look=1, looks="1 2") for arm in Arm])
    with pytest.raises(SourceError, match="judge it at these looks with `draftgate gate`"):
        Watcher(client, "k4", rules).step()


def test_a_restart_goes_on(client: Client, traffic: Any, rules: Policy) -> None:
    """A new watcher for each batch ends where one watcher of all ends, looks included."""
    for start in range(0, 420, 60):
        traffic.pairs(range(start, start + 60))
        Watcher(client, "k4", rules).catch_up()
    many = Watcher(client, "k4", rules).catch_up().watch
    one = Watcher(client, "k4", replace(rules, name="other")).catch_up().watch
    assert without_times(many).cells == without_times(one).cells
    assert [look.estimate is not None for look in cell(many, "ttft").looks] == [True] * 3


def test_nothing_new_writes_nothing(client: Client, traffic: Any, rules: Policy) -> None:
    """Without news the stored state and the verdicts stay as they are."""
    traffic.pairs(range(50))
    watcher = Watcher(client, "k4", rules)
    watcher.catch_up()
    before = client.watches("k4"), client.verdicts("k4")
    assert watcher.step().step is WatchStep.NOTHING_NEW
    assert Watcher(client, "k4", rules).step().step is WatchStep.NOTHING_NEW
    assert (client.watches("k4"), client.verdicts("k4")) == before


def test_proven_harm_sets_the_switch_off_once(client: Client, traffic: Any, rules: Policy) -> None:
    """Slow first tokens: off, with the evidence as the reason; more of them is no second event."""
    client.set_switch("k4", Switch.ON, reason="canary")
    traffic.pairs(range(100), candidate={"ttft_s": 0.8})
    watcher = Watcher(client, "k4", rules)
    assert watcher.catch_up().watch.outcome is Outcome.FAIL
    traffic.pairs(range(100, 200), candidate={"ttft_s": 0.8})
    watcher.catch_up()
    Watcher(client, "k4", rules).catch_up()
    off, on = client.switch("k4")
    assert (off.state, on.state) == (Switch.OFF, Switch.ON)
    assert "share slower than the threshold 500 ms" in off.reason
    assert "policy live" in off.reason


def test_it_never_sets_the_switch_on(client: Client, traffic: Any, rules: Policy) -> None:
    """Off by somebody else's hand, it stays off, whatever the evidence says."""
    client.set_switch("k4", Switch.OFF, reason="maintenance")
    traffic.pairs(range(400))
    assert Watcher(client, "k4", rules).catch_up().watch.outcome is Outcome.PASS
    assert [event.state for event in client.switch("k4")] == [Switch.OFF]


def test_set_on_again_only_new_harm_acts(client: Client, traffic: Any, rules: Policy) -> None:
    """Whoever disagrees sets it on, and the evidence for a fail begins anew."""
    watcher = Watcher(client, "k4", rules)
    traffic.pairs(range(100), candidate={"ttft_s": 0.8})
    watcher.catch_up()
    client.set_switch("k4", Switch.ON, reason="a cache was cold")
    traffic.pairs(range(100, 110))
    calm = watcher.catch_up().watch
    assert (calm.outcome, calm.epoch) == (Outcome.INCONCLUSIVE, 1)
    assert [event.state for event in client.switch("k4")] == [Switch.ON, Switch.OFF]
    traffic.pairs(range(110, 220), candidate={"ttft_s": 0.8})
    again = watcher.catch_up().watch
    assert (again.outcome, len(again.actions)) == (Outcome.FAIL, 2)
    assert [e.state for e in client.switch("k4")] == [Switch.OFF, Switch.ON, Switch.OFF]


def test_a_dry_run_leaves_no_trace(client: Client, traffic: Any, rules: Policy) -> None:
    """It reports the intended action, and stores, posts and sets nothing."""
    traffic.pairs(range(100), candidate={"ttft_s": 0.8})
    seen = Watcher(client, "k4", rules, dry_run=True).catch_up()
    assert seen.watch.outcome is Outcome.FAIL
    assert seen.watch.actions[0].reason.startswith("draftgate watch, policy live")
    assert (client.watches("k4"), client.switch("k4"), client.verdicts()) == ((), (), ())


def _overtaken(first: Watcher, second: Watcher) -> StepResult:
    """Let the first step, and the second do so while the first has read and not stored."""
    changes, done = first._client.pair_changes, list[WatchStep]()

    def interleaved(*args: Any, **kwargs: Any) -> Any:
        found = changes(*args, **kwargs)
        if not done:
            done.append(WatchStep.COUNTED)
            assert second.step().step is WatchStep.COUNTED
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first._client, "pair_changes", interleaved)
        return first.step()


def test_of_two_watchers_one_counts_and_acts(client: Client, traffic: Any, rules: Policy) -> None:
    """Interleaved at every point, no pair counts twice and the switch has one event."""
    watchers = [Watcher(client, "k4", rules) for _ in range(2)]
    overtaken = 0
    for start in range(0, 400, 50):
        traffic.pairs(range(start, start + 50), candidate={"ttft_s": 0.8})
        overtaken += _overtaken(*watchers).step is WatchStep.OVERTAKEN
    last = watchers[0].catch_up().watch
    assert overtaken > 0
    assert last.pairs == cell(last, "failures").n == 400
    assert [event.state for event in client.switch("k4")] == [Switch.OFF]


def test_clock_jumps_change_nothing(client: Client, traffic: Any, rules: Policy) -> None:
    """Time stands beside the numbers and in none of them."""
    times = iter([10**18, 5, 10**19 - 1, 7, 9] * 10)
    jumping = Watcher(client, "k4", rules, clock=lambda: next(times))
    for start in range(0, 200, 50):
        traffic.pairs(range(start, start + 50))
        jumping.catch_up()
    steady = Watcher(client, "k4", replace(rules, name="other")).catch_up().watch
    assert without_times(jumping.catch_up().watch).cells == without_times(steady).cells


def test_failures_are_harm(client: Client, traffic: Any, rules: Policy) -> None:
    """A candidate that fails every fifth request is set off by its failures."""
    for start in range(0, 300, 10):
        traffic.pairs(range(start, start + 8))
        traffic.pairs(range(start + 8, start + 10), candidate={"error_type": "timeout"})
    last = Watcher(client, "k4", rules).catch_up().watch
    assert cell(last, "failures").outcome is Outcome.FAIL
    assert cell(last, "failures").mean == pytest.approx(0.2)
    assert client.switch("k4")[0].state is Switch.OFF


def test_repeats_of_a_prompt_are_left_out(client: Client, traffic: Any, rules: Policy) -> None:
    """A repeat tells little that the first has not told: it is counted as left out."""
    traffic.pairs(range(40))
    traffic.post([traffic.side(arm, p, repeat=1) for p in range(40) for arm in Arm])
    last = Watcher(client, "k4", rules).catch_up().watch
    assert (last.pairs, last.repeats, cell(last, "failures").n) == (40, 40, 40)


def test_the_warm_up_is_dropped_by_count(client: Client, traffic: Any, rules: Policy) -> None:
    """The first pairs to be complete do not count, however late their scores come."""
    rules = replace(rules, sampling=replace(rules.sampling, warmup_drop=30))
    watcher = Watcher(client, "k4", rules)
    for start in range(0, 100, 20):
        traffic.pairs(range(start, start + 20), lost=1 if start < 20 else 0)
        watcher.catch_up()
    last = watcher.catch_up().watch
    assert (last.pairs, cell(last, "task_completion").n, cell(last, "failures").n) == (70, 70, 70)
    assert cell(last, "task_completion").mean == 0.0


def test_a_pass_waits_for_scores(client: Client, traffic: Any, rules: Policy) -> None:
    """With a tenth of the pairs unscored nothing is proved of their scores."""
    traffic.pairs(range(300))
    traffic.post([traffic.side(arm, p) for p in range(300, 340) for arm in Arm])
    last = Watcher(client, "k4", rules).catch_up().watch
    assert cell(last, "task_completion").outcome is Outcome.INCONCLUSIVE
    assert cell(last, "task_completion").reason == "missing"
    assert cell(last, "failures").outcome is Outcome.PASS


def test_a_baseline_that_never_passes_proves_nothing(
    client: Client, traffic: Any, rules: Policy
) -> None:
    """With a broken reference no answer passes, and none of the candidate's can be worse."""
    sides = [traffic.side(arm, p) for p in range(300) for arm in Arm]
    traffic.post(sides)
    client.post_scores(traffic.scored(sides, 0.0))
    last = Watcher(client, "k4", rules).catch_up().watch
    judged = [c for c in last.cells if c.metric == "task_completion"]
    assert {(c.n, c.outcome, c.reason) for c in judged if c.cohort is None} == {
        (300, Outcome.INCONCLUSIVE, "missing")
    }
    assert all("no more than the margin to lose" in c.message for c in judged)
    assert last.outcome is Outcome.INCONCLUSIVE


def test_a_lost_arm_proves_nothing(client: Client, traffic: Any, rules: Policy) -> None:
    """Where the candidate's spans stop coming, nothing passes: the counts do not match."""
    traffic.pairs(range(300))
    traffic.post([traffic.side(Arm.BASELINE, p) for p in range(300, 500)])
    last = Watcher(client, "k4", rules).catch_up().watch
    assert {c.reason for c in last.cells if c.cohort is None} == {"srm"}


def test_an_unknown_rollout_is_the_clients_error(client: Client, rules: Policy) -> None:
    """Nothing is stored for it."""
    with pytest.raises(ClientError, match="no rollout 'k4'"):
        Watcher(client, "k4", rules).step()
    assert client.watches("k4") == ()


SPLIT = """
version: 1
name: split
design: split
live: {looks: [100, 300], spend: [0.02, 0.03],
       rollback: {metric: slo_exceedance, threshold: 0.5, margin: 0.05}}
prove:
  - {metric: task_completion, stat: diff, min: -0.15, scope: pooled}
  - {metric: ttft, stat: p50_ratio, max: 1.50, scope: pooled}
"""


def split(
    traffic: Any, client: Client, prompts: range, candidate: Callable[[int], Any] = lambda _: {}
) -> None:
    sides, scores = [], []
    for p in prompts:
        arm = (Arm.BASELINE, Arm.CANDIDATE)[(p * 2654435761 >> 7) % 2]
        fields = candidate(p) if arm is Arm.CANDIDATE else {}
        sides.append(traffic.side(arm, p, **fields))
        scores += traffic.scored(sides[-1:], float(p % 10 != 0))
    traffic.post(sides)
    client.post_scores(scores)


def test_split_traffic_passes_and_restarts(client: Client, traffic: Any) -> None:
    """Each request has one arm; a watcher a batch ends where one watcher ends."""
    rules = policies.parse(SPLIT, "split.yaml")
    for start in range(0, 800, 200):
        split(traffic, client, range(start, start + 200))
        Watcher(client, "k4", rules).catch_up()
    many = Watcher(client, "k4", rules).catch_up().watch
    one = Watcher(client, "k4", replace(rules, name="other")).catch_up().watch
    assert many.pairs == cell(many, "task_completion").n == 800
    assert cell(many, "task_completion").estimate == pytest.approx(
        cell(one, "task_completion").estimate
    )
    assert cell(many, "ttft").looks[-1].estimate == pytest.approx(1.0, rel=1e-3)
    assert cell(many, "task_completion").outcome is Outcome.PASS


def test_in_split_traffic_a_baseline_that_never_passes_proves_nothing(
    client: Client, traffic: Any
) -> None:
    """As in pairs: nobody can be worse than nothing."""
    rules = policies.parse(SPLIT, "split.yaml")
    sides = [
        traffic.side((Arm.BASELINE, Arm.CANDIDATE)[(p * 2654435761 >> 7) % 2], p)
        for p in range(800)
    ]
    traffic.post(sides)
    client.post_scores(traffic.scored(sides, 0.0))
    judged = cell(Watcher(client, "k4", rules).catch_up().watch, "task_completion")
    assert (judged.outcome, judged.reason) == (Outcome.INCONCLUSIVE, "missing")
    assert "no more than the margin to lose" in judged.message


def test_split_traffic_fails_on_slow_requests(client: Client, traffic: Any) -> None:
    """A candidate slower than the threshold in every third answer is set off."""
    rules = policies.parse(SPLIT, "split.yaml")
    split(traffic, client, range(700), lambda p: {"ttft_s": 0.9 if p % 3 == 0 else 0.1})
    last = Watcher(client, "k4", rules).catch_up().watch
    assert cell(last, "slo_exceedance").outcome is Outcome.FAIL
    assert client.switch("k4")[0].state is Switch.OFF
