"""Generation to span and back, over arbitrary generations."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import (
    Arm,
    Content,
    DeviceUse,
    DocumentError,
    Generation,
    Score,
    Span,
    SpanStatus,
    Speculation,
    StepTimes,
    decode,
    encode,
    from_document,
    is_generation,
    to_document,
)
from collector.contract.fields import WIRE
from collector.contract.wire_field import Form

# A name with a control character is refused, which has tests of its own.
names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), max_size=20)
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
counts = st.integers(0, 1000)
seconds = st.floats(0, 1e6, allow_nan=False)


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


FIELDS: dict[str, st.SearchStrategy[object]] = {
    "str": text,
    "int": counts,
    "float": seconds,
    "bool": st.booleans(),
    "tuple[str, ...]": st.tuples(text, text),
    "tuple[int, ...]": st.tuples(counts, counts),
    "Arm": st.sampled_from(Arm),
}


NAMES = frozenset(name for name, wire in WIRE.items() if wire.form is Form.NAME)


def optional_fields(kind: type) -> dict[str, st.SearchStrategy[object]]:
    """Return a strategy for each `T | None` field of the record."""
    found = {}
    for field in dataclasses.fields(kind):
        if field.name in NAMES and kind is Generation:
            found[field.name] = maybe(names)
            continue
        name = str(field.type).removeprefix("collector.contract.records.")
        if name.endswith(" | None") and name.removesuffix(" | None") in FIELDS:
            found[field.name] = maybe(FIELDS[name.removesuffix(" | None")])
    return found


def nonempty(kind: type) -> st.SearchStrategy[object]:
    return st.builds(kind, **optional_fields(kind)).filter(lambda record: record != kind())


generations = st.builds(
    Generation,
    trace_id=st.just("0123456789abcdef" * 2),
    span_id=st.just("0123456789abcdef"),
    start_unix_ns=st.integers(0, 2**62),
    end_unix_ns=st.integers(0, 2**62),
    dims=st.dictionaries(text, text, max_size=3),
    speculation=maybe(nonempty(Speculation)),
    content=maybe(nonempty(Content)),
    **optional_fields(Generation),
)


def test_the_property_below_varies_every_field() -> None:
    """No optional field of the record escapes the round-trip property."""
    optional = {f.name for f in dataclasses.fields(Generation) if f.default is None}
    assert optional - set(optional_fields(Generation)) == {"speculation", "content", "device"}


@given(generations)
def test_a_generation_survives_its_span(generation: Generation) -> None:
    """Decoding what was encoded gives the same record, but for the flags that decoding adds.

    The generation of a prompt is its first unless it says which it is.
    """
    decoded = decode(encode(generation))
    assert decoded.problems == ()
    if generation.prompt_id is not None and generation.repeat is None:
        generation = dataclasses.replace(generation, repeat=0)
    assert dataclasses.replace(decoded.generation, quality=()) == generation


@given(generations)
def test_a_generation_survives_its_document(generation: Generation) -> None:
    """A JSON document of a record gives the record back."""
    assert from_document(Generation, to_document(generation)) == generation


def test_what_steps_took_stands_on_the_span_alone() -> None:
    """Each measured part is an attribute; the decoded generation lacks them."""
    times = StepTimes(draft_s=0.25, verify_s=1.5)
    timed = Speculation(method="draft_model", steps=3, step_times=times)
    bare = dataclasses.replace(timed, step_times=None)
    plain = Generation(trace_id="a" * 32, span_id="b" * 16, start_unix_ns=0, end_unix_ns=1)
    written = encode(dataclasses.replace(plain, speculation=timed))
    without = encode(dataclasses.replace(plain, speculation=bare))
    assert dict(written.attributes.items() - without.attributes.items()) == {
        "spec_decode.time_in_draft": 0.25,
        "spec_decode.time_in_verify": 1.5,
    }
    assert decode(written) == decode(without)
    assert decode(written).generation.speculation == bare


def test_what_a_device_did_stands_on_the_span_alone() -> None:
    """Known memory and GPU states are attributes; the decoded generation lacks them."""
    plain = Generation(trace_id="a" * 32, span_id="b" * 16, start_unix_ns=0, end_unix_ns=1)
    use = DeviceUse(weight_bytes=7, draft_weight_bytes=0, gpu_power_w=312.5)
    written = encode(dataclasses.replace(plain, device=use))
    assert dict(written.attributes.items() - encode(plain).attributes.items()) == {
        "draftgate.memory.weights": 7,
        "draftgate.memory.draft_weights": 0,
        "draftgate.gpu.power": 312.5,
    }
    assert decode(written) == decode(encode(plain))
    assert to_document(dataclasses.replace(plain, device=use)) == to_document(plain)


def span(**attributes: object) -> Span:
    return Span(
        trace_id="a" * 32,
        span_id="b" * 16,
        name="chat m",
        start_unix_ns=0,
        end_unix_ns=10**9,
        attributes={"gen_ai.operation.name": "chat"} | attributes,  # type: ignore[dict-item]
    )


@pytest.mark.parametrize(
    ("attribute", "value", "field", "read"),
    [
        ("gen_ai.usage.output_tokens", "3", "output_tokens", 3),
        ("draftgate.retries", "-1", "retries", -1),
        ("gen_ai.request.temperature", "0.25", "temperature", 0.25),
        ("gen_ai.response.time_to_first_chunk", "1e-3", "ttft_s", 0.001),
        ("gen_ai.usage.cache_read_input_tokens", 7, "cached_input_tokens", 7),
        ("gen_ai.usage.cache_read.input_tokens", "7", "cached_input_tokens", 7),
    ],
)
def test_a_number_in_a_string_is_read(
    attribute: str, value: object, field: str, read: float
) -> None:
    """Environments and baggage know strings alone; cached tokens have two spellings."""
    decoded = decode(span(**{attribute: value}))
    assert (getattr(decoded.generation, field), decoded.problems) == (read, ())


@pytest.mark.parametrize(
    "text", ["", " 3", "3 tokens", "0x3", "٣", "1_0", "9" * 20, "nan", "1e999"]
)
@pytest.mark.parametrize("attribute", ["gen_ai.usage.output_tokens", "gen_ai.request.temperature"])
def test_a_string_that_is_no_number_is_flagged(attribute: str, text: str) -> None:
    """No part of a text becomes a number; one that no column holds is none."""
    problems = decode(span(**{attribute: text})).problems
    long_but_fine = text == "9" * 20 and attribute.endswith("temperature")
    assert problems == (() if long_but_fine else (f"type:{attribute}",))


@pytest.mark.parametrize(
    ("attribute", "value", "flag"),
    [
        ("gen_ai.usage.output_tokens", "three", "type:gen_ai.usage.output_tokens"),
        ("gen_ai.usage.output_tokens", True, "type:gen_ai.usage.output_tokens"),
        (
            "gen_ai.response.time_to_first_chunk",
            float("nan"),
            "type:gen_ai.response.time_to_first_chunk",
        ),
        (
            "gen_ai.response.time_to_first_chunk",
            float("inf"),
            "type:gen_ai.response.time_to_first_chunk",
        ),
        ("draftgate.arm", "third", "type:draftgate.arm"),
        ("draftgate.context", "not json", "type:draftgate.context"),
        ("draftgate.dim.step", 3, "type:draftgate.dim.step"),
        ("spec_decode.num_steps", 1.5, "counts:type:spec_decode.num_steps"),
        (
            "spec_decode.acceptance_histogram",
            ("a",),
            "counts:type:spec_decode.acceptance_histogram",
        ),
    ],
)
def test_an_unreadable_attribute_is_absent_and_flagged(
    attribute: str, value: object, flag: str
) -> None:
    """A value of the wrong type never becomes a number; an unreadable count taints all counts."""
    decoded = decode(span(**{attribute: value}))
    plain = Generation(
        trace_id="a" * 32, span_id="b" * 16, start_unix_ns=0, end_unix_ns=10**9, quality=(flag,)
    )
    assert (decoded.generation, decoded.problems) == (plain, (f"type:{attribute}",))


def test_a_failed_span_without_a_type_gets_the_conventions_other() -> None:
    """Error status without `error.type` is an error of unknown type."""
    failed = dataclasses.replace(span(), status=SpanStatus.ERROR)
    assert decode(failed).generation.error_type == "_OTHER"


@pytest.mark.parametrize(
    ("reasons", "error_type"),
    [
        (("stop",), None),
        (("length", "tool_calls"), None),
        (("end_turn",), None),
        (("MAX_TOKENS",), None),
        (("error",), "finish_error"),
        (("stop", "abort"), "finish_abort"),
        (("content_filter",), "finish_content_filter"),
        (("refusal",), "finish_refusal"),
        (("FinishReason.SAFETY",), "finish_safety"),
        (("FINISH_REASON_RECITATION",), "finish_recitation"),
        (("ERROR_TOXIC",), "finish_error_toxic"),
        (("malformed_function_call",), "finish_malformed_function_call"),
    ],
)
def test_a_finish_reason_may_be_a_failure(reasons: tuple[str, ...], error_type: str | None) -> None:
    """An answer that its engine or a filter ended failed, in the words of any API."""
    sent = {"gen_ai.response.finish_reasons": reasons}
    assert decode(span(**sent)).generation.error_type == error_type
    named = decode(span(**sent, **{"error.type": "timeout"}))
    assert named.generation.error_type == "timeout"


def test_only_model_operations_are_generations() -> None:
    """A tool call or an agent step is a span, not a generation."""
    assert is_generation(span())
    assert not is_generation(span(**{"gen_ai.operation.name": "execute_tool"}))
    assert not is_generation(span(**{"gen_ai.operation.name": ("chat",)}))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"trace_id": "a"}, "span_id: missing key of Score"),
        ({"trace_id": 3}, "trace_id: wanted str, got 3"),
        ({"speed": 1}, "speed: unknown key in Score"),
        ([], r"Score: wanted an object, got \[\]"),
    ],
)
def test_a_bad_document_names_the_key(document: object, message: str) -> None:
    """A document that does not match the record is refused; the error names key and expectation."""
    with pytest.raises(DocumentError, match=message):
        from_document(Score, document)


def test_a_score_is_a_number_or_a_reason() -> None:
    """A score without a value says why; one with a value lies in [0, 1]."""
    ids = {"trace_id": "a", "span_id": "b", "metric": "m", "evaluator": "e", "version": "1"}
    with pytest.raises(ValueError, match="either a value or the reason"):
        Score(**ids)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="either a value or the reason"):
        Score(**ids, value=1.0, unscored_reason="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"lies in \[0, 1\]"):
        Score(**ids, value=1.1)  # type: ignore[arg-type]
