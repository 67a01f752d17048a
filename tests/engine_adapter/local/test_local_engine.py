"""The engine over the loop: what every engine promises, as a rollout asks for it."""

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import recorded, request
from rollout_files import invoke, written
from twenty_prompts import MODELS, Answers

from collector.client import Client
from collector.contract import Arm, Speculation, StepTimes, violations
from engine_adapter.engines import Answer, Chunk, EngineOpener, Item, Request
from engine_adapter.engines.local import decode
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.routes import LocalRoute, Route, TransformersRoute
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.schedule import Turn
from engine_adapter.run.sweep import _candidate
from engine_adapter.workload import Prompt

TEXTS = ["the order was shipped on monday", "will arrive soon", "by north way and by north way"]
WAYS: dict[str, dict[str, Any]] = {
    "draft_model": {"method": "draft_model"},
    "prompt_lookup": {"method": "prompt_lookup"},
    "early_exit": {"method": "early_exit", "early_exit_layers": 1},
    "adaptive": {"method": "draft_model", "adaptive": True},
    "by batch": {"method": "draft_model", "k_by_batch": {1: 3, 2: 1}},
    "head": {"method": "head", "head": "tiny_heads:last_token_again"},
    "tree": {"method": "head", "head": "tiny_heads:branching", "num_speculative_tokens": 8},
}


def route(pair: dict[str, Path], way: str | None = None, **more: Any) -> LocalRoute:
    fields = dict(WAYS[way]) if way else {}
    if fields.get("method") == "draft_model":
        fields["draft_model"] = str(pair["draft"])
    document = {"engine": "local", "model": str(pair["target"])} | fields | more
    return LocalRoute.model_validate(document)


def answers(
    to: Route, requests: Sequence[Request], opener: EngineOpener | None = None
) -> list[list[Item]]:
    """Return what each request was answered, all asked at once."""

    async def ask() -> list[list[Item]]:
        engine = await (opener or EngineOpener()).open(to)

        async def one(asked: Request) -> list[Item]:
            async with aclosing(engine.generate(asked)) as items:
                return [item async for item in items]

        return await asyncio.gather(*map(one, requests))

    return asyncio.run(ask())


def completions(to: Route, **more: Any) -> list[Answer]:
    found = [items[-1] for items in answers(to, [request(text, **more) for text in TEXTS])]
    return [one for one in found if isinstance(one, Answer)]


def test_an_answer_is_chunks_then_one_completion(random_pair: dict[str, Path]) -> None:
    """In order of time; the chunks hold the tokens, and the times the engine's own parts."""
    for items in answers(route(random_pair, "draft_model"), [request(text) for text in TEXTS]):
        *chunks, completion = items
        assert isinstance(completion, Answer)
        times = [chunk.at_s for chunk in chunks if isinstance(chunk, Chunk)]
        tokens = [chunk.tokens or 0 for chunk in chunks if isinstance(chunk, Chunk)]
        assert len(times) == len(chunks)
        assert times == sorted(times)
        assert sum(tokens) == completion.output_tokens
        assert completion.decode_s == times[-1] - times[0]
        assert min(completion.prefill_s, completion.queue_s) >= 0


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("way", WAYS)
def test_every_route_says_what_transformers_says(
    random_pair: dict[str, Path], way: str, batch: int
) -> None:
    """Alone or answered together, whatever drafts."""
    theirs = completions(TransformersRoute(model=str(random_pair["target"])))
    ours = completions(route(random_pair, way, batch=batch))
    assert [one.text for one in ours] == [one.text for one in theirs]
    assert [one.finish_reason for one in ours] == [one.finish_reason for one in theirs]
    assert [one.output_tokens for one in ours] == [one.output_tokens for one in theirs]


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_draft_models_counts_are_those_of_assisted_generation(
    random_pair: dict[str, Path], k: int
) -> None:
    """The same algorithm: the same steps, proposed and accepted tokens, position by position."""
    draft = {"draft_model": str(random_pair["draft"]), "num_speculative_tokens": k}
    theirs = completions(TransformersRoute(model=str(random_pair["target"]), **draft))
    ours = completions(route(random_pair, "draft_model", num_speculative_tokens=k))
    assert [untimed(one) for one in ours] == [one.speculation for one in theirs]
    assert any((one.speculation and one.speculation.accepted_tokens) for one in ours)


def test_a_trees_counts_say_what_is_known_of_it(random_pair: dict[str, Path]) -> None:
    """All its tokens are drafted, one path of them accepted; by position the accepted alone."""
    for one in completions(route(random_pair, "tree")):
        said = one.speculation
        assert said.num_speculative_tokens == 8
        assert said.steps * 4 < said.draft_tokens <= said.steps * 8
        assert said.draft_tokens_per_pos is None
        assert len(said.accepted_tokens_per_pos) == 4
        assert sum(said.accepted_tokens_per_pos) == said.accepted_tokens
        assert len(said.acceptance_histogram) == 5


def untimed(completion: Answer) -> Speculation | None:
    """Return its record of speculation without times, which transformers does not measure."""
    said = completion.speculation
    return said and replace(said, step_times=None)


@pytest.mark.parametrize("batch", [1, 3])
def test_the_parts_of_the_steps_are_summed_for_each_answer(
    random_pair: dict[str, Path], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that moves 1 s a mark each part is 1 s a step: of all steps until its last."""
    clock = itertools.count()
    monkeypatch.setattr(decode, "mark", lambda _device: float(next(clock)))
    lengths = set()
    asked = [request(text) for text in TEXTS]
    for *chunks, last in answers(route(random_pair, "draft_model", batch=batch), asked):
        assert isinstance(last, Answer)
        steps = float(len(chunks))
        times = StepTimes(draft_s=steps, verify_s=steps, overhead_s=steps)
        assert last.speculation.step_times == times
        lengths.add(steps)
    assert len(lengths) > 1


def test_prompt_lookups_counts_are_theirs_but_for_drafts_that_have_no_room(
    random_pair: dict[str, Path],
) -> None:
    """Transformers looks up k tokens even where fewer can follow: it proposes more at the end."""
    theirs = completions(
        TransformersRoute(model=str(random_pair["target"]), prompt_lookup_num_tokens=3)
    )
    ours = completions(route(random_pair, "prompt_lookup", num_speculative_tokens=3))
    for mine, other in zip(ours, theirs, strict=True):
        assert 0 <= other.speculation.steps - mine.speculation.steps <= 1
        assert 0 <= other.speculation.draft_tokens - mine.speculation.draft_tokens <= 3
        assert (other.speculation.accepted_tokens or 0) - (
            mine.speculation.accepted_tokens or 0
        ) in {0, 1}


def test_records_break_no_law_and_name_the_engine(random_pair: dict[str, Path]) -> None:
    """A run's generations hold conservation laws, provider and fingerprint, both arms."""
    routes = {
        Arm.BASELINE: route(random_pair, batch=2),
        Arm.CANDIDATE: route(random_pair, "draft_model", batch=2),
    }
    schedule = [
        Turn(Prompt(id=f"p{i}", cohort="c", prompt=text, max_tokens=12), 0, arm)
        for i, text in enumerate(TEXTS)
        for arm in Arm
    ]
    made = recorded(routes, schedule, concurrency=4)
    assert len(made) == 6
    assert [violations(one) for one in made] == [()] * 6
    assert {one.provider for one in made} == {"local"}
    assert len({one.fingerprint for one in made}) == 2
    assert [one.error_type for one in made] == [None] * 6


def test_sampling_is_reproducible_by_seed_whoever_is_beside_it(
    random_pair: dict[str, Path],
) -> None:
    """A request's noise is its seed's: answered alone or in a batch it says the same."""
    for way in (None, "draft_model"):
        alone = [one.text for one in completions(route(random_pair, way), temperature=1.0)]
        beside = completions(route(random_pair, way, batch=3), temperature=1.0)
        assert alone == [one.text for one in beside]
        assert alone != [one.text for one in completions(route(random_pair, way))]


def test_a_stop_string_ends_an_answer_and_is_no_part_of_it(random_pair: dict[str, Path]) -> None:
    """As OpenAI's servers do it; the answer counts the tokens that were made."""
    plain = completions(route(random_pair, "draft_model"))
    longest = max(range(len(plain)), key=lambda i: len(plain[i].text.split()))
    text = plain[longest].text
    stop = text.split()[2]
    cut = completions(route(random_pair, "draft_model", stop=[stop]))[longest]
    assert cut.text == text[: text.index(stop)]
    assert cut.finish_reason == "stop"
    assert (cut.output_tokens or 0) < (plain[longest].output_tokens or 0)


def test_a_prompt_longer_than_the_model_fails_that_request(random_pair: dict[str, Path]) -> None:
    """Too many tokens are a failed generation with a type, not a crash of the run."""
    with pytest.raises(GenerationError, match="exceed the model's 128 positions") as caught:
        answers(route(random_pair), [request("soon", max_tokens=200)])
    assert caught.value.error_type == "context_length_exceeded"


def test_a_request_given_up_leaves_those_beside_it_alone(random_pair: dict[str, Path]) -> None:
    """A client that goes away ends its own answer; the next ones are as ever."""

    async def run() -> list[str]:
        engine = await EngineOpener().open(route(random_pair, "draft_model", batch=3))

        async def text(asked: Request) -> str:
            *_, last = [item async for item in engine.generate(asked)]
            assert isinstance(last, Answer)
            return last.text

        tasks = [asyncio.ensure_future(text(request(one, max_tokens=60))) for one in TEXTS]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        return [await tasks[0], await tasks[2], await text(request(TEXTS[1], max_tokens=60))]

    plain = completions(route(random_pair), max_tokens=60)
    assert asyncio.run(run()) == [plain[0].text, plain[2].text, plain[1].text]


def test_the_probe_says_what_was_loaded(random_pair: dict[str, Path]) -> None:
    """What `draftgate check` reads: method, k, dtype, folder, and that it is lossless."""
    engine = asyncio.run(EngineOpener().open(route(random_pair, "by batch")))
    probe = asyncio.run(engine.probe())
    assert probe.speculates
    assert probe.setup.configured == Speculation(
        method="draft_model", draft_model="draft", num_speculative_tokens=3, lossless=True
    )
    assert (probe.context_length, probe.stop_token_ids, probe.dtype) == (128, (0,), "float32")
    assert probe.model_folder == str(random_pair["target"])
    baseline = asyncio.run(EngineOpener().open(route(random_pair)))
    assert asyncio.run(baseline.probe()).speculates is False


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"method": "draft_model"}, "`method: draft_model` and `draft_model` go together"),
        ({"early_exit_layers": 1}, "`method: early_exit` and `early_exit_layers` go together"),
        ({"method": "head"}, "`method: head` and `head` go together"),
        ({"k_by_batch": {2: 1}}, "`k_by_batch` needs a k for 1"),
        ({"method": "medusa"}, "Input should be"),
    ],
)
def test_a_route_that_contradicts_itself_is_refused(fields: dict[str, Any], message: str) -> None:
    """Before anything is loaded."""
    with pytest.raises(ValueError, match=message):
        LocalRoute.model_validate({"engine": "local", "model": "m"} | fields)


def test_what_cannot_be_built_is_told_when_the_route_is_opened(
    random_pair: dict[str, Path],
) -> None:
    """Layers that the target does not have, a head that is not there, another vocabulary."""
    for fields, message in (
        ({"method": "early_exit", "early_exit_layers": 2}, "of a target of 2 layers; wanted 1"),
        ({"method": "head", "head": "no_such.module:load"}, "No module named 'no_such'"),
        (
            {"method": "draft_model", "draft_model": str(random_pair["stranger"])},
            "has another tokenizer than",
        ),
        ({"device": "tpu9"}, "wanted cpu, cuda or cuda:0"),
    ):
        with pytest.raises(EngineSetupError, match=message):
            asyncio.run(EngineOpener().open(route(random_pair, **fields)))


def test_a_sweep_sets_k(random_pair: dict[str, Path]) -> None:
    """Of any method, in place of a schedule; without a method there is nothing to sweep."""
    document = {"rollout": "r", "workload": "w", "baseline": route(random_pair)}
    rollout = Rollout(**document, candidate=route(random_pair, "by batch"))
    swept = _candidate(rollout, 2, {})
    assert isinstance(swept, LocalRoute)
    assert (swept.num_speculative_tokens, swept.k_by_batch) == (2, None)


@pytest.mark.timeout(600)
def test_check_and_run_take_the_route(
    random_pair: dict[str, Path], tmp_path: Path, url: str
) -> None:
    """`draftgate check` compares the arms, `draftgate run` stores both arms' generations."""
    document = {
        "rollout": "local",
        "baseline": route(random_pair).model_dump(mode="json", exclude_defaults=True),
        "candidate": route(random_pair, "draft_model").model_dump(
            mode="json", exclude_defaults=True
        ),
        "sampling": {"max_tokens": 40},
        "load": {"concurrency": 2, "warmup": 1},
        "collector": {"url": url},
    }
    prompts = ({"id": f"p{i}", "cohort": "c", "prompt": text} for i, text in enumerate(TEXTS))
    file = written(tmp_path, document, prompts)
    for command in ("check", "run"):
        done = invoke(command, file)
        assert done.exit_code == 0, done.output
    with Client(url) as client:
        stored = list(client.generations("local"))
        spans = {s.span_id: s for one in stored for s in client.trace(one.trace_id)}
    assert len(stored) == 2 * len(TEXTS)
    assert [one.quality for one in stored] == [()] * len(stored)
    assert {one.speculation is not None for one in stored if one.arm is Arm.CANDIDATE} == {True}
    assert {one.speculation for one in stored if one.arm is Arm.BASELINE} == {None}
    for one in stored:
        said = spans[one.span_id].attributes
        times = [
            said.get(f"spec_decode.time_in_{part}") for part in ("draft", "verify", "overhead")
        ]
        held = [said[f"draftgate.memory.{part}"] for part in ("weights", "cache")]
        assert min(held) > 0
        drafts = said["draftgate.memory.draft_weights"]
        assert (drafts > 0) is (one.arm is Arm.CANDIDATE)
        assert "draftgate.gpu.power" not in said  # a CPU's is unknown, and no zero
        if one.arm is Arm.BASELINE:
            assert times == [None] * 3
        else:
            assert all(isinstance(time, float) and time > 0 for time in times)


@pytest.mark.slow
def test_twenty_prompts_of_the_demo_have_the_counts_of_assisted_generation() -> None:
    """On real text, one prompt after another; the figures stand on the engines' page."""
    fields = {"engine": "local", "model": str(MODELS / "target"), "method": "draft_model"}
    ours = Answers(LocalRoute.model_validate(fields | {"draft_model": str(MODELS / "draft")}))
    theirs = Answers(
        TransformersRoute(
            model=str(MODELS / "target"),
            draft_model=str(MODELS / "draft"),
            num_speculative_tokens=4,
        )
    )
    assert ours.texts == theirs.texts
    assert ours.totals == theirs.totals == (153, 583, 455)
