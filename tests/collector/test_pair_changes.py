"""New pairs of a rollout since a place, and watches that one of several watchers replaces."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from made_generations import generation_of, score_of
from otlp_bodies import export_request

from collector.client import Client, ClientError
from collector.contract import (
    Arm,
    Generation,
    Score,
    Switch,
    SwitchChange,
    Watch,
    WatchUpdate,
    encode,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def client(request: pytest.FixtureRequest, new_database_url: Callable[[str], str]) -> Any:
    """Open a collector over a database of either kind."""
    with Client.local(new_database_url(request.param)) as opened:
        yield opened


@pytest.fixture
def post(client: Client) -> Callable[..., Generation]:
    """Give a function that stores one side of a pair and returns it."""

    def store(number: int, arm: Arm, prompt_id: str = "p", **fields: Any) -> Generation:
        plain = {"rollout": "k4", "prompt_id": prompt_id, "repeat": 0, "cohort": "chat"}
        made = replace(generation_of(number), **(plain | fields), arm=arm)
        client.post_traces(export_request([encode(made)]).SerializeToString())
        return made

    return store


def score(of: Generation, value: float, version: str = "1") -> Score:
    return score_of(of, value, metric="task_completion", version=version)


def test_a_window_holds_what_arrived_in_it(client: Client, post: Callable[..., Generation]) -> None:
    """A pair comes again with its late side; a place at the end has nothing after it."""
    post(1, Arm.BASELINE)
    post(2, Arm.BASELINE, "q", rollout="other")
    first = client.pair_changes("k4", arrived_after=0, scored_after=0)
    assert first.table["prompt_id"].to_list() == ["p"]
    assert first.table["candidate_arrival"].to_list() == [None]
    post(3, Arm.CANDIDATE)
    second = client.pair_changes(
        "k4", arrived_after=first.arrived_up_to, scored_after=first.scored_up_to
    )
    (row,) = pa.table(second.table).to_pylist()
    assert row["baseline_arrival"] <= first.arrived_up_to < row["candidate_arrival"]
    assert row["candidate_arrival"] == second.arrived_up_to
    last = client.pair_changes(
        "k4", arrived_after=second.arrived_up_to, scored_after=second.scored_up_to
    )
    assert (len(last.table), last.more) == (0, False)


def test_a_score_is_new_once(client: Client, post: Callable[..., Generation]) -> None:
    """Posted again, changed, or by a newer evaluator, it keeps the number of its first post."""
    baseline, _ = post(1, Arm.BASELINE), post(2, Arm.CANDIDATE)
    start = client.pair_changes("k4", arrived_after=0, scored_after=0)
    client.post_scores([score(baseline, 1.0)])
    after = client.pair_changes("k4", arrived_after=start.arrived_up_to, scored_after=0)
    (row,) = pa.table(after.table).to_pylist()
    assert row["baseline_scored_task_completion"] == after.scored_up_to == 1
    assert row["candidate_scored_task_completion"] is None
    client.post_scores([score(baseline, 0.0), score(baseline, 0.5, version="2")])
    again = client.pair_changes("k4", arrived_after=start.arrived_up_to, scored_after=1)
    assert [
        row["baseline_scored_task_completion"] for row in pa.table(again.table).to_pylist()
    ] == [1]
    assert again.table["baseline_score_task_completion"].to_list() == [0.5]


def test_a_rerun_keeps_the_first_arrival(client: Client, post: Callable[..., Generation]) -> None:
    """A duplicate does not make the pair new, even if it started earlier."""
    post(5, Arm.BASELINE)
    start = client.pair_changes("k4", arrived_after=0, scored_after=0)
    post(1, Arm.BASELINE)
    after = client.pair_changes("k4", arrived_after=start.arrived_up_to, scored_after=0)
    (row,) = pa.table(after.table).to_pylist()
    assert row["baseline_arrival"] <= start.arrived_up_to
    assert row["baseline_duplicates"] == 1


def test_an_unknown_rollout_is_refused(client: Client) -> None:
    """404, as for pairs."""
    with pytest.raises(ClientError, match="no rollout 'k9'"):
        client.pair_changes("k9", arrived_after=0, scored_after=0)


def watch(**fields: Any) -> Watch:
    return Watch(rollout="team/k 4", policy_name="p", policy_hash="abc", **fields)


def test_one_of_two_goes_on_and_acts(client: Client) -> None:
    """Whoever continues an old state stores nothing and sets no switch."""
    off = SwitchChange(state=Switch.OFF, reason="harm")
    first = client.update_watch(WatchUpdate(continues=0, watch=watch(pairs=1)))
    assert first is not None
    assert first.version == 1
    won = client.update_watch(WatchUpdate(continues=1, watch=watch(pairs=2), switch=off))
    lost = client.update_watch(WatchUpdate(continues=1, watch=watch(pairs=3), switch=off))
    assert (won is None, lost) == (False, None)
    assert [(one.version, one.watch.pairs) for one in client.watches("team/k 4")] == [(2, 2)]
    assert [event.reason for event in client.switch("team/k 4")] == ["harm"]


def test_watches_of_other_policies_stand_beside(client: Client) -> None:
    """A policy's state is its own; the last updated stands first."""
    for policy_hash in ("a", "b"):
        given = replace(watch(), policy_hash=policy_hash)
        assert client.update_watch(WatchUpdate(continues=0, watch=given)) is not None
    assert [one.watch.policy_hash for one in client.watches("team/k 4")] == ["b", "a"]
