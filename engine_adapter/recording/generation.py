"""Convert an answer to the contract's `Generation`; the single place that does so.

Runs and the router add the fields that only they know, such as the rollout and the arm.
"""

from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from collector.contract import Fields, Generation, Speculation, failure_of
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.json_fields import JsonObject, count, number, text, within
from engine_adapter.engines.observation import ObservedAnswer

_OPERATIONS: Final = {"/chat/completions": "chat", "/completions": "text_completion"}
GENERATION_PATHS: Final = frozenset(_OPERATIONS)
"""The routes of the OpenAI API that return generations."""


_OF_ENGINE: Final = (
    "cached_input_tokens", "server_ttft_s", "queue_s", "prefill_s", "decode_s", "speculation",
)  # fmt: skip


def generation_of(
    seen: ObservedAnswer,
    asked: JsonObject,
    *,
    trace_id: str,
    span_id: str,
    provider: str,
    path: str = "/chat/completions",
) -> Generation:
    """Return the record of a request and its answer; unknown fields stay absent."""
    start_unix_ns = seen.start_unix_ns
    answer = _counted(seen)
    streamed = asked.get("stream") is True
    chunks = len(seen.chunk_times_s)
    return Generation(
        trace_id=trace_id,
        span_id=span_id,
        start_unix_ns=start_unix_ns,
        end_unix_ns=start_unix_ns + round(seen.duration_s * 1e9),
        operation=_OPERATIONS[path],
        provider=provider,
        request_model=text(asked, "model"),
        response_model=answer.model,
        streamed=streamed,
        max_tokens=count(asked, "max_completion_tokens") or count(asked, "max_tokens"),
        temperature=number(asked, "temperature"),
        top_p=number(asked, "top_p"),
        top_k=count(asked, "top_k"),
        seed=count(asked, "seed"),
        sampler=answer.sampler,
        seeded_draws=answer.seeded_draws,
        stop_sequences=_stops(asked),
        response_id=answer.response_id,
        finish_reasons=(answer.finish_reason,) if answer.finish_reason is not None else None,
        error_type=_error_type(seen, answer),
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        reasoning_tokens=answer.reasoning_tokens,
        ttft_s=seen.ttft_s,
        ttfo_s=_to_first_output(seen),
        tpot_s=seen.tpot_s(answer.output_tokens),
        stream_chunks=chunks if chunks or (streamed and seen.error is None) else None,
        stream_max_gap_s=seen.max_gap_s,
        stream_p99_gap_s=seen.p99_gap_s,
        concurrency=seen.concurrency,
        client_lag_s=seen.client_lag_s,
        device=answer.device,
        service_name="draftgate",
        service_version=_version(),
        **fields_of_engine(answer),
    )


def fields_of_engine(answer: Answer) -> Fields:
    """Return the fields of `Generation` that only the engine's answer can tell."""
    return {name: getattr(answer, name) for name in _OF_ENGINE}


def _counted(seen: ObservedAnswer) -> Answer:
    """Return the answer to record: of a failed one, only its id and model."""
    answer = seen.answer or Answer()
    if seen.error is not None:
        return Answer(response_id=answer.response_id, model=answer.model)
    return replace(answer, speculation=None) if answer.speculation == Speculation() else answer


def _error_type(seen: ObservedAnswer, answer: Answer) -> str | None:
    if seen.error is not None:
        return seen.error.error_type
    return None if answer.finish_reason is None else failure_of([answer.finish_reason])


def _to_first_output(seen: ObservedAnswer) -> float | None:
    """Return the time to the first output token: the TTFT, unless there is reasoning before it.

    A first token may have no text, such as part of a character, which looks like no output.
    """
    thought = seen.answer is not None and seen.answer.reasoning
    return seen.ttfo_s if thought or seen.ttfo_s is None else seen.ttft_s


def _stops(asked: JsonObject) -> tuple[str, ...] | None:
    """Return the stop strings; the API takes one string or a list."""
    given = within(asked, "stop")
    listed = given if isinstance(given, list) else [given]
    stops = tuple(stop for stop in listed if isinstance(stop, str))
    return stops or None


@cache
def _version() -> str:
    try:
        return version("draftgate")
    except PackageNotFoundError:
        return "unknown"
