"""The alarm on acceptance: a fall in one cohort is found, told once, and survives restarts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.client import Client
from collector.contract import AcceptanceWatch, Arm, Speculation, Switch
from evals.policy import Policy
from evals.stats.falls import Falls
from evals.watch.acceptance import FALL, REFERENCE, after, alarmed_at
from evals.watch.watcher import Watcher


def test_a_fall_in_one_cohort_is_found(client: Client, traffic: Any, rules: Policy) -> None:
    """Restarts lose nothing; the verdict names the cohort, and the switch is not touched."""

    def send(prompts: range, **accepted: int) -> None:
        traffic.post(
            traffic.side(
                arm,
                p,
                cohort=cohort,
                speculation=Speculation(draft_tokens=24, accepted_tokens=accepted[cohort])
                if arm is Arm.CANDIDATE
                else None,
            )
            for p in prompts
            for cohort in [("chat", "rag")[p % 2]]
            for arm in Arm
        )

    send(range(2 * REFERENCE), chat=12, rag=18)
    before = Watcher(client, "k4", rules).catch_up().watch
    assert [one.reference for one in before.acceptance] == [0.5, 0.75]
    assert not any(one.drifted for one in before.acceptance)
    send(range(2 * REFERENCE, 2 * REFERENCE + 100), chat=12, rag=4)
    Watcher(client, "k4", rules).catch_up()
    send(range(2 * REFERENCE + 100, 2 * REFERENCE + 300), chat=12, rag=4)
    watch = Watcher(client, "k4", rules).catch_up().watch
    assert {one.cohort: one.drifted for one in watch.acceptance} == {"chat": False, "rag": True}
    (words,) = client.verdicts("k4")[0].verdict.suspicions
    assert words.startswith("acceptance of requests in `rag` fell: 75.0% in the first 400")
    assert client.switch("k4") == ()
    client.set_switch("k4", Switch.ON, reason="nobody set it off")
    assert Watcher(client, "k4", rules).catch_up().watch.acceptance == watch.acceptance


@given(
    losses=st.lists(st.floats(-1, 1), min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_batches_do_not_matter(losses: Sequence[float], cuts: Sequence[int]) -> None:
    """However the values are cut into batches, the evidence is the same."""
    whole = Falls(0.05, 2.0).after(np.array(losses))
    parts = Falls(0.05, 2.0)
    for part in np.split(np.array(losses), sorted(min(cut, len(losses)) for cut in cuts)):
        parts = parts.after(part)
    assert parts.n == whole.n
    assert parts.highest_log_e == pytest.approx(whole.highest_log_e)
    assert parts.log_wealth == pytest.approx(whole.log_wealth)


def test_evidence_is_the_sum_over_all_beginnings() -> None:
    """The recursion equals its definition, computed beginning by beginning."""
    losses, limit = np.array([0.2, -0.4, 0.9, 0.3]), 0.1
    stakes = np.geomspace(0.01, 0.95, 24) / (1 + limit)
    wealth = sum(
        np.prod(1 + np.outer(stakes, losses[j:] - limit), axis=1) / ((j + 1) * (j + 2))
        for j in range(len(losses))
    )
    assert np.exp(Falls(limit, 1.0).after(losses).log_wealth) == pytest.approx(wealth)


def test_a_long_good_time_does_not_hide_a_fall() -> None:
    """After 20,000 good requests a fall is found within a thousand; none is found before it."""
    random = np.random.default_rng(7)
    good = random.beta(6, 4, 20_000 + REFERENCE)
    assert alarmed_at(good) is None
    bad = random.beta(4, 6, 1_000)
    found = alarmed_at(np.concatenate([good, bad]))
    assert found is not None
    assert found > len(good)


def test_a_fall_within_the_limit_is_none() -> None:
    """A fall of just less than the limit never alarms, with a reference that is exact."""
    was = AcceptanceWatch(cohort="chat", number=1)
    was = after(was, np.full(REFERENCE, 0.6))
    was = after(was, np.full(5_000, 0.6 - FALL + 0.001))
    assert not was.drifted
    assert was.lately == pytest.approx(0.551, abs=1e-4)
