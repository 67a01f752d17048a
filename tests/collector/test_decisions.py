"""Decisions: the responses to a rollout controller, and the status codes of hooks."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from collector_in_process import http_of
from made_verdicts import made_verdict, registration, resting_on, send_pairs
from sqlalchemy import update
from stored_keys import add_key

from collector.api_key import Scope
from collector.client import Client
from collector.contract import Outcome, ReleaseDecision
from collector.settings import Settings
from collector.store import Store
from collector.store.tables import verdict

NAME = "team/k 4"
PATH = "/api/v1/rollouts/team%2Fk%204/decision"
POLICY = registration('{"min_n":2}')
OTHER = "0" * 64


def test_a_pass_counts_while_it_is_fresh_and_registered(any_database_url: str) -> None:
    """Before anything, unjudged, passed, overtaken by a watch, failed, and passed again."""

    def post(outcome: Outcome, *, policy: str = POLICY.policy_hash, watch: bool = False) -> None:
        versions = {"watch": "1"} if watch else {}
        made = made_verdict(outcome, rollout=NAME, policy_hash=policy, versions=versions)
        client.post_verdict(resting_on(client, replace(made, summary=f"{time.time_ns()}")))

    with Client.local(any_database_url) as client:

        def decided(max_age_s: float = 3600) -> ReleaseDecision:
            return client.decision(NAME, max_age_s=max_age_s)

        assert (decided().decision, decided().verdict) == (Outcome.INCONCLUSIVE, None)
        assert decided().reason == "nobody has judged it"
        client.register_policy(NAME, POLICY)
        send_pairs(client, NAME, 3)
        assert decided().reason == "nobody has judged it under default, which was registered"
        post(Outcome.PASS)
        found = decided()
        assert (found.decision, found.registered, found.pairs) == (Outcome.PASS, True, 1)
        assert found.policy_hash == POLICY.policy_hash
        assert found.age_s is not None
        assert 0 <= found.age_s < 600
        stale = decided(1e-6)
        assert (stale.decision, stale.verdict) == (Outcome.INCONCLUSIVE, found.verdict)
        assert stale.reason.endswith("judge again")
        for policy, watch in ((OTHER, False), (POLICY.policy_hash, True)):
            post(Outcome.INCONCLUSIVE, policy=policy, watch=watch)
            assert replace(decided(), age_s=None) == replace(found, age_s=None)
        post(Outcome.FAIL, watch=True)
        assert decided(1e-6).decision is Outcome.FAIL
        post(Outcome.PASS)
        assert decided().decision is Outcome.PASS
        post(Outcome.INCONCLUSIVE)
        assert decided().decision is Outcome.INCONCLUSIVE


def test_without_a_registered_policy_nothing_passes(any_database_url: str) -> None:
    """A pass is in doubt, and says why; a fail is one."""
    with Client.local(any_database_url) as client:
        send_pairs(client, NAME)
        client.post_verdict(resting_on(client, made_verdict(Outcome.PASS, rollout=NAME)))
        found = client.decision(NAME)
        assert (found.decision, found.registered) == (Outcome.INCONCLUSIVE, False)
        assert found.reason == "it passes, but no policy was registered before its first pair"
        client.post_verdict(resting_on(client, made_verdict(Outcome.FAIL, rollout=NAME)))
        assert client.decision(NAME).decision is Outcome.FAIL


def test_a_verdict_from_the_future_is_no_pass(database_url: str) -> None:
    """A clock that was wrong makes nothing fresh."""
    with Client.local(database_url) as client:
        client.register_policy(NAME, POLICY)
        send_pairs(client, NAME, 3)
        made = made_verdict(Outcome.PASS, rollout=NAME, policy_hash=POLICY.policy_hash)
        client.post_verdict(resting_on(client, made))
        ahead = time.time_ns() + 10**12
        with (
            Store.open(database_url) as store,
            store.transaction() as connection,
        ):
            connection.execute(update(verdict).values(posted_unix_ns=ahead))
        found = client.decision(NAME)
    assert (found.decision, found.age_s) == (Outcome.INCONCLUSIVE, None)
    assert found.reason.endswith("a clock is wrong")


@pytest.mark.parametrize(
    ("outcome", "promotion", "rollback"),
    [(Outcome.PASS, 200, 409), (Outcome.INCONCLUSIVE, 409, 409), (Outcome.FAIL, 409, 200)],
)
def test_hooks_read_the_status(
    serve: Callable[..., Any], database_url: str, outcome: Outcome, promotion: int, rollback: int
) -> None:
    """As Flagger posts: JSON of its own, and a key that may only read, in the address."""
    with Store.open(database_url) as store:
        reader = add_key(store, "flagger", Scope.READ)
        writer = add_key(store, "ci", Scope.INGEST)
    with Client.local(database_url) as client:
        client.register_policy(NAME, POLICY)
        send_pairs(client, NAME, 3)
        made = made_verdict(outcome, rollout=NAME, policy_hash=POLICY.policy_hash)
        client.post_verdict(resting_on(client, made))
    server = serve(database_url, env={"DRAFTGATE_REQUIRE_KEYS": "1"})
    payload = {"name": "llm", "namespace": "prod", "phase": "Progressing", "metadata": {"a": "b"}}
    address = server.url.replace("://", f"://flagger:{reader}@")
    answers = [
        httpx.post(f"{address}{PATH}", params={"may": may}, json=payload)
        for may in ("promotion", "rollback")
    ]
    assert [answer.status_code for answer in answers] == [promotion, rollback]
    assert {answer.json()["decision"] for answer in answers} == {outcome.value}
    refused = httpx.post(
        server.url.replace("://", f"://x:{writer}@") + PATH, params={"may": "promotion"}
    )
    assert refused.status_code == 403
    assert httpx.get(server.url + PATH, auth=("x", "nonsense")).status_code == 401
    assert httpx.get(server.url + PATH, headers={"authorization": "Basic ="}).status_code == 401


@pytest.mark.parametrize("query", ["max_age_s=0", "max_age_s=nan", "max_age_s=x", "max_age_s=1e9"])
def test_an_unusable_age_is_refused(database_url: str, query: str) -> None:
    """422 names the parameter."""
    with http_of(Settings(database_url=database_url)) as http:
        answer = http.get(f"{PATH}?{query}")
        assert answer.status_code == 422
        assert "max_age_s" in answer.text
        assert http.post(f"{PATH}?may=sing", json={}).status_code == 422
