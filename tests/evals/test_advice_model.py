"""Tokens a step, the cost of a step and the speed-up, against closed forms and simulated steps."""

import math

import numpy as np
import pytest

from evals.advice.forecast import forecasts, model
from evals.advice.observations import Observation, StepCounts, Times
from evals.advice.records import Estimate
from evals.advice.scope_numbers import break_even, gap, numbers, trial
from evals.advice.step_cost import split
from evals.advice.summing import modelled, sums_of
from evals.advice.survival import survival


def counted(accepted: np.ndarray, k: int, longest: int | None = None):
    """Return steps and accepted_per_pos of one draft length, as `survival` takes them."""
    longest = longest or k
    steps, per_pos = np.zeros(longest), np.zeros((longest, longest))
    steps[k - 1] = len(accepted)
    per_pos[k - 1, :k] = [(accepted > j).sum() for j in range(k)]
    return steps, per_pos


def expected(a: float, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts of 1000 steps of independent acceptance, exactly as expected."""
    steps, per_pos = np.zeros(k), np.zeros((k, k))
    steps[k - 1], per_pos[k - 1] = 1000, 1000 * a ** np.arange(1, k + 1)
    return steps, per_pos


def closed(a: float, k: int) -> float:
    return (1 - a ** (k + 1)) / (1 - a)


@pytest.mark.parametrize("a", [0.05, 0.5, 0.66, 0.95])
@pytest.mark.parametrize("logged", [1, 4, 7])
def test_independent_acceptance_has_its_closed_form_at_every_k(a, logged) -> None:
    """E(k) = (1 − a^(k+1))/(1 − a), below the logged k, at it and beyond."""
    found = survival(*expected(a, logged))
    assert found.tail == pytest.approx(a)
    for k in range(16):
        assert found.tokens_a_step(k) == pytest.approx(closed(a, k))


def test_the_ratio_of_accepted_to_drafted_does_not_carry_to_another_k() -> None:
    """Logged at k = 4, 1 + αk claims 4.2 tokens at k = 8; survival says the true 2.9."""
    a = 2 / 3
    steps, per_pos = expected(a, 4)
    alpha = per_pos.sum() / (4 * steps.sum())
    assert 1 + 4 * alpha == pytest.approx(closed(a, 4))
    assert 1 + 8 * alpha == pytest.approx(4.22, abs=0.02)
    found = survival(steps, per_pos).tokens_a_step(8)
    assert found == pytest.approx(closed(a, 8))
    assert found == pytest.approx(2.91, abs=0.02)


def test_steps_of_several_draft_lengths_share_their_positions() -> None:
    """A position's survival rests on the steps that drafted that far, and on no others."""
    short, long = expected(0.8, 2), expected(0.8, 5)
    steps, per_pos = long
    steps[:2] += short[0] * 7
    per_pos[:2, :2] += short[1] * 7
    found = survival(steps, per_pos)
    assert found.probabilities == pytest.approx([0.8**j for j in range(1, 6)])
    assert found.tail == pytest.approx(0.8)


def test_simulated_steps_agree_with_a_replay_at_each_shorter_k() -> None:
    """Whatever the acceptance by position, E(k) is the mean of what steps cut at k emit."""
    generator = np.random.default_rng(5)
    by_position = np.array([0.9, 0.2, 0.95, 0.5, 0.7, 0.99])
    taken = generator.random((20_000, 6)) < by_position
    accepted = np.cumprod(taken, axis=1).sum(axis=1)
    found = survival(*counted(accepted, 6))
    for k in range(7):
        assert found.tokens_a_step(k) == pytest.approx(1 + np.minimum(accepted, k).mean())


@pytest.mark.parametrize("accepted", [0, 4])
def test_acceptance_of_none_and_of_all_are_no_special_cases(accepted) -> None:
    """Nothing accepted is 1 token at every k; everything accepted is k + 1."""
    found = survival(*counted(np.full(50, accepted), 4))
    assert [found.tokens_a_step(k) for k in (1, 4, 9)] == (
        [1, 1, 1] if not accepted else [2, 5, 10]
    )


def test_no_steps_have_no_survival() -> None:
    """Without a step there is no number."""
    assert survival(np.zeros(4), np.zeros((4, 4))) is None


def test_one_k_does_not_split_the_cost() -> None:
    """Two draft lengths give both times back, one gives none; no time is negative."""
    steps, step_s = np.array([0.0, 900.0, 0.0, 100.0]), np.array([math.nan, 0.014, math.nan, 0.018])
    found = split(steps, step_s)
    assert (found.verify_s, found.draft_s) == pytest.approx((0.010, 0.002))
    assert found.step_s(6) == pytest.approx(0.022)
    assert split(np.array([0.0, 900.0]), np.array([math.nan, 0.014])) is None
    assert split(np.array([10.0, 10.0]), np.array([0.02, 0.01])).draft_s == 0


# --- pairs


def pair(number: int, accepted, k: int, step_s: float, base_s: float = 0.010) -> Observation:
    """Return a pair whose candidate takes its steps, and whose baseline a step a token."""
    accepted = np.asarray(accepted)
    tokens, ttft_s = int(accepted.sum()) + len(accepted) + 1, 0.05
    counts = StepCounts(
        k=k,
        steps=len(accepted),
        decode_steps=len(accepted),
        draft_tokens=k * len(accepted),
        accepted_tokens=int(accepted.sum()),
        accepted_per_pos=tuple(int((accepted > j).sum()) for j in range(k)),
    )
    decode_s, base_decode_s = len(accepted) * step_s, (tokens - 1) * base_s
    return Observation(
        prompt=f"p{number:04}",
        cohort=None,
        load=None,
        max_tokens=None,
        baseline=Times(ttft_s + base_decode_s, ttft_s, tokens, base_s),
        candidate=Times(ttft_s + decode_s, ttft_s, tokens, decode_s / (tokens - 1)),
        counts=counts,
    )


def simulated(a: float, k: int, step_s: float, *, seed: int = 3, base_s: float = 0.010):
    """Return 60 pairs of 20 steps each of independent acceptance."""
    generator = np.random.default_rng(seed)
    draws = np.cumprod(generator.random((60, 20, k)) < a, axis=2).sum(axis=2)
    return [pair(i, accepted, k, step_s, base_s) for i, accepted in enumerate(draws)]


def test_the_model_at_the_served_k_is_what_was_observed() -> None:
    """Predicted, observed, break-even and the parts of the gap say one thing of one simulation."""
    n = numbers(simulated(0.7, 4, 0.016), [])
    emitted = n.model.survival.tokens_a_step(4)
    assert n.model.speedup(4, 4) == pytest.approx(emitted / 1.6)
    assert n.tpot.estimate == pytest.approx(emitted / 1.6, rel=0.02)
    assert break_even(n) == pytest.approx(1.6)
    parts = gap(n)
    assert parts.side == "acceptance"
    product = parts.acceptance * parts.cost * parts.rest
    assert 5 / product == pytest.approx(n.tpot.estimate)
    assert n.predicted_e2e == pytest.approx(n.e2e.estimate, rel=0.02)
    assert 1 < n.e2e.estimate < n.tpot.estimate


def test_a_costly_step_is_where_the_gap_comes_from() -> None:
    """Drafts nearly all accepted and a step of four tokens' time: the cost is named."""
    assert gap(numbers(simulated(0.98, 4, 0.04), [])).side == "cost"


def test_with_one_k_only_its_own_speed_is_forecast() -> None:
    """Tokens a step are known of every k, the speed-up of the served one and of none alone."""
    found = forecasts(sums_of(modelled(simulated(0.7, 4, 0.016))), 4)
    assert [f.k for f in found] == list(range(9))
    assert [f.k for f in found if f.tpot_speedup is not None] == [0, 4]
    assert [f.k for f in found if f.extrapolated] == [5, 6, 7, 8]
    assert all(f.tokens_a_step.lower <= f.tokens_a_step.upper for f in found)
    assert forecasts(sums_of(modelled(simulated(0.7, 4, 0.016))), 4) == found


def test_a_shorter_k_is_worth_a_trial_up_to_what_drafting_can_cost() -> None:
    """The truth, where the target's pass costs a baseline step, is what the trial names at most."""
    n = numbers(simulated(0.3, 6, 0.010 + 6 * 0.002), [])
    named = trial(n)
    emitted = [n.model.survival.tokens_a_step(k) / (0.010 + k * 0.002) for k in range(1, 7)]
    assert named.k == int(np.argmax(emitted)) + 1
    assert named.gain_at_most == pytest.approx(max(emitted) / emitted[-1] - 1)


def test_a_slower_hour_of_the_other_rollout_does_not_count_as_its_k() -> None:
    """Each k is compared with the baseline that ran beside it."""
    own = simulated(0.7, 4, 0.010 + 4 * 0.001)
    slow = simulated(0.7, 2, 2 * (0.010 + 2 * 0.001), seed=4, base_s=0.020)
    found = model(sums_of([*modelled(own), *modelled(slow)]).total(), 4)
    assert found.cost.verify_s == pytest.approx(0.010)
    assert found.cost.draft_s == pytest.approx(0.001)


@pytest.mark.slow
def test_limits_cover_the_truth_as_often_as_they_say() -> None:
    """Of simulated rollouts, about 5 % have a lower limit of E(4) above the truth."""
    above = 0
    for seed in range(40):
        found = forecasts(sums_of(modelled(simulated(0.7, 4, 0.016, seed=seed))), 4)
        limits: Estimate = found[4].tokens_a_step
        above += limits.lower > closed(0.7, 4)
    assert above <= 7  # P(more | 5 %) < 0.1 %
