"""An observed answer as the contract's record of a generation."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from collector.contract import Content, Generation
from engine_adapter.engines import Completion, EngineInfo, Request
from engine_adapter.engines.observation import Observed
from engine_adapter.run.journal import SpanIds
from engine_adapter.run.schedule import Turn
from engine_adapter.workload import Prompt


def record(
    turn: Turn,
    request: Request,
    observed: Observed,
    *,
    ids: SpanIds,
    info: EngineInfo,
    rollout: str,
) -> Generation:
    """Return the generation; what nobody measured stays absent."""
    completion = observed.completion
    start_unix_ns = observed.start_unix_ns
    output_tokens = completion.output_tokens if completion else None
    generation = Generation(
        trace_id=ids.trace_id,
        span_id=ids.span_id,
        start_unix_ns=start_unix_ns,
        end_unix_ns=start_unix_ns + round(observed.duration_s * 1e9),
        provider=info.provider,
        request_model=info.model,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        seed=request.seed,
        error_type=observed.error.error_type if observed.error else None,
        ttft_s=observed.ttft_s,
        tpot_s=observed.tpot_s(output_tokens),
        stream_chunks=len(observed.chunk_times_s) if completion or observed.chunk_times_s else None,
        stream_max_gap_s=observed.max_gap_s,
        stream_p99_gap_s=observed.p99_gap_s,
        rollout=rollout,
        arm=turn.arm,
        cohort=turn.prompt.cohort,
        prompt_id=turn.prompt.id,
        repeat=turn.repeat,
        route=turn.arm.value,
        dims=turn.prompt.dims,
        concurrency=observed.concurrency,
        client_lag_s=observed.client_lag_s,
        content=_content(turn.prompt, observed),
        service_name="draftgate",
        service_version=_version(),
        fingerprint=info.fingerprint,
    )
    return generation if completion is None else _completed(generation, completion)


@cache
def _version() -> str:
    try:
        return version("draftgate")
    except PackageNotFoundError:
        return "unknown"


def _completed(generation: Generation, completion: Completion) -> Generation:
    """Return the generation with the fields that only a whole answer has."""
    return replace(
        generation,
        response_model=completion.response_model or generation.request_model,
        response_id=completion.response_id,
        finish_reasons=(completion.finish_reason,),
        input_tokens=completion.input_tokens,
        output_tokens=completion.output_tokens,
        cached_input_tokens=completion.cached_input_tokens,
        server_ttft_s=completion.server_ttft_s,
        queue_s=completion.queue_s,
        prefill_s=completion.prefill_s,
        decode_s=completion.decode_s,
        speculation=completion.speculation,
        device=completion.device,
    )


def _content(prompt: Prompt, observed: Observed) -> Content:
    inputs = [_message(message.role, message.content) for message in prompt.chat]
    reference = prompt.reference
    return Content(
        input_messages=json.dumps(inputs),
        output_messages=_output(observed),
        context=prompt.context,
        reference=reference
        if reference is None or isinstance(reference, str)
        else _json(reference),
        output_schema=_json(prompt.output_schema) if prompt.output_schema is not None else None,
    )


def _output(observed: Observed) -> str | None:
    """Return the answer; of one that broke off, what had arrived."""
    if observed.completion is not None:
        text, reason = observed.completion.text, observed.completion.finish_reason
    else:
        text, reason = "".join(observed.texts), "error"
        if not text:
            return None
    return json.dumps([_message("assistant", text) | {"finish_reason": reason}])


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True)


def _message(role: str, text: str) -> dict[str, object]:
    """Return a message in the shape of `gen_ai.input.messages`."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}
