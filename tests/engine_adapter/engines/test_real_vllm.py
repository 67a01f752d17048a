"""vLLM itself, on a CPU, over the demo's pair: body, stream, metrics and trace agree.

Three gigabytes and half a minute a start: one server runs at a time, and is gone when its answers
have been taken.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import engine_rules
import httpx
import pytest
import vllm_server
from twenty_prompts import MODELS, Answers, requests

from collector.client import Client
from collector.contract import Generation, Speculation
from demo.collector_process import running
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.scrape import Scrape, ScrapedCounts, counts_between
from engine_adapter.engines.vllm import COUNTERS, VllmEngine, VllmReader
from engine_adapter.routes import HttpRoute, TransformersRoute
from engine_adapter.run import rollout_file
from engine_adapter.run.replay import replay

pytestmark = [pytest.mark.slow, pytest.mark.vllm, pytest.mark.timeout(1800)]

K = vllm_server.DRAFT_TOKENS
DRAFT = {"method": "draft_model", "model": str(MODELS / "draft"), "num_speculative_tokens": K}
NGRAM = {
    "method": "ngram",
    "num_speculative_tokens": K,
    "prompt_lookup_min": 1,
    "prompt_lookup_max": 2,
}


class MuteReader(VllmReader):
    """Reads as if the server had not been told to report each request."""

    def answer(self) -> Answer:
        """Return the answer of a server without per-request metrics."""
        self._metrics = None
        return super().answer()


class MuteEngine(VllmEngine):
    """Has nothing but `/metrics` to count by."""

    reader = MuteReader


@dataclass
class Taken:
    """All that the tests want of one server."""

    answers: Answers
    counted: ScrapedCounts
    """What its metrics counted over the twenty answers and the two questions before them."""
    questions: ScrapedCounts
    scraped: list[Any]
    """Each answer's counts, by differences of scrapes alone."""
    joined: list[Generation]
    """What the collector made of a run whose server spans it had, too."""


def take(folder: Path, speculation: dict[str, Any] | None) -> Taken:
    """Start a server, ask it everything, and stop it."""
    with (
        running(folder / "runs.db", folder / "collector.log") as collector,
        vllm_server.serving(
            MODELS / "target", speculation=speculation, collector_url=collector
        ) as root,
    ):
        route = HttpRoute(engine="vllm", url=f"{root}/v1", model="served")
        opened = settled(root, None)
        asyncio.run(opened_and_closed(route))
        asked = settled(root, opened)
        answers = Answers(route)
        done = settled(root, asked)
        return Taken(
            answers=answers,
            counted=counts_between(asked, done, COUNTERS),
            questions=counts_between(opened, asked, COUNTERS),
            scraped=asyncio.run(scraped_counts(route)),
            joined=joined_run(route, collector),
        )


def settled(root: str, before: Scrape | None) -> Scrape:
    """Return a scrape that no longer changes: the server counts an answer after its last chunk."""
    while True:
        pages = []
        for _ in range(2):
            time.sleep(0.3)
            pages.append(Scrape.parse(httpx.get(f"{root}/metrics").text))
        totals = [page.total(COUNTERS.generated) for page in pages]
        if totals[0] == totals[1] and (
            before is None or totals[1] != before.total(COUNTERS.generated)
        ):
            return pages[1]


async def opened_and_closed(route: HttpRoute) -> None:
    await (await VllmEngine.open(route)).close()


async def scraped_counts(route: HttpRoute) -> list[Any]:
    engine = await MuteEngine.open(route)
    try:
        return [
            [item async for item in engine.generate(request)][-1].speculation  # type: ignore[union-attr]
            for request in requests()[:5]
        ]
    finally:
        await engine.close()


def joined_run(route: HttpRoute, collector: str) -> list[Generation]:
    """Return the collector's records of a small run, once the server's spans have arrived."""
    experiment = {
        "rollout": "joined",
        "workload": str(Path("demo/workload.jsonl").resolve()),
        "baseline": route.model_dump(),
        "candidate": route.model_dump(),
        "sampling": {"max_tokens": 16},
        "load": {"max_prompts": 2, "warmup": 0},
        "collector": {"url": collector},
    }
    replay(rollout_file.Rollout.model_validate(experiment))
    with Client(collector) as client:
        for _ in range(60):
            found = list(client.generations("joined"))
            if found and all(one.server_ttft_s is not None for one in found):
                break
            time.sleep(0.5)
        return found


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Taken]:
    """Return what a kind of server said; each is started once, and alone."""
    kinds = {"plain": None, "draft": DRAFT, "ngram": NGRAM}
    known: dict[str, Taken] = {}

    def of(kind: str) -> Taken:
        if kind not in known:
            known[kind] = take(tmp_path_factory.mktemp(kind), kinds[kind])
        return known[kind]

    return of


def test_all_routes_give_the_same_twenty_texts(taken: Callable[[str], Taken]) -> None:
    """Greedy and in 32 bits: none, draft model, n-gram, and transformers."""
    ours = Answers(TransformersRoute(model=str(MODELS / "target"))).texts
    for kind in ("plain", "draft", "ngram"):
        assert taken(kind).answers.texts == ours


def test_a_server_without_speculation_says_so_and_has_no_counts(
    taken: Callable[[str], Taken],
) -> None:
    """The counts are absent, not zero; times are there."""
    answers = taken("plain").answers
    assert answers.probe.speculates is False
    assert [one.speculation for one in answers.completions] == [None] * 20
    assert all(one.prefill_s and one.decode_s for one in answers.completions)


def test_the_probe_sees_method_width_and_the_rule_of_acceptance(
    taken: Callable[[str], Taken],
) -> None:
    """In development mode the server shows its configuration."""
    probe = taken("draft").answers.probe
    assert (probe.speculates, probe.synthetic_acceptance) == (True, False)
    assert probe.setup.configured == Speculation(
        method="draft_model", draft_model="draft", num_speculative_tokens=K, lossless=True
    )
    assert (probe.version, probe.context_length) == ("0.32.0", 1024)


def test_bodies_sum_to_what_the_metrics_counted(taken: Callable[[str], Taken]) -> None:
    """Steps, drafted and accepted tokens of the twenty answers, exactly."""
    for kind, totals in (("draft", (149, 596, 447)), ("ngram", None)):
        found = taken(kind)
        sums = found.answers.totals
        assert totals in (None, sums)
        counted = (
            found.counted.steps,
            found.counted.draft_tokens,
            found.counted.accepted_tokens,
        )
        asked = (
            found.questions.steps,
            found.questions.draft_tokens,
            found.questions.accepted_tokens,
        )
        assert counted == tuple(
            ours + (theirs or 0) for ours, theirs in zip(sums, asked, strict=True)
        )


def test_the_loop_counts_the_same_by_vllms_rules(taken: Callable[[str], Taken]) -> None:
    """Answer by answer and position by position: draft model, and n-grams of two tokens or one."""
    ways = {"draft": engine_rules.by_draft_model, "ngram": engine_rules.by_earliest_match}
    for kind, drafting in ways.items():
        ours = engine_rules.counted(drafting, K)
        theirs = taken(kind).answers.completions
        assert [one.text for one in ours] == [one.text for one in theirs]
        for one, completion in zip(ours, theirs, strict=True):
            assert engine_rules.differing(completion.speculation, one.vllm) == {}


def test_a_chunk_is_a_step_of_its_accepted_tokens_and_a_bonus(
    taken: Callable[[str], Taken],
) -> None:
    """The first chunk is the prefill's token; the others make the histogram, but for the last.

    The last one is cut at the end of the text: the counts are of what was accepted before that.
    A busy server may send several steps in one chunk, which tells nothing of each.
    """
    answers, apart = taken("draft").answers, 0
    for completion, chunks in zip(answers.completions, answers.chunks, strict=True):
        sizes = [chunk.tokens or 0 for chunk in chunks]
        said = completion.speculation
        assert said.accepted_tokens is not None
        assert sum(sizes) == completion.output_tokens
        assert len(sizes) <= said.steps + 1
        if len(sizes) <= said.steps:
            continue
        apart += 1
        assert sizes[0] == 1
        whole = [sizes[1:-1].count(length + 1) for length in range(K + 1)]
        rest = [told - seen for told, seen in zip(said.acceptance_histogram, whole, strict=True)]
        assert sorted(rest) == [0] * K + [1]
        assert 0 <= rest.index(1) + 1 - sizes[-1] <= K
    assert apart > len(answers.completions) / 2


def test_differences_of_scrapes_are_what_the_bodies_say(taken: Callable[[str], Taken]) -> None:
    """One request at a time on a quiet server: the same counts, from `/metrics` alone."""
    found = taken("draft")
    for scraped, completion in zip(found.scraped, found.answers.completions, strict=False):
        said = completion.speculation
        assert scraped.source == "scrape"
        assert (scraped.steps, scraped.draft_tokens, scraped.accepted_tokens) == (
            said.steps,
            said.draft_tokens,
            said.accepted_tokens,
        )
        assert scraped.accepted_tokens_per_pos == said.accepted_tokens_per_pos


def test_the_servers_own_span_joins_the_generations(taken: Callable[[str], Taken]) -> None:
    """Its time to first token and queue time arrive in the collector, on the same generation."""
    made = taken("draft").joined
    assert len(made) == 4
    for one in made:
        assert one.error_type is None
        # Arrival comes before scheduling, and the client waits longest.
        assert one.prefill_s <= one.server_ttft_s <= one.ttft_s
        assert one.response_id == f"chatcmpl-{one.trace_id}"
