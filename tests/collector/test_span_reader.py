"""The compiled reader of trace bodies against the long way, protobuf's and Python's."""

import dataclasses
import functools
import gc
import os
import shutil
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_generations import generation_of, span_of
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from otlp_bodies import export_request

from collector.client import Client
from collector.content import DROP
from collector.contract import Content, Span, Speculation, encode
from collector.errors import OtlpError
from collector.ingest.trace_parts import decode_parts
from collector.otlp import attribute_facts, native
from collector.otlp.body import Encoding
from collector.otlp.received import Attributes, ReceivedSpan
from collector.otlp.traces import decode_traces, read_message
from collector.protobuf import wire
from collector.protobuf.values import write_attribute
from tests.collector.test_fuzz_otlp import attribute_maps, span_lists

pytestmark = pytest.mark.skipif(
    "DRAFTGATE_UNCOMPILED_TESTS" in os.environ
    or (not native.is_compiled() and shutil.which("cc") is None),
    reason="no C compiler to build it with, or it is hidden",
)
ROOT = Path(__file__).parents[2]
MANY = settings(
    deadline=None,
    max_examples=150,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def test_it_was_compiled() -> None:
    """If there is a compiler, installing the project compiles the reader."""
    assert native.is_compiled()


def long_way(body: bytes) -> tuple[ReceivedSpan, ...] | None:
    """Return the spans as protobuf and Python read them; None if they refuse the body."""
    try:
        received = read_message(wire.ExportTraceServiceRequest.FromString(body))
    except (DecodeError, OtlpError):
        return None
    return None if received.rejected else received.received


def short_way(body: bytes) -> tuple[ReceivedSpan, ...] | None:
    """Return the spans as the compiled reader reads them; None if it leaves them to Python."""
    try:
        spans = native.read(body)
    except OtlpError:
        return None
    return None if spans is None else tuple(spans)


def comparable(spans: Iterable[ReceivedSpan]) -> list[str]:
    """Return the spans as text, in which NaN equals itself, without the order of attributes."""
    return [
        repr(
            span._replace(
                others=wire.Span.FromString(span.others),
                attributes=span.attributes._replace(
                    fields=sorted(span.attributes.fields.items()),
                    text=sorted(span.attributes.text.items(), key=lambda item: item[0]),
                    text_sent=sorted(span.attributes.text_sent.items()),
                ),
            )
        )
        for span in spans
    ]


def assert_same(body: bytes) -> bool:
    """Assert that both ways read the same spans; return whether the short way read them."""
    short, long = short_way(body), long_way(body)
    if short is None:
        return False
    assert long is not None, "the short way took a body that the long way refuses"
    assert comparable(short) == comparable(long)
    return True


def test_a_generation_takes_the_short_way() -> None:
    """A body as the adapter sends it is read by the compiled reader, every field of it."""
    speculation = Speculation(
        method="ngram",
        lossless=True,
        steps=3,
        draft_tokens=9,
        accepted_tokens=4,
        accepted_tokens_per_pos=(2, 1, 1),
        acceptance_histogram=(1, 1, 0, 1),
    )
    content = Content(input_messages="[]", context=("a", "b"), reference="r", output_schema="{}")
    spans = [
        encode(generation_of(number, speculation=speculation, content=content, dims={"a": "b"}))
        for number in range(1, 4)
    ]
    assert assert_same(export_request(spans).SerializeToString())


def test_events_links_and_the_rest_of_a_span_are_kept() -> None:
    """What has no column is kept as it was sent, and defaults are not."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add(schema_url="https://example.com/schema")
    resource_spans.resource.dropped_attributes_count = 2
    scope_spans = resource_spans.scope_spans.add(schema_url="https://example.com/schema")
    scope_spans.scope.name, scope_spans.scope.version = "scope", "1.2"
    scope_spans.scope.attributes.append(write_attribute("of.the.scope", 1))
    for number, state in enumerate(("", "a=b"), 1):
        span = scope_spans.spans.add(
            trace_id=b"t" * 16,
            span_id=bytes([number] * 8),
            parent_span_id=bytes(8),
            name="naïve",
            kind=SpanMessage.SPAN_KIND_SERVER,
            start_time_unix_nano=1,
            end_time_unix_nano=2,
            trace_state=state,
            flags=number - 1,
            dropped_events_count=number,
        )
        span.status.code, span.status.message = 2, "it broke"
        span.events.add(name="first").attributes.append(write_attribute("k", "v"))
        span.links.add(trace_id=b"l" * 16, span_id=b"l" * 8)
        span.attributes.extend([write_attribute("", "empty key"), write_attribute("x", None)])
    assert assert_same(request.SerializeToString())


@pytest.mark.parametrize("value", ["openai", 3, None, ("a", "b")])
def test_the_older_conventions_are_told_by_their_system(value: Any) -> None:
    """Whatever its value, an attribute `gen_ai.system` is seen, on its own span alone."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for number in range(1, 4):
        span = spans.add(trace_id=b"t" * 16, span_id=bytes([number]) * 8)
        span.start_time_unix_nano = span.end_time_unix_nano = 1
        span.attributes.append(write_attribute("gen_ai.request.model", "m"))
        if number == 2:
            span.attributes.append(write_attribute("gen_ai.system", value))
    body = request.SerializeToString()
    assert assert_same(body)
    seen = [span.attributes.has_system for span in short_way(body) or ()]
    assert seen == [False, True, False]


def test_what_is_unusual_is_left_to_the_long_way() -> None:
    """Twice the same key, two resources to merge, ids that are none: the reader declines."""
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=1, end_time_unix_nano=2
        )
    )
    plain = request.SerializeToString()
    assert assert_same(plain)
    span.attributes.extend([write_attribute("k", 1), write_attribute("k", 2)])
    assert native.read(request.SerializeToString()) is None
    del span.attributes[:]
    for bad in (b"", b"t" * 15, bytes(16)):
        span.trace_id = bad
        assert native.read(request.SerializeToString()) is None
    assert native.read(b"\x0a") is None, "truncated"
    assert native.read(b"\x0b\x0c") is None, "a group"
    with pytest.raises(TypeError):
        native.read("text")  # type: ignore[arg-type]


def accepted(body: bytes) -> tuple[list[tuple[bytes, bytes]], list[str]] | str:
    """Return the spans that are taken and why others are not, or why all of it is refused."""
    try:
        parts = list(decode_parts(iter([body]), Encoding.PROTOBUF, DROP))
    except OtlpError as error:
        return str(error)
    return (
        [row.key for part in parts for row in part.rows],
        [reason for part in parts for reason in part.rejected],
    )


def assert_accepted_alike(body: bytes) -> None:
    """Hold that as much of a body is taken without the compiled reader."""
    compiled = accepted(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_readers", None)
        assert accepted(body) == compiled


GARBLED = {
    "attribute": {"attributes": [b"\x0a\x02\xff\xfe"]},
    "deep attribute": {
        "attributes": [
            KeyValue(
                key="k",
                value=functools.reduce(
                    lambda v, _: AnyValue(array_value={"values": [v]}), range(40), AnyValue()
                ),
            ).SerializeToString()
        ]
    },
    "event": {"events": [b"\x12\x02\xff\xfe"]},
    "link": {"links": [b"\x22\x02\xff"]},
    "no id, too": {"span_id": b"", "attributes": [b"\xff"]},
}


@pytest.mark.parametrize("name", GARBLED)
def test_a_garbled_part_of_a_span_keeps_no_other_span_out(name: str) -> None:
    """That span is rejected, with a reason; a body in which nothing else is left is refused."""
    request = wire.ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    times = {"start_time_unix_nano": 1, "end_time_unix_nano": 2}
    for number in range(1, 4):
        spans.add(trace_id=b"t" * 16, span_id=bytes([number]) * 8, name="x", **times)
    for field, value in GARBLED[name].items():
        spans[1].ClearField(field)
        (
            getattr(spans[1], field).extend
            if isinstance(value, list)
            else partial(setattr, spans[1], field)
        )(value)
    body = request.SerializeToString()
    taken, reasons = accepted(body)
    assert [span for _, span in taken] == [b"\1" * 8, b"\3" * 8]
    assert len(reasons) == 1
    assert_accepted_alike(body)
    assert_accepted_alike(body * 400)
    del spans[2], spans[0]
    if "span_id" not in GARBLED[name]:
        assert "garbled" in accepted(request.SerializeToString()) or "deep" in accepted(
            request.SerializeToString()
        )


def test_a_garbled_name_or_resource_keeps_no_other_out() -> None:
    """A resource counts for its own spans alone; bytes that are no protobuf are refused whole."""
    request = wire.ExportTraceServiceRequest()
    times = {"start_time_unix_nano": 1, "end_time_unix_nano": 2}
    for number in range(1, 4):
        resource_spans = request.resource_spans.add()
        resource_spans.resource.attributes.append(write_attribute("k", number).SerializeToString())
        resource_spans.scope_spans.add().spans.add(
            trace_id=b"t" * 16, span_id=bytes([number]) * 8, name="NAME", **times
        )
    request.resource_spans[1].resource.attributes.append(b"\x0a\x02\xff\xfe")
    body = request.SerializeToString()
    assert accepted(body)[1] == ["an attribute is garbled: not UTF-8, or nested too deeply"]
    assert_accepted_alike(body)
    body = body.replace(b"NAME", b"N\xffME", 1)
    assert len(accepted(body)[0]) == 1
    assert_accepted_alike(body)
    assert isinstance(accepted(body[:-3]), str)
    assert isinstance(accepted(b"hello"), str)


@MANY
@given(span_lists)
def test_any_spans_are_read_alike(fields: list[dict[str, object]]) -> None:
    """Hostile spans are read as the long way reads them, or left to it."""
    spans = []
    for given_ in fields:
        rest = dict(given_)
        trace, span = rest.pop("trace"), rest.pop("span")
        ids = {
            "trace_id": trace if isinstance(trace, str) else f"{trace or 7:032x}",
            "span_id": span if isinstance(span, str) else f"{span or 7:016x}",
        }
        spans.append(Span(**ids, **rest))  # type: ignore[arg-type]
    body = export_request(spans).SerializeToString()
    assert_same(body)
    assert_accepted_alike(body)


@MANY
@given(attribute_maps, st.data())
def test_changed_bytes_are_read_alike(attributes: dict[str, object], data: st.DataObject) -> None:
    """With bytes changed, cut off or doubled, a body is read as the long way reads it, or left."""
    own = {"gen_ai.operation.name": "chat", "gen_ai.request.seed": 300}
    span = span_of(attributes=own | attributes)
    whole = export_request([span]).SerializeToString()
    body = bytearray(whole)
    assert assert_same(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    for changed in (body, body[:cut], body + body[cut:], bytes(whole) + body):
        assert_same(bytes(changed))
        assert_accepted_alike(bytes(changed))


def test_threads_have_readers_of_their_own() -> None:
    """Bodies with different keys, read at once, do not mix."""
    bodies = [
        export_request(
            [encode(generation_of(number, dims={f"d{number}": "x"}))] * 40
        ).SerializeToString()
        for number in range(1, 9)
    ]
    wanted = [comparable(long_way(body) or ()) for body in bodies]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            assert [comparable(native.read(b) or ()) for b in pool.map(bytes, bodies)] == wanted
            assert [comparable(spans or ()) for spans in pool.map(native.read, bodies)] == wanted


def test_nothing_leaks() -> None:
    """Reading the same bodies again and again, refused ones too, keeps nothing."""
    whole = export_request([encode(generation_of(1, dims={"a": "b"}))]).SerializeToString()
    garbled = whole[:-3]

    def read() -> None:
        for _ in range(200):
            native.read(whole)
            native.read(garbled)

    read()
    gc.collect()
    tracemalloc.start()
    try:
        read()
        before = tracemalloc.get_traced_memory()[0]
        blocks = sys.getallocatedblocks()
        read()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 4096
        assert sys.getallocatedblocks() - blocks < 50
    finally:
        tracemalloc.stop()


def test_a_span_of_other_fields_is_refused() -> None:
    """The reader makes tuples of as many items as it knows of, and no others."""

    class Short(NamedTuple):
        trace_id: bytes

    named = {"span": ReceivedSpan, "attributes": Attributes, "resource": bytes}
    for name, wanted in (("span", 13), ("attributes", 6)):
        for other in (Short, tuple, dict):
            with pytest.raises(TypeError, match=f"a named tuple of {wanted} fields"):
                native.SpanReader(
                    **(named | {name: other}), describe=len, read_attribute=attribute_facts.read
                )


def test_keys_are_forgotten_in_time() -> None:
    """A sender that makes up keys does not fill the memory."""
    for number in range(50):
        dims = {f"made-up-{number}-{at}": "x" for at in range(100)}
        native.read(export_request([encode(generation_of(1, dims=dims))]).SerializeToString())
    assert native._readers is not None
    assert native._readers.reader.known() < 4096 + 200


@pytest.mark.parametrize("keys", [["x" * 257], [f"key-{n}" for n in range(20_000)]])
def test_keys_that_would_fill_the_memory_are_read_the_long_way(keys: list[str]) -> None:
    """One that is long, and those of a body that has very many; the cache stays small."""
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id = b"t" * 16, b"s" * 8
    span.start_time_unix_nano = span.end_time_unix_nano = 1
    for key in keys:
        span.attributes.add(key=key).value.int_value = 1
    body = request.SerializeToString()
    assert native.read(body) is None
    assert native._readers is not None
    assert native._readers.reader.known() <= 8192
    (received,) = decode_traces(body, Encoding.PROTOBUF).spans
    assert len(received.attributes) == len(keys)


def test_without_it_the_collector_says_so_and_stores_the_same(
    serve: Callable[..., Any], database_url: str, tmp_path: Path
) -> None:
    """A collector that was installed without a compiler is slower, and no different."""
    hide = "import sys; sys.modules['collector.otlp._span_reader'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hide)
    server = serve(database_url, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    sent = generation_of(1, dims={"a": "b"})
    with Client(server.url) as client:
        httpx.post(
            f"{server.url}/v1/traces",
            content=export_request([encode(sent)]).SerializeToString(),
            headers={"Content-Type": "application/x-protobuf"},
        ).raise_for_status()
        (stored,) = client.generations(sent.rollout or "")
    server.process.terminate()
    said = server.process.stdout.read()
    server.process.communicate()
    assert dataclasses.replace(stored, content=sent.content) == sent
    assert "Spans: read by Python, at over three times the CPU" in said
