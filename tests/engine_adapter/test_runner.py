"""Schedules, generations and spans, with a scripted engine if the models do not matter."""

import asyncio
import itertools
import json
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from importlib.metadata import version

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scripted_engine import ScriptedAnswer, ScriptedEngine

from collector.contract import Arm, Content, Generation, Speculation, decode, encode
from engine_adapter.errors import GenerationError, TelemetryError
from engine_adapter.run import runner
from engine_adapter.run.load_shape import Load
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.run.runner import Experiment
from engine_adapter.run.schedule import Turn, turns
from engine_adapter.run.telemetry import SpanSender
from engine_adapter.workload import Prompt

PROMPTS = [Prompt(id=f"p{i}", cohort="chat", prompt=f"say {i}", max_tokens=4) for i in range(4)]
B, C = Arm.BASELINE, Arm.CANDIDATE


def order(prompts: list[Prompt], **settings: object) -> list[tuple[str, int, Arm, bool]]:
    seed = settings.pop("seed", 1)
    assert isinstance(seed, int)
    found = turns(prompts, Load.model_validate({"warmup": 0} | settings), seed=seed)
    return [(turn.prompt.id, turn.repeat, turn.arm, turn.warmup) for turn in found]


def test_abba_swaps_the_arms_from_pair_to_pair() -> None:
    """Baseline first, then candidate first, and so on, across repeats."""
    assert order(PROMPTS[:3], repeats=2) == [
        ("p0", 0, B, False),
        ("p0", 0, C, False),
        ("p1", 0, C, False),
        ("p1", 0, B, False),
        ("p2", 0, B, False),
        ("p2", 0, C, False),
        ("p0", 1, C, False),
        ("p0", 1, B, False),
        ("p1", 1, B, False),
        ("p1", 1, C, False),
        ("p2", 1, C, False),
        ("p2", 1, B, False),
    ]


def test_random_order_is_drawn_from_the_seed() -> None:
    """The same seed gives the same order, another seed another, each pair once."""
    first = order(PROMPTS * 10, order="random")
    assert first == order(PROMPTS * 10, order="random")
    assert first != order(PROMPTS * 10, order="random", seed=2)
    assert Counter(arm for _, _, arm, _ in first) == {B: 40, C: 40}


def test_warm_up_comes_first_and_is_dropped_by_count() -> None:
    """Each arm answers `warmup` requests before the first that counts."""
    marked = [warmup for *_, warmup in order(PROMPTS[:2], warmup=3)]
    assert marked == [True] * 6 + [False] * 4


def experiment(baseline: ScriptedEngine, candidate: ScriptedEngine) -> Experiment:
    return Experiment(
        rollout="r",
        engines={B: baseline, C: candidate},
        sampling=Sampling(max_tokens=9, seed=5),
    )


def run(
    experiment: Experiment, schedule: Iterable[Turn], *, concurrency: int = 1
) -> list[Generation]:
    made: list[Generation] = []
    asyncio.run(runner.run(experiment, schedule, concurrency=concurrency, record=made.append))
    return made


def script(**answers: ScriptedAnswer) -> ScriptedEngine:
    table = {key.replace("_", " "): answer for key, answer in answers.items()}
    return ScriptedEngine(table, wait=lambda: time.sleep(0.001))


def test_a_generation_carries_what_the_client_saw() -> None:
    """Every field of the record is from the prompt, the engine or the clock."""
    spec = Speculation(method="draft_model", steps=1, draft_tokens=4, accepted_tokens=2)
    engine = script(say_0=ScriptedAnswer(chunks=("a", "b", "c"), input_tokens=2, speculation=spec))
    prompt = Prompt(
        id="p",
        cohort="rag",
        prompt="say 0",
        context=("x",),
        reference={"kind": "exact", "text": "y"},
        schema={"type": "object"},
        dims={"language": "en"},
    )
    before = time.time_ns()
    (made,) = run(experiment(engine, engine), iter([Turn(prompt, 2, C)]))
    assert before <= made.start_unix_ns <= made.end_unix_ns <= time.time_ns()
    assert 0.001 <= made.ttft_s < made.e2e_s
    assert made.ttfo_s == made.ttft_s
    assert made.ttft_s + 2 * made.tpot_s == pytest.approx(made.e2e_s, abs=1e-8)
    measured = {
        name: getattr(made, name)
        for name in (
            "trace_id", "span_id", "start_unix_ns", "end_unix_ns", "ttft_s", "ttfo_s", "tpot_s",
            "stream_max_gap_s",
        )
    }  # fmt: skip
    assert made == Generation(
        **measured,
        provider="scripted",
        request_model="script",
        response_model="script",
        streamed=True,
        max_tokens=9,
        temperature=0.0,
        seed=(5 + 2 + zlib.crc32(b"p")) & 0x7FFFFFFF,  # of this prompt and repeat alone
        finish_reasons=("stop",),
        input_tokens=2,
        output_tokens=3,
        stream_chunks=3,
        rollout="r",
        arm=C,
        cohort="rag",
        prompt_id="p",
        repeat=2,
        route="candidate",
        dims={"model": "script", "language": "en"},
        concurrency=1,
        speculation=spec,
        content=Content(
            input_messages='[{"role": "user", "parts": [{"type": "text", "content": "say 0"}]}]',
            output_messages=json.dumps(
                [
                    {
                        "role": "assistant",
                        "parts": [{"type": "text", "content": "abc"}],
                        "finish_reason": "stop",
                    }
                ]
            ),
            context=("x",),
            reference='{"kind": "exact", "text": "y"}',
            output_schema='{"type": "object"}',
        ),
        service_name="draftgate",
        service_version=version("draftgate"),
        fingerprint="script",
        engine_version="1",
    )


def test_a_failed_request_is_a_generation_and_the_run_goes_on() -> None:
    """An error becomes `error.type`; counts are absent, what arrived is kept; others go on."""
    engine = script(
        say_0=ScriptedAnswer(chunks=("a",), error=GenerationError("timeout", "too slow")),
        say_1=ScriptedAnswer(chunks=("b",)),
    )
    schedule = (Turn(prompt, 0, B) for prompt in PROMPTS[:2])
    failed, fine = run(experiment(engine, engine), schedule)
    assert (failed.error_type, failed.output_tokens, failed.finish_reasons) == (
        "timeout",
        None,
        None,
    )
    assert failed.ttft_s is not None
    assert failed.stream_chunks == 1
    assert json.loads(failed.content.output_messages or "") == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "a"}],
            "finish_reason": "error",
        }
    ]
    assert fine.error_type is None


def test_an_answer_that_the_engine_aborted_failed() -> None:
    """A finish reason can be a failure; what the engine counted is kept."""
    engine = script(say_0=ScriptedAnswer(chunks=("a",), finish_reason="abort"))
    (aborted,) = run(experiment(engine, engine), (Turn(prompt, 0, B) for prompt in PROMPTS[:1]))
    assert (aborted.error_type, aborted.output_tokens) == ("finish_abort", 1)


def waiting(wait: Callable[[], None] = lambda: None) -> ScriptedEngine:
    """Return an engine that answers each prompt after the wait."""
    return ScriptedEngine({f"say {i}": ScriptedAnswer(chunks=("a",)) for i in range(4)}, wait)


@pytest.mark.parametrize("load", [{}, {"mode": "constant", "rate": 1000}])
def test_each_arm_has_its_own_slots(load: dict[str, object]) -> None:
    """A slower arm has no more requests in flight than the other, and delays it in nothing."""
    held, done = threading.Event(), []

    def wait_for_baseline() -> None:
        assert held.wait(30)

    def record(made: Generation) -> None:
        done.append(made)
        if sum(one.arm is B for one in done) == len(PROMPTS):
            held.set()

    schedule = turns(PROMPTS, Load.model_validate({"warmup": 0} | load), seed=1)
    arms = experiment(waiting(), waiting(wait_for_baseline))
    asyncio.run(runner.run(arms, schedule, concurrency=2, record=record))
    assert [made.arm for made in done] == [B] * 4 + [C] * 4
    assert max(made.concurrency or 0 for made in done if made.arm is C) == 2


def test_arms_take_turns_at_a_concurrency_of_one() -> None:
    """Arms that share a machine do not disturb each other then."""
    lone, met = threading.Lock(), []

    def wait() -> None:
        met.append(not lone.acquire(blocking=False))
        time.sleep(0.01)
        lone.release()

    made = run(experiment(waiting(wait), waiting(wait)), turns(PROMPTS, Load(warmup=0), seed=1))
    assert met == [False] * 8
    assert [one.arm for one in made] == [B, C, C, B] * 2


def test_a_resumed_open_loop_keeps_the_arms_in_step() -> None:
    """The first open turn is soon; the other arm's follows as much later as it is due later."""
    schedule = [
        Turn(PROMPTS[0], 0, B, due_s=10.0),
        Turn(PROMPTS[1], 0, C, due_s=10.2),
    ]
    first, second = run(experiment(waiting(), waiting()), schedule)
    assert second.start_unix_ns - first.start_unix_ns >= 190_000_000


def test_a_closed_loop_keeps_its_concurrency() -> None:
    """Never more in flight than asked, and as many when there is work."""
    peak, lock = [0, 0], threading.Lock()  # now, and at most
    all_there = threading.Event()

    def wait() -> None:
        with lock:
            peak[0] += 1
            peak[1] = max(peak)
            if peak[0] == 3:
                all_there.set()
        assert all_there.wait(200)
        time.sleep(0.01)
        with lock:
            peak[0] -= 1

    schedule = turns(PROMPTS, Load(warmup=0), seed=1)
    made = run(experiment(waiting(), waiting(wait)), schedule, concurrency=3)
    assert len(made) == 8
    assert peak[1] == 3
    assert max(g.concurrency or 0 for g in made if g.arm is C) == 3


def generations(count: int) -> list[Generation]:
    engine = script(**{f"say_{i}": ScriptedAnswer(chunks=("a",)) for i in range(4)})
    table = itertools.islice(itertools.cycle(PROMPTS), count)
    schedule = (Turn(prompt, 0, B) for prompt in table)
    return run(experiment(engine, engine), schedule)


def test_the_span_is_the_record() -> None:
    """The exported span decodes to the generation that was sent, ids and times included."""
    memory = InMemorySpanExporter()
    made = generations(3)
    with closing(SpanSender("http://unused", exporter=memory)) as sender:
        for generation in made:
            sender.send(generation)
    for generation, exported in zip(made, memory.get_finished_spans(), strict=True):
        wanted = encode(generation)
        assert (f"{exported.context.trace_id:032x}", f"{exported.context.span_id:016x}") == (
            generation.trace_id,
            generation.span_id,
        )
        assert (exported.name, exported.start_time, exported.end_time) == (
            wanted.name,
            generation.start_unix_ns,
            generation.end_unix_ns,
        )
        assert dict(exported.attributes or {}) == dict(wanted.attributes)
        assert wanted.resource.items() <= dict(exported.resource.attributes).items()
        assert decode(wanted).generation == generation


class FlakyExporter(InMemorySpanExporter):
    """Refuses the first `refusals` batches."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    def export(self, spans: object) -> SpanExportResult:
        if self.refusals > 0:
            self.refusals -= 1
            return SpanExportResult.FAILURE
        return super().export(spans)  # type: ignore[arg-type]


def test_refused_spans_are_sent_again() -> None:
    """A batch that the collector refused once is delivered by the end of the run."""
    exporter = FlakyExporter(refusals=1)
    made = generations(5)
    with closing(SpanSender("http://unused", exporter=exporter)) as sender:
        for generation in made:
            sender.send(generation)
    assert len(exporter.get_finished_spans()) == 5


def test_lost_spans_are_an_error() -> None:
    """A run whose spans nobody took says how many, where, and what to do."""
    sender = SpanSender("http://localhost:1/", exporter=FlakyExporter(refusals=99))
    for generation in generations(5):
        sender.send(generation)
    with pytest.raises(
        TelemetryError, match=r"http://localhost:1/v1/traces did not accept 5 spans; is"
    ):
        sender.close()
