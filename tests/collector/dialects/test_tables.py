"""One span of each dialect, and the whole generation that is read from it."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.contract import (
    Arm,
    AttributeValue,
    Content,
    Generation,
    Span,
    SpanEvent,
    SpanStatus,
    Speculation,
)
from collector.dialects import DIALECTS, content, recognise
from collector.otlp.traces import Encoding, decode_traces

SECOND = 1_000_000_000
TIMES = {"start_unix_ns": SECOND, "end_unix_ns": 3 * SECOND}
IDS = {"trace_id": "a" * 32, "span_id": "b" * 16}
HERE = Path(__file__).parent


def span_of(attributes: dict[str, AttributeValue], name: str = "span", **fields: Any) -> Span:
    values = {**IDS, **TIMES, "name": name, "resource": {"service.name": "app"}}
    return Span(**(values | fields), attributes=attributes)


def generation_of(**fields: Any) -> Generation:
    return Generation(**IDS, **TIMES, service_name="app", **fields)


OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.system": "openai",
    "llm.model_name": "served",
    "llm.invocation_parameters": json.dumps(
        {"model": "tiny", "max_tokens": 5, "temperature": 0, "top_p": 0.9, "seed": 1, "stop": ["x"]}
    ),
    "llm.token_count.prompt": 7,
    "llm.token_count.completion": 3,
    "llm.token_count.prompt_details.cache_read": 4,
    "llm.finish_reason": "stop",
    "session.id": "s1",
}
TGI = {
    "parameters": "GenerateParameters { best_of: None, temperature: Some(0.5), top_k: None, "
    'top_p: None, max_new_tokens: Some(20), stop: ["top_k: Some(9)"], seed: Some(7) }',
    "total_time": "1.2s",
    "validation_time": "45.6µs",
    "queue_time": "3.5ms",
    "inference_time": "1.1s",
    "time_per_token": "20ms",
    "seed": "Some(7)",
}
SGLANG = {
    "rid": "abc",
    "module": "sglang::request",
    "gen_ai.request.id": "abc",
    "gen_ai.usage.prompt_tokens": 10,
    "gen_ai.usage.completion_tokens": 5,
    "gen_ai.usage.cached_tokens": 2,
    "gen_ai.request.max_tokens": 64,
    "gen_ai.request.top_k": 20,
    "gen_ai.response.model": "tiny",
    "gen_ai.response.finish_reasons": '["stop"]',
    "gen_ai.latency.time_to_first_token": 0.25,
    "gen_ai.latency.e2e": 1.25,
    "gen_ai.latency.time_in_model_prefill": 0.2,
    "gen_ai.latency.time_in_model_decode": 1.0,
    "gen_ai.latency.time_in_model_inference": 1.2,
}
LANGFUSE = {
    "langfuse.observation.type": "generation",
    "langfuse.observation.model.name": "tiny",
    "langfuse.observation.model.parameters": '{"temperature": 0, "max_tokens": "Infinity"}',
    "langfuse.observation.usage_details": json.dumps(
        {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 1},
        }
    ),
    "langfuse.observation.completion_start_time": '"1970-01-01T00:00:01.5Z"',
    "langfuse.observation.metadata.finish_reason": '"stop"',
    "langfuse.observation.metadata.draftgate.launch": '"l1"',
}
CASES = {
    "draftgate": (
        span_of({"gen_ai.operation.name": "chat", "gen_ai.usage.cache_write.input_tokens": 3}),
        generation_of(),
    ),
    "otel_genai": (
        span_of(
            {
                "gen_ai.operation.name": "text_completion",
                "gen_ai.system": "vllm",
                "gen_ai.usage.prompt_tokens": 4,
                "gen_ai.usage.output_tokens": 2,
                "gen_ai.openai.request.seed": 3,
                "gen_ai.response.finish_reasons": ("stop",),
            }
        ),
        generation_of(
            operation="text_completion",
            provider="vllm",
            input_tokens=4,
            output_tokens=2,
            seed=3,
            finish_reasons=("stop",),
        ),
    ),
    "openinference": (
        span_of(
            OPENINFERENCE,
            events=(SpanEvent(name="First Token Stream Event", time_unix_ns=SECOND + SECOND // 2),),
        ),
        generation_of(
            provider="openai",
            request_model="tiny",
            response_model="served",
            max_tokens=5,
            temperature=0.0,
            top_p=0.9,
            seed=1,
            stop_sequences=("x",),
            finish_reasons=("stop",),
            input_tokens=7,
            output_tokens=3,
            cached_input_tokens=4,
            ttft_s=0.5,
            conversation_id="s1",
        ),
    ),
    "langfuse": (
        span_of(LANGFUSE),
        generation_of(
            request_model="tiny",
            temperature=0.0,
            finish_reasons=("stop",),
            input_tokens=7,
            output_tokens=3,
            cached_input_tokens=4,
            reasoning_tokens=1,
            ttft_s=0.5,
            launch="l1",
        ),
    ),
    "langfuse, by its own names of tokens": (
        span_of(
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.usage_details": '{"input": 7, "output": 3}',
            }
        ),
        generation_of(input_tokens=7, output_tokens=3),
    ),
    "openinference, streamed in JavaScript": (
        span_of(
            {
                "openinference.span.kind": "LLM",
                "llm.model_name": "tiny",
                "llm.invocation_parameters": '{"model":"tiny","stream":true}',
                "output.mime_type": "text/plain",
                "llm.finish_reason": "stop",
                "llm.token_count.prompt": 7,
                "llm.token_count.completion": 3,
                "llm.token_count.completion_details.reasoning": 2,
            }
        ),
        generation_of(
            request_model="tiny",
            response_model="tiny",
            streamed=True,
            finish_reasons=("stop",),
            input_tokens=7,
            output_tokens=3,
            reasoning_tokens=2,
        ),
    ),
    "openinference, failed": (
        span_of(
            {
                "openinference.span.kind": "LLM",
                "llm.model_name": "tiny",
                "llm.prompts.0.prompt.text": "x",
            },
            status=SpanStatus.ERROR,
            events=(
                SpanEvent(
                    name="exception",
                    time_unix_ns=2 * SECOND,
                    attributes={"exception.type": "openai.NotFoundError"},
                ),
            ),
        ),
        generation_of(
            operation="text_completion", request_model="tiny", error_type="openai.NotFoundError"
        ),
    ),
    "sglang": (
        span_of(SGLANG, " Req abc"),
        generation_of(
            provider="sglang",
            response_model="tiny",
            response_id="abc",
            max_tokens=64,
            top_k=20,
            finish_reasons=("stop",),
            input_tokens=10,
            output_tokens=5,
            cached_input_tokens=2,
            server_ttft_s=0.25,
            prefill_s=0.2,
            decode_s=1.0,
            tpot_s=0.25,
        ),
    ),
    "tgi": (
        span_of(TGI, "completions"),
        generation_of(
            operation="text_completion",
            provider="tgi",
            temperature=0.5,
            max_tokens=20,
            seed=7,
            queue_s=0.0035,
        ),
    ),
    "traceai": (
        span_of(
            {
                "gen_ai.span.kind": "LLM",
                "gen_ai.provider.name": "vllm",
                "gen_ai.request.model": "served",
                "gen_ai.request.parameters": '{"max_tokens": 5, "stop": "x", "best_of": 2}',
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.usage.output_tokens": 3,
            }
        ),
        generation_of(
            provider="vllm",
            request_model="served",
            max_tokens=5,
            stop_sequences=("x",),
            input_tokens=7,
            output_tokens=3,
        ),
    ),
    "openllmetry": (
        span_of(
            {
                "llm.request.type": "completion",
                "gen_ai.system": "OpenAI",
                "gen_ai.request.model": "tiny",
                "gen_ai.usage.prompt_tokens": 7,
                "gen_ai.usage.completion_tokens": 3,
                "gen_ai.completion.0.finish_reason": "length",
                "llm.top_k": 4,
            }
        ),
        generation_of(
            operation="text_completion",
            provider="OpenAI",
            request_model="tiny",
            input_tokens=7,
            output_tokens=3,
            finish_reasons=("length",),
            top_k=4,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_span_becomes_the_whole_generation(case: str) -> None:
    """Each field that the dialect has is read, and no other is set."""
    span, wanted = CASES[case]
    found = recognise(span)
    assert found is not None
    assert found.dialect == case.partition(",")[0]
    assert (found.decoded.generation, found.decoded.problems) == (wanted, ())
    assert found.server_side == (case in ("sglang", "tgi", "vllm"))
    assert not found.enriches


def test_recorded_vllm_spans_become_whole_generations() -> None:
    """Spans as vLLM sent them: one within a client's trace, one of /v1/completions alone."""
    body = (HERE / "vllm_spans.json").read_bytes()
    within, alone = (recognise(span) for span in decode_traces(body, Encoding.JSON).spans)
    assert within is not None
    assert alone is not None
    assert (within.dialect, within.server_side, within.enriches) == ("vllm", True, True)
    assert (alone.dialect, alone.server_side, alone.enriches) == ("vllm", True, False)
    assert within.decoded.generation.response_id == "chatcmpl-probe-req-1"
    assert (alone.decoded.generation, alone.decoded.problems) == (
        Generation(
            trace_id="bfd9cc6ccfb1e07910222c71bf2615fd",
            span_id=alone.decoded.generation.span_id,
            start_unix_ns=1795222846448488448,
            end_unix_ns=1795222846875419293,
            operation="text_completion",
            provider="vllm",
            response_id="cmpl-a5421d4d68e504a7",
            max_tokens=48,
            top_p=1.0,
            input_tokens=55,
            output_tokens=48,
            server_ttft_s=0.04825758934020996,
            tpot_s=0.378076924999732 / 47,
            queue_s=2.74499998340616e-05,
            prefill_s=0.0398075120001522,
            decode_s=0.378076924999732,
            service_name="vllm-tiny",
        ),
        (),
    )


@pytest.mark.parametrize("name", [case for case in CASES if "," not in case])
def test_the_contracts_own_attributes_count_on_any_span(name: str) -> None:
    """Attributes from a span processor or baggage are read beside the dialect's own."""
    span, wanted = CASES[name]
    added = {
        "draftgate.rollout": "k4",
        "draftgate.arm": "candidate",
        "draftgate.cohort": "chat",
        "draftgate.prompt.id": "p1",
        "draftgate.repeat": 2,
        "draftgate.dim.step": "plan",
        "draftgate.reference": "Paris",
        "spec_decode.num_steps": 4,
        "spec_decode.num_draft_tokens": 8,
        "spec_decode.num_accepted_tokens": 5,
        "gen_ai.usage.output_tokens": 9,
    }
    found = recognise(span_of({**span.attributes, **added}, span.name))
    assert found is not None
    generation = found.decoded.generation
    assert (generation.rollout, generation.arm, generation.cohort) == ("k4", Arm.CANDIDATE, "chat")
    assert (generation.prompt_id, generation.repeat, generation.dims) == ("p1", 2, {"step": "plan"})
    assert generation.speculation == Speculation(steps=4, draft_tokens=8, accepted_tokens=5)
    assert generation.output_tokens == 9
    assert generation.provider == wanted.provider
    assert content(name, {"draftgate.reference": "Paris"}) == Content(reference="Paris")


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"gen_ai.operation.name": "embeddings"},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.system": "openai"},
        {"openinference.span.kind": "CHAIN", "input.value": "hello"},
        {"gen_ai.span.kind": "TOOL"},
        {"llm.request.type": "embedding", "gen_ai.system": "openai"},
        {"module": "sglang::mooncake"},
        {"module": "sglang::request", "gen_ai.usage.prompt_tokens": 3},
        {"inference_time": "1s"},
    ],
)
def test_other_spans_are_no_generations(attributes: dict[str, AttributeValue]) -> None:
    """Embeddings, tools, chains and whatever looks alike are turned away."""
    assert recognise(span_of(attributes)) is None


def test_a_pooling_request_of_vllm_is_no_generation() -> None:
    """An embedding answers no tokens and was never limited."""
    assert recognise(span_of({"gen_ai.usage.completion_tokens": 0}, "llm_request")) is None


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({**OPENINFERENCE, "llm.token_count.prompt": "few"}, "type:llm.token_count.prompt"),
        (
            {**OPENINFERENCE, "llm.invocation_parameters": "{'a': 1}"},
            "type:llm.invocation_parameters",
        ),
        (
            {**OPENINFERENCE, "llm.invocation_parameters": '{"seed": 1e400, "top_p": "a"}'},
            "type:llm.invocation_parameters",
        ),
        ({**TGI, "queue_time": "soon"}, "type:queue_time"),
        ({**TGI, "seed": "Some(99999999999999999999)"}, "type:seed"),
        (
            {**SGLANG, "gen_ai.response.finish_reasons": "[1]"},
            "type:gen_ai.response.finish_reasons",
        ),
        ({**SGLANG, "gen_ai.usage.completion_tokens": 1.5}, "type:gen_ai.usage.completion_tokens"),
    ],
)
def test_what_cannot_be_read_is_named_as_it_was_sent(
    attributes: dict[str, AttributeValue], problem: str
) -> None:
    """The field stays absent, and the flag names the sender's attribute, not the contract's."""
    found = recognise(span_of(attributes))
    assert found is not None
    assert found.decoded.problems == (problem,)
    assert found.decoded.generation.quality == (problem,)


def test_a_key_value_list_is_no_operation() -> None:
    """A value that cannot be looked up is turned away, not raised."""
    assert recognise(span_of({"gen_ai.operation.name": {"a": 1}, "llm.request.type": {}})) is None


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("1.2ms", 0.0012), ("3.5µs", 3.5e-6), ("3.5μs", 3.5e-6), ("1.5s", 1.5), ("900ns", 9e-7)],
)
def test_tgi_durations_are_seconds(written: str, seconds: float) -> None:
    """Rust's debug output of a duration, in each of its units."""
    found = recognise(span_of({**TGI, "queue_time": written}))
    assert found is not None
    assert found.decoded.generation.queue_s == pytest.approx(seconds, rel=1e-12)


def test_dialects_have_names_of_their_own() -> None:
    """The name is stored, so two may not share one."""
    assert len({dialect.name for dialect in DIALECTS}) == len(DIALECTS)
