"""Spans of clients that trace already: which of them pair, and the reasons for the others."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from made_generations import span_of
from otlp_bodies import export_request
from typer.testing import CliRunner

from collector.cli.unpaired import app
from collector.client import Client
from collector.contract import Arm, AttributeValue, Span, Unpaired, UnpairedReason

BASE = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"}
KEY = {"draftgate.rollout": "k4", "draftgate.arm": "baseline", "draftgate.prompt.id": "p"}


def span(
    number: int, attributes: dict[str, AttributeValue], resource: dict[str, AttributeValue]
) -> Span:
    """Return a client's span of a second."""
    own = {"service.name": "shop"}
    return span_of(number, attributes=BASE | attributes, resource=own | resource)


@pytest.fixture
def url(new_database_url: Callable[[str], str]) -> str:
    return new_database_url("sqlite")


@pytest.fixture
def client(url: str) -> Any:
    with Client.local(url) as opened:
        yield opened


def post(client: Client, *spans: Span) -> None:
    client.post_traces(export_request(spans).SerializeToString())


@pytest.mark.parametrize("repeat", [None, "0", 0])
def test_deployments_of_one_arm_each_pair(client: Client, repeat: AttributeValue) -> None:
    """Rollout, arm, cohort and dimensions are the resource's; the repeat is 0 unless it is said."""
    own: dict[str, AttributeValue] = {"draftgate.prompt.id": "p"}
    if repeat is not None:
        own["draftgate.repeat"] = repeat
    for number, arm in enumerate(Arm, start=1):
        resource: dict[str, AttributeValue] = {
            "draftgate.rollout": "k4",
            "draftgate.arm": arm.value,
            "draftgate.cohort": "chat",
            "draftgate.dim.region": "eu",
        }
        post(client, span(number, own, resource))
    (pair,) = client.pairs("k4").pairs
    assert (pair.prompt_id, pair.repeat, pair.cohort) == ("p", 0, "chat")
    assert pair.candidate is not None
    assert pair.candidate.dims == {"region": "eu"}
    assert client.unpaired() == ()


def test_a_spans_own_attributes_win_over_its_resources(client: Client) -> None:
    """A deployment of one arm may answer for the other now and then."""
    own: dict[str, AttributeValue] = KEY | {"draftgate.dim.region": "us"}
    post(client, span(1, own, {"draftgate.arm": "candidate", "draftgate.dim.region": "eu"}))
    (made,) = client.generations("k4")
    assert (made.arm, made.dims) == (Arm.BASELINE, {"region": "us"})


CASES = {
    UnpairedReason.NO_ROLLOUT: "draftgate.rollout",
    UnpairedReason.NO_ARM: "draftgate.arm",
    UnpairedReason.NO_PROMPT_ID: "draftgate.prompt.id",
    UnpairedReason.NO_OTHER_ARM: None,
}


@pytest.mark.parametrize("reason", CASES)
def test_what_does_not_pair_is_listed_with_the_reason(
    client: Client, reason: UnpairedReason
) -> None:
    """By the first that it lacks, with its sender and a trace."""
    own = {name: value for name, value in KEY.items() if name != CASES[reason]}
    post(client, span(1, own, {}), span(2, own, {}))
    assert client.unpaired() == (
        Unpaired(
            reason=reason,
            rollout=own.get("draftgate.rollout"),
            arm=Arm.BASELINE if "draftgate.arm" in own else None,
            service_name="shop",
            provider="openai",
            dialect="draftgate",
            unreadable=(),
            generations=2,
            last_start_unix_ns=10**18,
            trace_id=f"{2:032x}",
            span_id=f"{2:016x}",
        ),
    )


@pytest.mark.parametrize(
    ("name", "value"), [("draftgate.arm", "control"), ("draftgate.repeat", "first")]
)
def test_what_cannot_be_read_is_named(client: Client, name: str, value: str) -> None:
    """An unreadable repeat is none, and not the first."""
    post(client, span(1, KEY | {name: value}, {}))
    (group,) = client.unpaired("k4")
    assert group.unreadable == (name,)


def test_the_command_says_what_to_do(client: Client, url: str) -> None:
    """One line a sender and reason; JSON for machines; nothing where all pairs."""
    post(client, span(1, {}, {}))
    client.close()
    shown = CliRunner().invoke(app, ["--database", url], env={"COLUMNS": "250"})
    assert shown.exit_code == 0
    assert "no rollout" in shown.stdout
    assert "set draftgate.rollout on the span or the resource" in shown.stdout
    listed = CliRunner().invoke(app, ["--database", url, "--json"])
    assert [group["reason"] for group in json.loads(listed.stdout)] == ["no_rollout"]


def test_earlier_turns_of_own_histories_are_no_loose_ends(client: Client) -> None:
    """The session's last turn is its pair; the earlier ones need none."""
    own: dict[str, AttributeValue] = {
        "draftgate.rollout": "k4",
        "draftgate.arm": "baseline",
        "gen_ai.conversation.id": "s",
        "draftgate.turn": 1,
    }
    post(client, span(1, own, {}), span(2, {**own, "draftgate.own_history": True}, {}))
    (group,) = client.unpaired("k4")
    assert (group.reason, group.generations) == (UnpairedReason.NO_PROMPT_ID, 1)
