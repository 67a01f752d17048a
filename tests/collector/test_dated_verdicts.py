"""A rollout's verdicts over months: each with the serving that it judged, in all stores."""

from pathlib import Path

import pytest
from made_verdicts import made_verdict, resting_on
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, Generation, Outcome, Speculation, StoredVerdict
from collector.store import Batch, Store
from draftgate.commands import app
from evals.report.groups import grouped, serving_of

SECOND = 10**9


def serve(client: Client, rollout: str, first: int, *, k: int, fingerprint: str) -> None:
    """Store two pairs that a candidate with this draft served."""
    draft = Speculation(method="draft_model", draft_model="d", num_speculative_tokens=k)
    for arm in Arm:
        ours = arm is Arm.CANDIDATE
        client.post_generations(
            [
                Generation(
                    trace_id=f"{hash((rollout, number, arm)) % 2**60 + 1:032x}",
                    span_id=f"{number + 1:016x}",
                    start_unix_ns=10**18 + number * SECOND,
                    end_unix_ns=10**18 + (number + 1) * SECOND,
                    provider="vllm",
                    request_model="m",
                    rollout=rollout,
                    arm=arm,
                    prompt_id=f"p{number}",
                    repeat=0,
                    speculation=draft if ours else None,
                )
                for number in (first, first + 1)
            ],
            {
                "draftgate.fingerprint": fingerprint if ours else "base",
                "draftgate.engine.version": f"0.32-{fingerprint}",
            },
        )


def judge(client: Client, rollout: str, outcome: Outcome, **changes: object) -> None:
    client.post_verdict(resting_on(client, made_verdict(outcome, rollout=rollout, **changes)))


def story(client: Client) -> None:
    """Update the engine within a rollout, then change the policy; a watch looks last."""
    serve(client, "k4", 0, k=4, fingerprint="old")
    judge(client, "k4", Outcome.PASS)
    serve(client, "k4", 10, k=4, fingerprint="new")
    judge(client, "k4", Outcome.FAIL)
    judge(client, "k4", Outcome.INCONCLUSIVE, policy_name="strict", policy_hash="1" * 64)
    judge(client, "k4", Outcome.FAIL, versions={"watch": "1"})


def test_each_verdict_has_the_serving_that_it_judged(any_database_url: str) -> None:
    """Not that of today: the first verdict keeps the engine that it saw."""
    with Client.local(any_database_url) as client:
        story(client)
        found = client.dated_verdicts("k4")
        assert client.dated_verdicts("k4", limit=1) == found[:1]
    assert [one.outcome.value for one in found] == ["fail", "inconclusive", "fail", "pass"]
    marks = [one.candidate.fingerprint for one in found if one.candidate]
    assert marks == ["new", "new", "new", "old"]
    assert [one.watch for one in found] == [True, False, False, False]
    times = [one.posted_unix_ns for one in found]
    assert times == sorted(times, reverse=True)


def test_a_watchs_verdict_has_the_serving_before_it(database_url: str) -> None:
    """It names no stored pairs; what answered later is not what it judged."""
    with Client.local(database_url) as client:
        serve(client, "k4", 0, k=4, fingerprint="old")
        serve(client, "k4", 100, k=4, fingerprint="later")
        watch = made_verdict(Outcome.FAIL, rollout="k4", versions={"watch": "1"})
        posted = 10**18 + 50 * SECOND
        with Store.open(database_url) as store:
            stored = StoredVerdict(id="0" * 64, posted_unix_ns=posted, verdict=watch)
            store.write(Batch(verdicts=(stored,)))
        (found,) = client.dated_verdicts("k4")
    assert found.watch
    assert found.candidate is not None
    assert found.candidate.fingerprint == "old"


def test_groups_are_by_serving_and_policy(database_url: str) -> None:
    """The newest first, each with its outcomes counted."""
    with Client.local(database_url) as client:
        story(client)
        groups = grouped(client.dated_verdicts("k4"))
    said = [
        (serving_of(g.newest.candidate), g.newest.policy_name, dict(g.outcomes)) for g in groups
    ]
    new, old = (
        f"vllm 0.32-{mark}, m, draft_model d k=4, fingerprint {mark}" for mark in ("new", "old")
    )
    assert said == [
        (new, "default", {Outcome.FAIL: 2}),
        (new, "strict", {Outcome.INCONCLUSIVE: 1}),
        (old, "default", {Outcome.PASS: 1}),
    ]


def test_earlier_rollouts_of_the_same_candidate_are_added(database_url: str) -> None:
    """On request; another draft is another candidate."""
    with Client.local(database_url) as client:
        for first, rollout, k in ((0, "monday", 4), (10, "other", 5), (20, "tuesday", 4)):
            serve(client, rollout, first, k=k, fingerprint="same")
            judge(client, rollout, Outcome.PASS)
        assert {one.rollout for one in client.dated_verdicts("tuesday")} == {"tuesday"}
        both = client.dated_verdicts("tuesday", same_candidate=True)
        assert [one.rollout for one in both] == ["tuesday", "monday"]


@pytest.mark.parametrize(
    ("words", "said", "rows"),
    [([], "fingerprint", 3), (["--each"], "inconclusive", 4)],
)
def test_the_command_prints_it(tmp_path: Path, words: list[str], said: str, rows: int) -> None:
    """A row for each serving and policy, or for each verdict."""
    url = f"sqlite:///{tmp_path / 'd.db'}"
    with Client.local(url) as client:
        story(client)
    env = {"COLUMNS": "300"}
    found = CliRunner().invoke(app, ["history", "k4", "--database", url, *words], env=env)
    assert found.exit_code == 0, found.output
    assert said in found.stdout
    assert found.stdout.count("m, draft_model d k=4") == rows


def test_nothing_judged_is_said(tmp_path: Path) -> None:
    """It is no error."""
    url = f"sqlite:///{tmp_path / 'd.db'}"
    with Client.local(url) as client:
        serve(client, "k4", 0, k=4, fingerprint="same")
    found = CliRunner().invoke(app, ["history", "k4", "--database", url])
    assert (found.exit_code, found.stdout) == (0, "k4: nobody has judged it yet\n")
