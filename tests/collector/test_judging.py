"""Who may judge: forging a verdict, a score, a registration or a step with every kind of key."""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from made_generations import generation_of, score_of
from made_verdicts import made_verdict, registration, resting_on, send_pairs
from otlp_bodies import logs_request
from stored_keys import add_key

from collector.api_key import Scope
from collector.client import Client, ClientError
from collector.contract import (
    EvidencePart,
    Generation,
    Outcome,
    RampChange,
    Switch,
    SwitchChange,
    Verdict,
    Watch,
    WatchUpdate,
)
from collector.store import Store

Serve = Callable[..., Any]
ClientOf = Callable[..., Client]


@pytest.fixture
def client_of(serve: Serve, any_database_url: str) -> Iterator[ClientOf]:
    """Return what opens a client with a new key of some scopes, at a collector that asks for it."""
    with Store.open(any_database_url) as store:
        add_key(store, "there must be one", Scope.READ)
    server = serve(any_database_url, env={"DRAFTGATE_REQUIRE_KEYS": "1"})
    with contextlib.ExitStack() as opened:

        def client_of(*scopes: Scope) -> Client:
            with Store.open(any_database_url) as store:
                key = add_key(store, "+".join(scopes), *scopes)
            return opened.enter_context(Client(server.url, key=key))

        yield client_of


def attempts(verdict: Verdict) -> dict[str, Callable[[Client], object]]:
    """Return everything by which somebody could turn a release."""
    score = score_of(generation_of())
    watch = Watch(rollout="k4", policy_name="p", policy_hash="h", outcome=Outcome.PASS)
    return {
        "verdict": lambda c: c.post_verdict(verdict),
        "score": lambda c: c.post_scores([score]),
        "watch": lambda c: c.update_watch(WatchUpdate(continues=0, watch=watch)),
        "policy": lambda c: c.register_policy("k4", registration()),
        "step": lambda c: c.take_step("k4", RampChange(percent=1, reason="r")),
    }


def test_only_a_judge_posts_what_a_release_rests_on(client_of: ClientOf) -> None:
    """A key with ingest, read or content alone is refused all of it; only admin takes a step."""
    every = client_of(*Scope)
    send_pairs(every, "k4")
    verdict = resting_on(every, made_verdict(Outcome.PASS))
    done: dict[str, set[str]] = {}
    for scope in Scope:
        client = client_of(scope)
        for name, attempt in attempts(verdict).items():
            if status_of(attempt, client) != 403:
                done.setdefault(scope, set()).add(name)
    assert done == {"judge": {"verdict", "score", "watch", "policy"}, "admin": {"step"}}
    (stored,) = every.verdicts("k4")
    assert stored.who == "judge"
    assert stored.key_id is not None
    assert [one.key_id for one in every.watches("k4")] == [stored.key_id]
    assert [one.key_id for one in every.history("k4").registrations] == [stored.key_id]


def test_a_judge_alone_does_not_set_the_switch(client_of: ClientOf) -> None:
    """A watch's state needs judge; the switch that it sets with it needs admin, too."""
    judge, every = client_of(Scope.JUDGE), client_of(*Scope)
    watch = Watch(rollout="k4", policy_name="p", policy_hash="h")
    change = SwitchChange(state=Switch.ON, reason="r")
    with pytest.raises(ClientError, match="scope admin"):
        judge.update_watch(WatchUpdate(continues=0, watch=watch, switch=change))
    assert every.switch("k4") == ()
    assert every.watches("k4") == ()


def test_a_score_names_the_key_that_posted_it(client_of: ClientOf) -> None:
    """Over the API and in an export, whatever key a sender claims; the last post's key stands."""
    every = client_of(*Scope)
    judges = [client_of(Scope.INGEST, Scope.JUDGE) for _ in range(2)]
    send_pairs(every, "k4")
    (generation, *_) = every.generations("k4")
    posted = score_of(generation, key_id="claimed")
    ids = [key_id_of(judge) for judge in judges]
    for judge, key_id in zip(judges, ids, strict=True):
        judge.post_scores([posted])
        assert [score.key_id for score in every.scores("k4")] == [key_id]
    post_results(judges[0], generation)
    assert {score.key_id for score in every.scores("k4")} == {*ids}
    pair = every.pairs("k4").pairs[0]
    assert {score.key_id for score in (*pair.baseline_scores, *pair.candidate_scores)} == {*ids}


def key_id_of(judge: Client) -> str | None:
    """Return the id of a client's key, as the collector notes it of a watch."""
    watch = Watch(rollout="k4", policy_name="p", policy_hash=uuid.uuid4().hex)
    return judge.update_watch(WatchUpdate(continues=0, watch=watch)).key_id


def test_scores_in_logs_need_a_judge_too(client_of: ClientOf) -> None:
    """An evaluation result in an OTLP export is a score: a sender's is rejected, and it is told."""
    sender, judge = client_of(Scope.INGEST), client_of(Scope.INGEST, Scope.JUDGE, Scope.READ)
    send_pairs(judge, "k4")
    (generation, *_) = judge.generations("k4")
    for client, rejected, stored in ((sender, 1, 0), (judge, 0, 1)):
        assert (b"scope judge" in post_results(client, generation)) == bool(rejected)
        assert len(list(judge.scores("k4"))) == stored


def post_results(client: Client, generation: Generation) -> bytes:
    """Export an evaluation's result of a generation, and return the answer."""
    record = {
        "event_name": "gen_ai.evaluation.result",
        "trace_id": bytes.fromhex(generation.trace_id),
        "span_id": bytes.fromhex(generation.span_id),
        "attributes": {
            "gen_ai.evaluation.name": "m", "gen_ai.evaluation.score.value": 1.0
        },
    }  # fmt: skip
    body = logs_request([record]).SerializeToString()
    headers = {"Content-Type": "application/x-protobuf"}
    return client._connection.send("POST", "/v1/logs", content=body, headers=headers).content


FORGED = {
    "no rollout": (lambda v: replace(v, rollout="none", evidence=()), 404, "no rollout 'none'"),
    "no evidence": (lambda v: replace(v, evidence=()), 409, "evidence: missing"),
    "more pairs": (lambda v: replace(v, pairs=9), 409, "pairs: got 9, but its evidence holds 2"),
    "other count": (lambda v: _part(v, pairs=3), 409, "evidence[0].pairs: got 3, but 2 pairs"),
    "other hash": (lambda v: _part(v, data_hash="0" * 64), 409, "evidence[0].data_hash: got 000"),
    "other window": (lambda v: _part(v, arrived_after=2**62), 409, "evidence[0].pairs"),
    "other rollout": (lambda v: _part(v, rollout="k5"), 409, "wanted pairs of 'k4'"),
    "as control": (lambda v: _part(v, control=True), 409, "wanted pairs of 'k4'"),
    "a watch": (lambda v: replace(v, evidence=(), versions={"watch": "1"}), 409, "stored watch"),
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED)
def test_a_verdict_rests_on_what_is_stored(any_database_url: str, forged: str) -> None:
    """The store refuses one whose rollout, pairs or hash it does not hold, and says which."""
    change, status, words = FORGED[forged]
    with Client.local(any_database_url) as client:
        send_pairs(client, "k4", 2)
        send_pairs(client, "k5", 2)
        true = resting_on(client, made_verdict(Outcome.PASS, pairs=2))
        with pytest.raises(ClientError) as refused:
            client.post_verdict(change(true))
        assert refused.value.status == status
        assert words in str(refused.value)
        assert client.verdicts() == ()
        send_pairs(client, "k4", 2, first=2)  # what arrives later changes nothing
        client.post_scores([score_of(next(client.generations("k4")), span_id=f"{1:016x}")])
        assert client.post_verdict(true).verdict == true


def status_of(attempt: Callable[[Client], object], client: Client) -> int | None:
    """Return the status of a refusal; None if there is none."""
    try:
        attempt(client)
    except ClientError as exc:
        return exc.status
    return None


def _part(verdict: Verdict, **changes: object) -> Verdict:
    part: EvidencePart = replace(verdict.evidence[0], **changes)  # type: ignore[arg-type]
    return replace(verdict, evidence=(part,))
