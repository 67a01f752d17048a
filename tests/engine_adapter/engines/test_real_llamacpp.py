"""llama.cpp itself, over the demo's pair: its body, its stream, its metrics and our steps agree."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf_model
import httpx
import llamacpp_server
import pytest
from twenty_prompts import MAX_TOKENS, MODELS, Answers, requests

from engine_adapter.engines import EngineOpener
from engine_adapter.engines.answer import SpeculationSetup
from engine_adapter.engines.llamacpp import COUNTERS, LlamaCppReader
from engine_adapter.engines.scrape import Scrape, counts_between
from engine_adapter.routes import HttpRoute, TransformersRoute

K = llamacpp_server.DRAFT_TOKENS


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the demo's target and draft as GGUF files."""
    folder = tmp_path_factory.mktemp("gguf")
    for name in ("target", "draft"):
        gguf_model.write(MODELS / name, folder / f"{name}.gguf")
    return {name: folder / f"{name}.gguf" for name in ("target", "draft")}


class Served:
    """A server's answers, with what its metrics counted meanwhile."""

    def __init__(self, root: str) -> None:
        self.root = root
        before = self.scrape()
        self.answers = Answers(HttpRoute(engine="llamacpp", url=f"{root}/v1", model="served"))
        self.counted = counts_between(before, self.scrape(), COUNTERS)

    def scrape(self) -> Scrape:
        return Scrape.parse(httpx.get(f"{self.root}/metrics").text)

    def post(self, body: dict[str, Any]) -> Any:
        return httpx.post(f"{self.root}/v1/chat/completions", json=body, timeout=60).json()


@pytest.fixture(scope="module")
def plain(pair: dict[str, Path]) -> Iterator[Served]:
    with llamacpp_server.serving(pair["target"]) as root:
        yield Served(root)


@pytest.fixture(scope="module")
def drafted(pair: dict[str, Path]) -> Iterator[Served]:
    with llamacpp_server.serving(pair["target"], draft=pair["draft"]) as root:
        yield Served(root)


@pytest.fixture(scope="module")
def looked_up(pair: dict[str, Path]) -> Iterator[Served]:
    with llamacpp_server.serving(pair["target"], ngram=True) as root:
        yield Served(root)


@pytest.fixture(scope="module")
def in_process() -> Answers:
    """Return transformers' answers with the same pair and k."""
    return Answers(
        TransformersRoute(
            model=str(MODELS / "target"),
            draft_model=str(MODELS / "draft"),
            num_speculative_tokens=K,
        )
    )


def test_a_server_without_speculation_says_so_and_has_no_counts(plain: Served) -> None:
    """The counts are absent, not zero."""
    assert plain.answers.probe.speculates is False
    assert [one.speculation for one in plain.answers.completions] == [None] * 20


def test_all_routes_give_the_same_twenty_texts(
    plain: Served, drafted: Served, looked_up: Served, in_process: Answers
) -> None:
    """Greedy and in 32 bits: draft model, n-gram, none, and transformers."""
    assert drafted.answers.texts == plain.answers.texts
    assert looked_up.answers.texts == plain.answers.texts
    assert in_process.texts == plain.answers.texts


@pytest.mark.parametrize(
    ("server", "method", "totals"),
    [("drafted", "draft_model", (149, 596, 426)), ("looked_up", "ngram-simple", (57, 228, 32))],
)
def test_our_steps_sum_to_what_its_metrics_counted(
    request: pytest.FixtureRequest, server: str, method: str, totals: tuple[int, int, int]
) -> None:
    """Steps, drafted and accepted tokens, and the accepted ones by position, are equal exactly."""
    served: Served = request.getfixturevalue(server)
    answers, counted = served.answers, served.counted
    assert (answers.probe.speculates, answers.probe.speculation_method) == (True, method)
    assert answers.totals == totals
    questions = counts_of_questions(served)
    assert counted.steps == totals[0] + questions[0]
    assert counted.draft_tokens == totals[1] + questions[1]
    assert counted.accepted_tokens == totals[2] + questions[2]


def counts_of_questions(served: Served) -> tuple[int, int, int]:
    """Return what opening the route costs: it asks two questions before the first prompt."""
    before = served.scrape()

    async def open_and_close() -> None:
        route = HttpRoute(engine="llamacpp", url=f"{served.root}/v1", model="served")
        await (await EngineOpener().open(route)).close()

    asyncio.run(open_and_close())
    counts = counts_between(before, served.scrape(), COUNTERS)
    assert counts.steps is not None
    assert counts.draft_tokens is not None
    assert counts.accepted_tokens is not None
    return counts.steps, counts.draft_tokens, counts.accepted_tokens


def test_a_whole_answer_says_what_its_stream_says(drafted: Served) -> None:
    """The body has the same totals, and no steps."""
    for request, streamed in zip(requests(), drafted.answers.completions, strict=True):
        messages = [message.model_dump() for message in request.messages]
        reader = LlamaCppReader(SpeculationSetup(on=True))
        reader.take(drafted.post({"messages": messages, "max_tokens": 64, "temperature": 0}))
        whole, said = reader.answer(), streamed.speculation
        assert whole.speculation is not None
        assert said is not None
        assert whole.speculation.draft_tokens == said.draft_tokens
        assert whole.speculation.accepted_tokens == said.accepted_tokens
        assert whole.speculation.steps is None
        assert (whole.text, whole.output_tokens) == (streamed.text, streamed.output_tokens)


def test_steps_explain_the_tokens(drafted: Served) -> None:
    """The prefill's token, a bonus a step and the accepted are the answer, or one more.

    The one is the end of the text, where it was a step's last draft token.
    """
    over = []
    for completion in drafted.answers.completions:
        said = completion.speculation
        assert said is not None
        assert said.steps is not None
        assert said.accepted_tokens is not None
        assert completion.output_tokens is not None
        assert completion.output_tokens < MAX_TOKENS
        over.append(1 + said.steps + said.accepted_tokens - completion.output_tokens)
    assert set(over) == {0, 1}


def test_chunks_hold_one_token_each_but_the_end(drafted: Served) -> None:
    """The end of the text is a token without text."""
    for completion, chunks in zip(drafted.answers.completions, drafted.answers.chunks, strict=True):
        assert {chunk.tokens for chunk in chunks} == {1}
        assert completion.output_tokens == len(chunks) + 1


def test_transformers_drafts_before_the_first_token_and_so_counts_otherwise(
    drafted: Served, in_process: Answers
) -> None:
    """Its first step verifies a draft with the prompt, so its steps lie one token earlier.

    The answers are equal, the drafts are of the same model, and the counts are each engine's own.
    """
    assert in_process.totals == (153, 583, 455)
    for ours, theirs in zip(in_process.completions, drafted.answers.completions, strict=True):
        said = ours.speculation
        assert said is not None
        assert said.steps is not None
        assert said.accepted_tokens is not None
        assert ours.output_tokens == theirs.output_tokens
        assert ours.output_tokens is not None
        # No token of a prefill; no bonus in the last step where its last draft ended the text.
        assert said.steps + said.accepted_tokens - ours.output_tokens in (0, 1)
