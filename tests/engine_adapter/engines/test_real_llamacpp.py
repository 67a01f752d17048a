"""llama.cpp itself, over the demo's pair: its body, its stream, its metrics and our steps agree."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import engine_rules
import httpx
import llamacpp_server
import pytest
from rollout_files import told, written
from twenty_prompts import MAX_TOKENS, MODELS, ROOT, Answers, requests

from collector.client import Client
from collector.contract import Arm, Speculation
from engine_adapter.engines import Answer, EngineOpener, Request
from engine_adapter.engines.answer import OutputPart, SpeculationSetup
from engine_adapter.engines.json_fields import JsonObject
from engine_adapter.engines.llamacpp import COUNTERS, LlamaCppEngine, LlamaCppReader
from engine_adapter.engines.local import Drafter
from engine_adapter.engines.model_folder import ModelShelf
from engine_adapter.engines.scrape import Scrape, counts_between
from engine_adapter.routes import HttpRoute, TransformersRoute

K = llamacpp_server.DRAFT_TOKENS


class Served:
    """A server's answers, with what its metrics counted meanwhile."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.route = HttpRoute(engine="llamacpp", url=f"{root}/v1", model="served")
        before = self.scrape()
        self.answers = Answers(self.route)
        self.counted = counts_between(before, self.scrape(), COUNTERS)

    def scrape(self) -> Scrape:
        return Scrape.parse(httpx.get(f"{self.root}/metrics").text)

    def post(self, body: dict[str, Any]) -> Any:
        return httpx.post(f"{self.root}/v1/chat/completions", json=body, timeout=60).json()


@pytest.fixture(scope="module")
def plain(gguf_pair: dict[str, Path]) -> Iterator[Served]:
    with llamacpp_server.serving(gguf_pair["target"]) as root:
        yield Served(root)


@pytest.fixture(scope="module")
def drafted(gguf_pair: dict[str, Path]) -> Iterator[Served]:
    with llamacpp_server.serving(gguf_pair["target"], draft=gguf_pair["draft"]) as root:
        yield Served(root)


@pytest.fixture(scope="module")
def looked_up(gguf_pair: dict[str, Path]) -> Iterator[Served]:
    with llamacpp_server.serving(gguf_pair["target"], ngram=True) as root:
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


@pytest.mark.slow
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
    assert (answers.probe.speculates, answers.probe.setup.configured.method) == (True, method)
    assert answers.totals == totals
    questions = counts_of_questions(served)
    assert counted.steps == totals[0] + questions[0]
    assert counted.draft_tokens == totals[1] + questions[1]
    assert counted.accepted_tokens == totals[2] + questions[2]


@pytest.mark.parametrize(
    ("server", "drafting"),
    [
        ("drafted", engine_rules.by_draft_model),
        ("looked_up", engine_rules.by_latest_pair),
    ],
)
def test_the_loop_counts_the_same_by_llamacpps_rules(
    request: pytest.FixtureRequest, server: str, drafting: Callable[[ModelShelf], Drafter]
) -> None:
    """Answer by answer and position by position."""
    ours = engine_rules.counted(drafting, K)
    theirs = request.getfixturevalue(server).answers.completions
    assert [one.text for one in ours] == [one.text for one in theirs]
    for one, completion in zip(ours, theirs, strict=True):
        assert engine_rules.differing(completion.speculation, one.llamacpp) == {}


def counts_of_questions(served: Served) -> tuple[int, int, int]:
    """Return what opening the route costs: it asks two questions before the first prompt."""
    before = served.scrape()

    async def open_and_close() -> None:
        await (await EngineOpener().open(served.route)).close()

    asyncio.run(open_and_close())
    counts = counts_between(before, served.scrape(), COUNTERS)
    return counts.steps, counts.draft_tokens, counts.accepted_tokens


def test_a_whole_answer_says_what_its_stream_says(drafted: Served) -> None:
    """The body has the same totals, and no steps."""
    for request, streamed in zip(requests(), drafted.answers.completions, strict=True):
        messages = [message.api() for message in request.messages]
        reader = LlamaCppReader(SpeculationSetup(on=True))
        reader.take(drafted.post({"messages": messages, "max_tokens": 64, "temperature": 0}))
        whole, said = reader.answer(), streamed.speculation
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
        assert ours.output_tokens == theirs.output_tokens
        # No token of a prefill; no bonus in the last step where its last draft ended the text.
        assert said.steps + said.accepted_tokens - ours.output_tokens in (0, 1)


class MuteReader(LlamaCppReader):
    """Reads as if the server said nothing of drafts in its answers."""

    def observe(self, document: JsonObject, piece: OutputPart | None) -> OutputPart | None:
        """Take the document without its timings."""
        return super().observe({**document, "timings": None}, piece)


class MuteEngine(LlamaCppEngine):
    """Has nothing but `/metrics` to count by."""

    reader = MuteReader


def test_differences_of_scrapes_are_what_the_answers_say(drafted: Served) -> None:
    """One request at a time on a quiet server: the same counts, from `/metrics` alone."""
    found = asyncio.run(scraped(drafted.route))
    for theirs, completion in zip(found, drafted.answers.completions, strict=False):
        said = completion.speculation
        assert theirs.source == "scrape"
        assert theirs.accepted_tokens_per_pos == said.accepted_tokens_per_pos
        assert (theirs.steps, theirs.draft_tokens, theirs.accepted_tokens) == (
            said.steps,
            said.draft_tokens,
            said.accepted_tokens,
        )


def test_two_requests_at_once_have_no_difference_of_their_own(drafted: Served) -> None:
    """What ran together stays uncounted, and the next one alone is counted again."""

    async def ask() -> list[Speculation | None]:
        engine = await MuteEngine.open(drafted.route)
        first, second, third = requests()[:3]
        try:
            together = await asyncio.gather(last(engine, first), last(engine, second))
            await last(engine, third)
            return [*together, await last(engine, third)]
        finally:
            await engine.close()

    one, other, alone = asyncio.run(ask())
    assert (one and one.accepted_tokens, other and other.accepted_tokens) == (None, None)
    assert alone.source == "scrape"


async def scraped(route: HttpRoute) -> list[Speculation | None]:
    """Return the counts of five prompts, one after another."""
    engine = await MuteEngine.open(route)
    try:
        return [await last(engine, request) for request in requests()[:5]]
    finally:
        await engine.close()


async def last(engine: LlamaCppEngine, request: Request) -> Speculation | None:
    """Return what an answer's completion says of its speculation."""
    items = [item async for item in engine.generate(request)]
    assert isinstance(items[-1], Answer)
    return items[-1].speculation


@pytest.mark.slow
def test_a_run_over_two_servers_is_told_apart_in_the_collector(
    plain: Served, drafted: Served, tmp_path: Path, url: str
) -> None:
    """`draftgate run` as a user has it: both arms stored, counts on the candidate alone."""
    experiment = {
        "rollout": "llamacpp-k4",
        "workload": str(ROOT / "demo" / "workload.jsonl"),
        "baseline": plain.route.model_dump(mode="json"),
        "candidate": drafted.route.model_dump(mode="json"),
        "load": {"max_prompts": 8, "warmup": 1},
        "sampling": {"max_tokens": MAX_TOKENS},
    }
    told("run", written(tmp_path, experiment), "--collector", url)
    with Client(url) as client:
        stored = list(client.generations("llamacpp-k4"))
    arms = {arm: [one for one in stored if one.arm is arm] for arm in Arm}
    assert [len(arms[arm]) for arm in Arm] == [8, 8]
    assert [one.quality for one in stored] == [()] * 16
    assert {one.provider for one in stored} == {"llama_cpp"}
    assert [one.speculation for one in arms[Arm.BASELINE]] == [None] * 8
    counted = [one.speculation for one in arms[Arm.CANDIDATE]]
    wanted = [one.speculation for one in drafted.answers.completions[:8]]
    assert sums(counted) == sums(wanted)


def sums(counted: list[Speculation | None]) -> list[int]:
    """Return all steps, drafted and accepted tokens."""
    found = [one for one in counted if one is not None]
    return [
        sum(one.steps or 0 for one in found),
        sum(one.draft_tokens or 0 for one in found),
        sum(one.accepted_tokens or 0 for one in found),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("history", ["recorded", "own"])
def test_sessions_are_the_same_with_and_without_drafts(
    plain: Served, drafted: Served, tmp_path: Path, history: str, url: str
) -> None:
    """Greedy and in 32 bits: equal answers make equal histories, turn by turn."""
    experiment = {
        "rollout": "sessions",
        "workload": str(ROOT / "docs" / "examples" / "sessions.jsonl"),
        "baseline": plain.route.model_dump(mode="json"),
        "candidate": drafted.route.model_dump(mode="json"),
        "load": {"history": history, "think_s": 0, "warmup": 1, "concurrency": 2},
        "sampling": {"max_tokens": 16},
    }
    told("run", written(tmp_path, experiment), "--collector", url)
    with Client(url) as client:
        pairs = client.pairs("sessions", limit=50, content=True).pairs
        stored = list(client.generations("sessions"))
        unpaired = client.unpaired("sessions")
    assert unpaired == ()
    assert len(stored) == 24
    assert len({one.trace_id for one in stored}) == 8
    assert [pair.prompt_id for pair in pairs] == sorted(
        f"{name}/{turn}"
        for name in ("code", "spade", "stock", "trip")
        for turn in ((3,) if history == "own" else (1, 2, 3))
    )
    for pair in pairs:
        assert pair.baseline.error_type is None
        assert pair.baseline.content.input_messages == pair.candidate.content.input_messages
        assert pair.baseline.content.output_messages == pair.candidate.content.output_messages
