"""Run turns against two engines and yield what came of each, as generations."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise

from collector.contract import Arm, Content, Generation
from engine_adapter.engines import Completion, Engine, Request
from engine_adapter.errors import GenerationError
from engine_adapter.rollout_file import Sampling
from engine_adapter.schedule import Turn
from engine_adapter.telemetry import new_span_id, new_trace_id
from engine_adapter.workload import Prompt

_GAPS_FOR_P99 = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What every generation of a run has in common."""

    rollout: str
    engines: Mapping[Arm, Engine]
    sampling: Sampling
    service_version: str


def run(
    experiment: Experiment, schedule: Iterator[Turn], *, concurrency: int
) -> Iterator[Generation]:
    """Answer the turns in a closed loop and yield each that counts, as it is answered.

    `concurrency` requests are in flight, the next begins when one ends. A failed request is a
    generation with an `error_type`; warm-up turns are answered and not yielded.
    """
    with ThreadPoolExecutor(concurrency, thread_name_prefix="request") as pool:
        in_flight: set[Future[Generation | None]] = set()
        for turn in schedule:
            if len(in_flight) == concurrency:
                done, in_flight = wait(in_flight, return_when=FIRST_COMPLETED)
                yield from _recorded(done)
            in_flight.add(pool.submit(_answer, experiment, turn, len(in_flight) + 1))
        yield from _recorded(wait(in_flight).done)


def _recorded(done: Iterable[Future[Generation | None]]) -> Iterator[Generation]:
    for future in done:
        generation = future.result()
        if generation is not None:
            yield generation


@dataclass(slots=True)
class _Observed:
    """What the client saw of one answer."""

    concurrency: int
    start_unix_ns: int
    started_s: float
    chunk_times_s: list[float]
    completion: Completion | None = None
    error_type: str | None = None
    duration_s: float = 0.0

    @property
    def ttft_s(self) -> float | None:
        return self.chunk_times_s[0] - self.started_s if self.chunk_times_s else None


def _answer(experiment: Experiment, turn: Turn, concurrency: int) -> Generation | None:
    request = _request(turn.prompt, experiment.sampling, turn.repeat)
    observed = _observe(experiment.engines[turn.arm], request, concurrency)
    return None if turn.warmup else _generation(experiment, turn, request, observed)


def _observe(engine: Engine, request: Request, concurrency: int) -> _Observed:
    observed = _Observed(concurrency, time.time_ns(), time.perf_counter(), [])
    try:
        for item in engine.generate(request):
            if isinstance(item, Completion):
                observed.completion = item
            else:
                observed.chunk_times_s.append(item.at_s)
    except GenerationError as exc:
        observed.error_type = exc.error_type
    # The wall clock may jump; durations come from the monotonic one.
    observed.duration_s = _end_s(observed) - observed.started_s
    return observed


def _end_s(observed: _Observed) -> float:
    """Return when the answer ended: at its last chunk, or now where it failed or had none."""
    if observed.error_type is None and observed.chunk_times_s:
        return observed.chunk_times_s[-1]
    return time.perf_counter()


def _request(prompt: Prompt, sampling: Sampling, repeat: int) -> Request:
    return Request(
        messages=prompt.chat,
        max_tokens=prompt.max_tokens or sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        seed=sampling.seed + repeat,
    )


def _generation(
    experiment: Experiment, turn: Turn, request: Request, observed: _Observed
) -> Generation:
    info = experiment.engines[turn.arm].info
    completion = observed.completion
    gaps_s = [later - earlier for earlier, later in pairwise(observed.chunk_times_s)]
    output_tokens = completion.output_tokens if completion else None
    return Generation(
        trace_id=new_trace_id(),
        span_id=new_span_id(),
        start_unix_ns=observed.start_unix_ns,
        end_unix_ns=observed.start_unix_ns + round(observed.duration_s * 1e9),
        provider=info.provider,
        request_model=info.model,
        response_model=info.model if completion else None,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        seed=request.seed,
        response_id=completion.response_id if completion else None,
        finish_reasons=(completion.finish_reason,) if completion else None,
        error_type=observed.error_type,
        input_tokens=completion.input_tokens if completion else None,
        output_tokens=output_tokens,
        cached_input_tokens=completion.cached_input_tokens if completion else None,
        ttft_s=observed.ttft_s,
        server_ttft_s=completion.server_ttft_s if completion else None,
        tpot_s=_tpot_s(observed, output_tokens),
        queue_s=completion.queue_s if completion else None,
        stream_chunks=len(observed.chunk_times_s) if completion else None,
        stream_max_gap_s=max(gaps_s) if gaps_s else None,
        stream_p99_gap_s=_p99(gaps_s) if len(gaps_s) >= _GAPS_FOR_P99 else None,
        rollout=experiment.rollout,
        arm=turn.arm,
        cohort=turn.prompt.cohort,
        prompt_id=turn.prompt.id,
        repeat=turn.repeat,
        route=turn.arm.value,
        dims=turn.prompt.dims,
        concurrency=observed.concurrency,
        speculation=completion.speculation if completion else None,
        content=_content(turn.prompt, completion),
        service_name="draftgate",
        service_version=experiment.service_version,
        fingerprint=info.fingerprint,
    )


def _tpot_s(observed: _Observed, output_tokens: int | None) -> float | None:
    """Return (end − first token) / (output tokens − 1); `None` below two tokens or chunks."""
    if output_tokens is None or output_tokens < 2 or len(observed.chunk_times_s) < 2:
        return None
    return (observed.chunk_times_s[-1] - observed.chunk_times_s[0]) / (output_tokens - 1)


def _p99(gaps_s: Sequence[float]) -> float:
    """Return the nearest-rank 99th percentile; of at least 100 gaps."""
    ordered = sorted(gaps_s)
    return ordered[-(-len(ordered) * 99 // 100) - 1]


def _content(prompt: Prompt, completion: Completion | None) -> Content:
    inputs = [_message(message.role, message.content) for message in prompt.chat]
    outputs = None
    if completion is not None:
        answer = _message("assistant", completion.text)
        outputs = json.dumps([answer | {"finish_reason": completion.finish_reason}])
    reference = prompt.reference
    return Content(
        input_messages=json.dumps(inputs),
        output_messages=outputs,
        context=prompt.context,
        reference=reference
        if reference is None or isinstance(reference, str)
        else _json(reference),
        output_schema=_json(prompt.output_schema) if prompt.output_schema is not None else None,
    )


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True)


def _message(role: str, text: str) -> dict[str, object]:
    """Return a message in the shape of `gen_ai.input.messages`."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}
