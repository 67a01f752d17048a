"""OTLP bodies to spans."""

import base64
import json
import math
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_generations import generation_of, span_of
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otlp_bodies import body_of, json_of

from collector.contract import Span, encode
from collector.errors import OtlpError
from collector.otlp.body import Encoding
from collector.otlp.light_parts import light_parts
from collector.otlp.traces import Received, decode_traces
from collector.otlp.weight import Root
from collector.protobuf.values import write_attribute

KEYS = [
    *("resourceSpans", "scopeSpans", "spans", "resource", "scope", "attributes", "key", "value"),
    *("links", "traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "status"),
    *("code", "message", "stringValue", "intValue", "doubleValue", "bytesValue", "arrayValue"),
]
ID = "trace_id: wanted 16 bytes (32 hexadecimal digits), not all zero"


def minimal(**fields: Any) -> dict[str, Any]:
    """Return an OTLP JSON document with one span."""
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "name": "s",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span | fields]}]}]}


def decode_json(document: object) -> Received:
    return decode_traces(json.dumps(document).encode(), Encoding.JSON)


def test_both_encodings_give_the_spans_that_were_sent(odd_span: Span) -> None:
    """Protobuf and JSON carry every kind of value, int64 limits included, to the same spans."""
    spans = (odd_span, encode(generation_of(1)), encode(generation_of(2, error_type="timeout")))
    for received in (
        decode_traces(body_of(spans), Encoding.PROTOBUF),
        decode_traces(json_of(spans), Encoding.JSON),
    ):
        assert (received.spans, received.rejected) == (spans, ())


def test_nan_survives_both_encodings() -> None:
    """NaN is a double like any other: stored as sent."""
    span = span_of(attributes={"nan": math.nan})
    attribute = {"key": "nan", "value": {"doubleValue": "NaN"}}
    for received in (
        decode_traces(body_of([span]), Encoding.PROTOBUF),
        decode_json(minimal(attributes=[attribute])),
    ):
        value = received.spans[0].attributes["nan"]
        assert isinstance(value, float)
        assert math.isnan(value)


def test_json_takes_numbers_for_64_bit_integers_and_ignores_unknown_keys() -> None:
    """Times and integers may be JSON numbers; keys that OTLP does not have yet do no harm."""
    document = minimal(
        startTimeUnixNano=5,
        endTimeUnixNano=6,
        kind=3,
        status={"code": 2},
        newField={"x": 1},
        attributes=[{"key": "n", "value": {"intValue": 7}}],
        links=[{"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331"}],
    )
    (span,) = decode_json(document).spans
    assert (span.start_unix_ns, span.end_unix_ns, span.kind, span.status) == (
        5,
        6,
        "client",
        "error",
    )
    assert span.attributes == {"n": 7}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"traceId": "0af7"}, ID),
        ({"traceId": "0" * 32}, ID),
        ({"traceId": "not hexadecimal, but 32 letters!"}, ID),
        ({"traceId": ""}, ID),
        ({"spanId": "00"}, "span_id: wanted 8 bytes (16 hexadecimal digits), not all zero"),
        (
            {"parentSpanId": "00ff"},
            "parent_span_id: wanted 8 bytes (16 hexadecimal digits), not all zero",
        ),
        (
            {"startTimeUnixNano": str(2**63)},
            "start_time_unix_nano: wanted Unix nanoseconds from 1 to 2^63 - 1",
        ),
        (
            {"endTimeUnixNano": "0"},
            "end_time_unix_nano: wanted Unix nanoseconds from 1 to 2^63 - 1",
        ),
    ],
)
def test_a_span_that_cannot_be_stored_is_rejected_alone(
    fields: dict[str, Any], reason: str
) -> None:
    """The span's reason is given, and the span beside it is kept."""
    document = minimal(**fields)
    document["resourceSpans"] += minimal()["resourceSpans"]
    received = decode_json(document)
    assert received.rejected == (reason,)
    assert [span.span_id for span in received.spans] == ["b7ad6b7169203331"]


def test_a_root_span_may_spell_its_missing_parent_as_zeros() -> None:
    """A parent id of zeros means none, as some exporters send it."""
    (span,) = decode_json(minimal(parentSpanId="0" * 16)).spans
    assert span.parent_span_id is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe{}",
        b'{"resourceSpans": {}}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": 1}]}]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": 5}]}]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "\\ud800"}]}]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": NaN}]}]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": "-1"}]}]}]}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5000,
    ],
)
def test_json_that_is_none_is_refused(body: bytes) -> None:
    """Whatever cannot be decoded raises the one error, in one line."""
    with pytest.raises(OtlpError) as caught:
        decode_traces(body, Encoding.JSON)
    assert "\n" not in str(caught.value)


def test_an_integer_beyond_int64_is_refused() -> None:
    """No integer is stored as something else than was sent."""
    attribute = {"key": "n", "value": {"intValue": str(2**63)}}
    with pytest.raises(OtlpError):
        decode_json(minimal(attributes=[attribute]))


def test_a_truncated_body_is_refused() -> None:
    """Half of a protobuf message is an error, not fewer spans."""
    body = body_of([encode(generation_of(1))])
    with pytest.raises(OtlpError, match="truncated"):
        decode_traces(body[:-5], Encoding.PROTOBUF)


def test_text_that_is_not_utf8_is_refused() -> None:
    """Invalid UTF-8 in a protobuf string is an error, not replacement characters."""
    body = body_of([encode(generation_of(1, response_id="MARK"))])
    with pytest.raises(OtlpError, match="UTF-8"):
        _ = decode_traces(body.replace(b"MARK", b"\xff\xfe\xfd\xfc"), Encoding.PROTOBUF).spans


@pytest.mark.parametrize("depth", [33, 200])
def test_an_attribute_nested_too_deeply_is_refused(depth: int) -> None:
    """Both encodings stop at the same depth, long before the interpreter's stack does."""
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    with pytest.raises(OtlpError, match=r"nested|too deep"):
        _ = decode_json(minimal(attributes=[{"key": "deep", "value": value}])).spans
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=b"1" * 16, span_id=b"2" * 8, start_time_unix_nano=1, end_time_unix_nano=2
        )
    )
    out = span.attributes.add().value
    for _ in range(depth):
        out = out.array_value.values.add()
    with pytest.raises(OtlpError, match="nested"):
        _ = decode_traces(request.SerializeToString(), Encoding.PROTOBUF).spans


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=30,
    )
)
def test_any_json_is_decoded_or_refused(document: object) -> None:
    """No JSON value of whatever shape raises anything but the one error."""
    for wrapped in (document, minimal(attributes=document), minimal(traceId=document)):
        try:
            received = decode_json(wrapped)
        except OtlpError:
            continue
        assert all(len(span.trace_id) == 32 for span in received.spans)


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_any_bytes_are_decoded_or_refused(data: st.DataObject) -> None:
    """A valid protobuf body with bytes changed raises nothing but the one error."""
    body = bytearray(body_of([encode(generation_of(1))]))
    for _ in range(data.draw(st.integers(1, 5))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        received = decode_traces(bytes(body), Encoding.PROTOBUF)
        stored = len(received.spans)
    except OtlpError:
        return
    assert stored + len(received.rejected) <= 1000


@pytest.mark.parametrize("encoding", Encoding)
def test_a_large_body_is_cut_between_spans(encoding: Encoding) -> None:
    """Each part has what its spans share, and all together hold every span once, in order."""
    request = ExportTraceServiceRequest()
    for sender in range(3):
        resource_spans = request.resource_spans.add(schema_url="https://example.com/1")
        resource_spans.resource.attributes.append(write_attribute("service.name", f"s{sender}"))
        for scope in range(3):
            scope_spans = resource_spans.scope_spans.add()
            scope_spans.scope.name = f"scope {sender}.{scope}"
            for number in range(300 if scope else 3000):
                scope_spans.spans.add(
                    trace_id=b"t" * 16,
                    span_id=(1 + number + 10_000 * scope + 100_000 * sender).to_bytes(8, "big"),
                    name='a "name", [with] {signs} and ünïcode',
                    start_time_unix_nano=1,
                    end_time_unix_nano=2,
                )
    is_json = encoding is Encoding.JSON
    body = as_json(request) if is_json else request.SerializeToString()
    cut = list(light_parts(body, encoding, Root.TRACES).parts)
    assert len(cut) > 8
    assert max(map(len, cut)) < len(body) // 4
    received = [item for part in cut for item in decode_traces(part, encoding).received]
    assert received == list(decode_traces(body, encoding).received)


def as_json(request: ExportTraceServiceRequest) -> bytes:
    """Return the request in OTLP's JSON, loosely spaced, with the spans first."""
    document = json_format.MessageToDict(request)
    for resource_spans in document["resourceSpans"]:
        resource_spans["scopeSpans"] = resource_spans.pop("scopeSpans")
        for scope_spans in resource_spans["scopeSpans"]:
            for span in scope_spans["spans"]:
                for key in ("traceId", "spanId"):
                    span[key] = base64.b64decode(span[key]).hex()
    return f" {json.dumps(document, indent=1)}\n".encode()


ONE = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}'
MALFORMED = {
    "half a field": (Encoding.PROTOBUF, b"\x0a\xff" * 100_000),
    "a scope as a number": (Encoding.PROTOBUF, b"\x08\x01" + b"\x0a\x00" * 100_000),
    "half a list": (Encoding.JSON, b'{"resourceSpans":[' * 20_000),
    "lists": (Encoding.JSON, b"[" * 200_000),
    "nothing": (Encoding.JSON, b" " * 200_000),
    "what follows": (Encoding.JSON, b"{}" + b" " * 200_000 + b"x"),
    "half a body": (Encoding.JSON, ONE + b" " * 200_000),
    "half a text": (Encoding.JSON, ONE + b',"' + b" " * 200_000),
    "UTF-16": (Encoding.JSON, (ONE + b"]}]}]}" + b" " * 200_000).decode().encode("utf-16")),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_large_body_that_cannot_be_cut_is_refused(name: str) -> None:
    """It is not decoded whole, which would keep others waiting."""
    encoding, body = MALFORMED[name]
    with pytest.raises(OtlpError, match="the body is no"):
        light_parts(body, encoding, Root.TRACES)


@pytest.mark.parametrize("name", ["resource_spans", "scope_spans"])
@pytest.mark.parametrize("more", [0, 200_000], ids=["small", "large"])
def test_json_with_names_as_protobuf_has_them_is_refused(name: str, more: int) -> None:
    """OTLP's are in lowerCamelCase; the error says which."""
    body = ONE.replace(b"resourceSpans" if name[0] == "r" else b"scopeSpans", name.encode())
    body += b"]}]}]}" + b" " * more
    with pytest.raises(OtlpError, match=f"{name}: in OTLP's JSON, names are in lowerCamelCase"):
        decode_traces(next(light_parts(body, Encoding.JSON, Root.TRACES).parts), Encoding.JSON)
