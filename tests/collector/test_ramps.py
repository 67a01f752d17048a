"""Ramps of rollouts: an audit log of shares, in which a larger one rests on a passing verdict."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest
from made_verdicts import made_verdict, registration, resting_on, send_pairs
from stored_keys import add_key

from collector.api_key import Scope
from collector.client import Client, ClientError
from collector.contract import Outcome, RampChange, RampStep, StoredVerdict
from collector.store import Store


def test_a_ramp_nobody_began_is_unknown(http: httpx.Client) -> None:
    """There is no step and no log, and asking makes none."""
    for _ in range(2):
        answer = http.get("/api/v1/rollouts/k4/ramp")
        assert answer.json() == {"rollout": "k4", "step": None, "log": []}


NAME = "team/k 4"
POLICY = registration('{"min_n":2}')


def test_a_larger_share_rests_on_the_newest_verdict(any_database_url: str) -> None:
    """The first step needs none; a larger one a pass under the registered policy, on young pairs.

    A smaller one needs none.
    """
    with Client.local(any_database_url) as client:
        client.register_policy(NAME, POLICY)
        send_pairs(client, NAME, 3)
        before = post(client, Outcome.PASS)
        first = step(client, 1)
        assert first.arrived_up_to > 0
        assert refusal(client, 5, first, None).startswith("none was posted since")
        assert refusal(client, 5, first, before).startswith("none was posted since")
        post(client, Outcome.PASS, policy="0" * 64)
        assert refusal(client, 5, first, None).startswith("none was posted since")
        send_pairs(client, NAME, 1, first=3)
        old = post(client, Outcome.PASS)
        assert "rests on older ones too" in refusal(client, 5, first, old)
        thin = post(client, Outcome.PASS, after=first)
        assert "at least 2 pairs" in refusal(client, 5, first, thin)
        send_pairs(client, NAME, 2, first=4)
        failed = post(client, Outcome.FAIL, after=first)
        assert "the newest one is fail: made up" in refusal(client, 5, first, failed)
        send_pairs(client, NAME, 1, first=6)
        passed = post(client, Outcome.PASS, after=first)
        assert f"the newest is {passed.id}" in refusal(client, 5, first, failed)
        post(client, Outcome.FAIL, after=first, watch=True)
        assert "the newest one is fail: made up" in refusal(client, 5, first, passed)
        send_pairs(client, NAME, 1, first=7)
        passed = post(client, Outcome.PASS, after=first)
        post(client, Outcome.INCONCLUSIVE, after=first, watch=True)
        second = step(client, 5, first, passed)
        assert refusal(client, 25, second, passed).startswith("none was posted since")
        back = step(client, 0, second)
        assert client.ramp(NAME) == (back, second, first)
        assert client.ramp("other") == ()
    assert [(s.percent, s.verdict, s.who) for s in (first, second, back)] == [
        (1, None, "local"), (5, passed.id, "local"), (0, None, "local")
    ]  # fmt: skip


def test_a_ramp_needs_a_policy_from_before_the_first_pair(any_database_url: str) -> None:
    """One that is registered later is kept, and does not count."""
    with Client.local(any_database_url) as client:
        first = step(client, 1)
        send_pairs(client, NAME)
        passed = post(client, Outcome.PASS, after=first)
        assert "registered before the first pair, and there is none" in refusal(
            client, 5, first, passed
        )
        late = client.register_policy(NAME, POLICY)
        assert not late.before_first_pair
        assert "and there is none" in refusal(client, 5, first, passed)


def test_of_two_who_follow_the_same_step_one_does(any_database_url: str) -> None:
    """Many who take the next step at once take it once; the others are told."""
    with Client.local(any_database_url) as client:
        client.register_policy(NAME, POLICY)
        passed_after = step(client, 1)
        send_pairs(client, NAME, 2)
        passed = post(client, Outcome.PASS, after=passed_after)

        def take(_: int) -> str:
            try:
                return f"{step(client, 5, passed_after, passed).percent:g} %"
            except ClientError as exc:
                return f"{exc.status} {str(exc).partition(': somebody')[2]}"

        with ThreadPoolExecutor(8) as pool:
            taken = sorted(pool.map(take, range(8)))
        told = "409  else took one; look where the ramp stands, and decide again"
        assert taken == [*7 * [told], "5 %"]
        assert [s.percent for s in client.ramp(NAME)] == [5, 1]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"percent": 1}, "reason: missing key"),
        ({"percent": 1, "reason": " "}, "a step is taken for a reason"),
        ({"percent": 101, "reason": "r"}, "percent: wanted 0 to 100, got 101"),
        ({"percent": -1, "reason": "r"}, "percent: wanted 0 to 100, got -1"),
        ({"percent": "1", "reason": "r"}, "percent: wanted float"),
        ({"percent": 1, "reason": "r", "who": "me"}, "who: unknown key"),
        ({"percent": 1, "reason": "x" * 2001}, "reason: wanted at most 2000"),
        ({"percent": 1, "reason": "r", "verdict": "\0"}, "verdict: wanted at most 2000"),
        ([], "wanted an object"),
    ],
)
def test_an_unusable_step_is_refused(http: httpx.Client, body: Any, words: str) -> None:
    """400 describes the error, and nothing is stored."""
    answer = http.post("/api/v1/rollouts/k4/ramp", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]
    assert http.get("/api/v1/rollouts/k4/ramp").json()["log"] == []


def test_a_step_needs_the_scope_admin(serve: Callable[..., Any], database_url: str) -> None:
    """A key that may only read is refused; the log names the key that took the step."""
    with Store.open(database_url) as store:
        reader = add_key(store, "router", Scope.READ)
        admin = add_key(store, "release team", Scope.ADMIN, Scope.READ)
    server = serve(database_url, env={"DRAFTGATE_REQUIRE_KEYS": "1"})
    with Client(server.url, key=reader) as client, pytest.raises(ClientError, match="scope admin"):
        step(client, 1)
    with Client(server.url, key=admin) as client:
        assert step(client, 1).who == "release team"
    with Client(server.url, key=reader) as client:
        assert [s.who for s in client.ramp("team/k 4")] == ["release team"]


def step(
    client: Client,
    percent: float,
    last: RampStep | None = None,
    rests_on: StoredVerdict | None = None,
) -> RampStep:
    change = RampChange(
        percent=percent,
        reason="r",
        continues=0 if last is None else last.id,
        verdict=None if rests_on is None else rests_on.id,
    )
    return client.take_step(NAME, change)


def refusal(client: Client, percent: float, last: RampStep, rests_on: StoredVerdict | None) -> str:
    """Return the refusal, from what is lacking on."""
    with pytest.raises(ClientError) as refused:
        step(client, percent, last, rests_on)
    assert refused.value.status == 409
    return str(refused.value).rpartition("step; ")[2]


def post(
    client: Client,
    outcome: Outcome,
    *,
    after: RampStep | None = None,
    policy: str = POLICY.policy_hash,
    watch: bool = False,
) -> StoredVerdict:
    """Post a verdict on all stored pairs, or on those that arrived after a step."""
    made = made_verdict(outcome, rollout=NAME, summary="made up", pairs=99, policy_hash=policy)
    if watch:
        made = replace(made, versions={"watch": "1"})
    younger_than = 0 if after is None else after.arrived_up_to
    return client.post_verdict(resting_on(client, made, younger_than=younger_than))
