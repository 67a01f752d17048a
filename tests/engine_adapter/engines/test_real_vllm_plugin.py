"""vLLM with `draftgate-vllm`, on a CPU: its own spans have the counts that its answers give."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import vllm_plugin
import vllm_server
from otlp_bodies import export_request
from twenty_prompts import MODELS, requests

from collector.client import Client
from collector.contract import Arm, Generation, Speculation, encode
from demo.collector_process import running
from engine_adapter.engines.scrape import Scrape
from engine_adapter.engines.vllm import COUNTERS

pytestmark = [pytest.mark.slow, pytest.mark.vllm, pytest.mark.timeout(1800)]

K = vllm_server.DRAFT_TOKENS
DRAFT = {"method": "draft_model", "model": str(MODELS / "draft"), "num_speculative_tokens": K}
_RESOURCE = "draftgate.rollout=served,draftgate.arm=candidate,draftgate.cohort=chat"
_ASKED = 10
_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_PARENT = "00f067aa0ba902b7"
_COUNTED = (COUNTERS.steps, COUNTERS.drafted, COUNTERS.accepted)


@dataclass
class Taken:
    """What a server answered, and what the collector made of its spans."""

    answers: list[dict[str, Any]]
    """One choice each, by clients without spans."""
    counted: tuple[float, ...]
    """What the server's metrics counted over these: steps, drafted, accepted."""
    of_choices: dict[str, Any]
    """Two choices."""
    stopped: dict[str, Any]
    """Ended by a stop string."""
    of_client: dict[str, Any]
    """Within a client's trace, whose span says nothing of acceptance."""
    stored: dict[str | None, list[Generation]]
    """By response id."""
    summary: Any
    """The candidate's, of the API."""


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Taken]:
    folder = tmp_path_factory.mktemp("plugin")
    variables = vllm_plugin.install(folder / "site") | {"OTEL_RESOURCE_ATTRIBUTES": _RESOURCE}
    with (
        running(folder / "runs.db", folder / "collector.log") as collector,
        vllm_server.serving(
            MODELS / "target", speculation=DRAFT, collector_url=collector, variables=variables
        ) as root,
    ):
        yield take(root, collector)


def take(root: str, collector: str) -> Taken:
    """Ask the server, send a client's span, and wait for the server's spans."""
    prompts = [
        [{"role": one.role, "content": one.content} for one in request.messages]
        for request in requests()[:_ASKED]
    ]
    before = Scrape.parse(httpx.get(f"{root}/metrics").text)
    answers = [ask(root, messages=messages) for messages in prompts]
    after = scraped_when(root, before, _ASKED)
    traced = {"traceparent": f"00-{_TRACE}-{_PARENT}-01"}
    stopped = ask(root, messages=prompts[0], stop=[" "])
    of_client = ask(root, traced, messages=prompts[0])
    of_choices = ask(root, messages=prompts[0], n=2, temperature=1.0)
    with Client(collector) as client:
        client.post_traces(export_request([encode(span_of(of_client))]).SerializeToString())
        stored = settled(client)
        (summary,) = client.summary("served")
    return Taken(
        answers,
        tuple(total(after, name) - total(before, name) for name in _COUNTED),
        of_choices,
        stopped,
        of_client,
        stored,
        summary,
    )


def ask(root: str, headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """Return the server's answer to a request of few tokens."""
    body = {"model": "served", "max_tokens": 24, "temperature": 0.0, **fields}
    answer = httpx.post(
        f"{root}/v1/chat/completions", json=body, headers=headers, timeout=300
    ).raise_for_status()
    return answer.json()  # type: ignore[no-any-return]


def counts_of(answer: dict[str, Any]) -> tuple[int, int, int]:
    said = answer["metrics"]["speculative_decoding"]
    return said["num_spec_steps"], said["num_draft_tokens"], said["num_accepted_draft_tokens"]


def scraped_when(root: str, before: Scrape, answers: int) -> Scrape:
    """Return the metrics that have counted so many more answers: after the last token was sent."""
    while True:
        page = Scrape.parse(httpx.get(f"{root}/metrics").text)
        if total(page, COUNTERS.requests) - total(before, COUNTERS.requests) == answers:
            return page
        time.sleep(0.2)


def total(page: Scrape, name: str | None) -> float:
    assert name is not None
    return page.total(name) or 0


def span_of(answer: dict[str, Any]) -> Generation:
    """Return a client's record of the answer, without acceptance."""
    now = time.time_ns()
    return Generation(
        trace_id=_TRACE,
        span_id=_PARENT,
        start_unix_ns=now - 10**9,
        end_unix_ns=now,
        operation="chat",
        rollout="served",
        arm=Arm.CANDIDATE,
        cohort="chat",
        response_id=answer["id"],
        output_tokens=answer["usage"]["completion_tokens"],
    )


def settled(client: Client) -> dict[str | None, list[Generation]]:
    """Return the generations, once all of the server's spans have arrived."""
    while True:
        found: dict[str | None, list[Generation]] = {}
        for one in client.generations("served"):
            found.setdefault(one.response_id, []).append(one)
        every = [one for some in found.values() for one in some]
        if len(every) == _ASKED + 4 and all(one.server_ttft_s is not None for one in every):
            return found
        time.sleep(0.5)


def said_of(answer: dict[str, Any]) -> Speculation:
    """Return the counts in the answer's body."""
    said = answer["metrics"]["speculative_decoding"]
    histogram = said["acceptance_histogram"]
    return Speculation(
        source="request",
        num_speculative_tokens=K,
        steps=said["num_spec_steps"],
        draft_tokens=said["num_draft_tokens"],
        accepted_tokens=said["num_accepted_draft_tokens"],
        accepted_tokens_per_pos=tuple(sum(histogram[j:]) for j in range(1, K + 1)),
        acceptance_histogram=tuple(histogram),
    )


def test_the_spans_have_the_counts_of_the_answers(taken: Taken) -> None:
    """Request by request, and in sum what the server's metrics counted."""
    for answer in taken.answers:
        (stored,) = taken.stored[answer["id"]]
        assert stored.speculation == said_of(answer)
        assert stored.quality == ()
    sums = tuple(map(sum, zip(*map(counts_of, taken.answers), strict=True)))
    assert sums == taken.counted
    assert sums[2] > 0


def test_a_choice_of_several_has_no_counts(taken: Taken) -> None:
    """Each of the two has a span; the response has no counts."""
    stored = taken.stored[taken.of_choices["id"]]
    assert [one.speculation for one in stored] == [None, None]


def test_an_answer_that_a_stop_string_ended_has_no_counts(taken: Taken) -> None:
    """The string is found where the counts are not, so the response has none either."""
    (stored,) = taken.stored[taken.stopped["id"]]
    assert taken.stopped["choices"][0]["finish_reason"] == "stop"
    assert taken.stopped["metrics"].get("speculative_decoding") is None
    assert stored.speculation is None


def test_a_clients_generation_takes_the_servers_counts(taken: Taken) -> None:
    """Its own span named none; it stays one generation."""
    (stored,) = taken.stored[taken.of_client["id"]]
    assert (stored.trace_id, stored.span_id) == (_TRACE, _PARENT)
    assert stored.speculation == said_of(taken.of_client)


def test_the_rollout_has_its_acceptance(taken: Taken) -> None:
    """What the dashboard shows, summed from the server's spans."""
    every = [counts_of(answer) for answer in [*taken.answers, taken.of_client]]
    steps, drafted, accepted = map(sum, zip(*every, strict=True))
    found = taken.summary
    assert (found.spec_steps, found.spec_draft_tokens, found.spec_accepted_tokens) == (
        steps,
        drafted,
        accepted,
    )
