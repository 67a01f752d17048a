"""Whatever the values, no dialect raises and nothing unstorable comes out."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from collector.contract import AttributeValue, Span, SpanEvent, SpanLink, SpanStatus, to_document
from collector.dialects import DIALECTS, content, is_text, recognise, scores

NAMES = (
    "gen_ai.operation.name",
    "gen_ai.system",
    "gen_ai.system_instructions",
    "gen_ai.input.messages",
    "gen_ai.input.messages.0.message.role",
    "gen_ai.input.messages.0.message.content",
    "gen_ai.input.messages.0.message",
    "gen_ai.prompt",
    "gen_ai.prompt.0.content",
    "gen_ai.completion.0.tool_calls.0.name",
    "gen_ai.completion.0.finish_reason",
    "gen_ai.request.model",
    "gen_ai.request.parameters",
    "gen_ai.request.id",
    "gen_ai.request.max_tokens",
    "gen_ai.response.finish_reasons",
    "gen_ai.span.kind",
    "gen_ai.usage.prompt_tokens",
    "gen_ai.usage.completion_tokens",
    "gen_ai.latency.time_in_model_decode",
    "llm.request.type",
    "llm.chat.stop_sequences",
    "llm.model_name",
    "llm.finish_reason",
    "llm.invocation_parameters",
    "llm.token_count.prompt",
    "llm.input_messages.0.message.contents.0.message_content.text",
    "llm.input_messages.٣.message.content",
    "llm.input_messages.0.message.tool_calls.0.tool_call.function.arguments",
    "llm.input_messages.0.message.tool_calls.0.tool_call.function.name",
    "llm.prompts.0.prompt.text",
    "input.value",
    "output.value",
    "openinference.span.kind",
    "module",
    "inference_time",
    "validation_time",
    "queue_time",
    "seed",
    "parameters",
    "annotations.0.annotation.name",
    "annotations.0.annotation.score",
    "annotations.0.annotation",
    "evaluations.0.evaluation.name",
    "evaluations.0.evaluation.score",
    "draftgate.context",
    "draftgate.arm",
    "spec_decode.num_steps",
)
TELLING = (
    "chat",
    "completion",
    "LLM",
    "EVALUATOR",
    "sglang::request",
    "1.5ms",
    "Some(1)",
    '{"model": 1, "stop": [1], "seed": 1e999, "max_tokens": 123456789012345678901234567890}',
    '{"model": "\\ud800"}',
    '["\\ud800"]',
    "[" * 100_000,
    "cmpl-",
    "temperature: Some(1e.e)",
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = (
    st.none()
    | st.sampled_from(TELLING)
    | texts
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.binary(max_size=8)
)
values: st.SearchStrategy[AttributeValue] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=5,
)
spans = st.builds(
    Span,
    trace_id=st.just("a" * 32),
    span_id=st.just("b" * 16),
    name=st.sampled_from(["llm_request", "completions", "x"]),
    start_unix_ns=st.integers(1, 2**63 - 1),
    end_unix_ns=st.integers(1, 2**63 - 1),
    status=st.sampled_from(SpanStatus),
    attributes=st.dictionaries(st.sampled_from(NAMES), values, max_size=12),
    events=st.lists(
        st.builds(
            SpanEvent,
            name=st.sampled_from(["exception", "First Token Stream Event"]),
            time_unix_ns=st.integers(0, 2**63 - 1),
            attributes=st.dictionaries(st.just("exception.type"), values),
        ),
        max_size=2,
    ).map(tuple),
    links=st.lists(
        st.builds(SpanLink, trace_id=st.just("c" * 32), span_id=st.just("d" * 16)), max_size=2
    ).map(tuple),
)


@given(spans)
def test_no_value_of_a_known_attribute_raises(span: Span) -> None:
    """A span is a generation or not; every generation and score that is read can be stored."""
    found = recognise(span)
    if found is not None:
        generation = found.decoded.generation
        document = to_document(replace(generation, content=None))
        json.dumps(document, ensure_ascii=False).encode()
        assert set(found.decoded.problems) <= {
            flag.removeprefix("counts:") for flag in generation.quality
        }
    for score in scores(span):
        assert (score.value is None) != (score.unscored_reason is None)


@given(st.sampled_from(DIALECTS), spans)
def test_no_text_raises(dialect: object, span: Span) -> None:
    """Content is JSON that can be stored, or there is none."""
    text = {name: value for name, value in span.attributes.items() if is_text(name)}
    found = content(dialect.name, text)  # type: ignore[attr-defined]
    for messages in (found.input_messages, found.output_messages) if found else ():
        if messages is not None:
            messages.encode()
    json.dumps(sorted(text))
