"""Hostile OTLP bodies: no 5xx, nothing half stored, stored rows match the response."""

import gzip
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import httpx
import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from made_generations import generation_of
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from otlp_bodies import PROTOBUF, body_of, json_of

from collector.contract import AttributeValue, Span, SpanStatus, attributes, encode

JSON = {"Content-Type": "application/json"}
MIB = 2**20
EPOCH, YEAR_2100 = 1, 4_102_444_800_000_000_000
NAMES = [value for name, value in vars(attributes).items() if name.isupper()]

BOUNDED = settings(
    deadline=None,
    max_examples=60,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # a failure is shown as found: to shrink one takes minutes
    suppress_health_check=list(HealthCheck),
)

good_times = st.sampled_from([EPOCH, 999_999_999, 1_763_700_000_000_000_000, YEAR_2100, 2**63 - 1])
bad_times = st.sampled_from([0, 2**63, 2**64 - 1])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()  # NaN and the infinite ones too
    | st.text(max_size=20)
    | st.binary(max_size=8)
    | st.sampled_from(["chat", "baseline", "candidate", "[", '[{"role": 1}]', "\0"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(max_size=5), inner)
    ),
    max_leaves=6,
)


def nested(depth: int) -> AttributeValue:
    """Return a list in a list, and so on."""
    value: AttributeValue = ()
    for _ in range(depth):
        value = (value,)
    return value


attribute_maps = st.dictionaries(
    st.sampled_from(NAMES) | st.text(max_size=8),
    values,
    max_size=8,
)
# Few good ids, so that one body often holds a span twice; and some of a wrong length.
good_ids = st.integers(0, 3)
bad_ids = st.sampled_from(["", "00", "00" * 8, "00" * 16, "ab" * 15, "ab" * 17])
rest_of_span = {
    "name": st.text(max_size=8),
    "kind": st.sampled_from(["internal", "client"]),
    "status": st.sampled_from(SpanStatus),
    "attributes": attribute_maps,
    "resource": attribute_maps,
}
good_spans = st.fixed_dictionaries(
    {
        "trace": good_ids,
        "span": good_ids,
        "parent_span_id": st.sampled_from([None, "cd" * 8]),
        "start_unix_ns": good_times,
        "end_unix_ns": good_times,
        **rest_of_span,
    }
)
odd_spans = st.fixed_dictionaries(
    {
        "trace": good_ids | bad_ids,
        "span": good_ids | bad_ids,
        "parent_span_id": st.sampled_from([None, "cd" * 8, "cd", "00" * 8]),
        "start_unix_ns": good_times | bad_times,
        "end_unix_ns": good_times | bad_times,
        **rest_of_span,
    }
)
span_lists = st.lists(st.one_of(good_spans, good_spans, odd_spans), min_size=1, max_size=8)

nested_bodies = st.one_of(
    st.tuples(span_lists, st.sampled_from([0, 0, 0, 31, 32, 33, 45, 120])),
    # Nothing of these can be stored.
    st.tuples(good_spans.map(lambda span: [span]), st.sampled_from([45, 120])),
)
"""The spans of a body, and how deep an attribute of the first is nested."""


class Witness:
    """Posts bodies, and compares the API's rows with the responses."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._examples = itertools.count(1)
        self.stored = self.rejected = self.refused = 0

    def spans(self, fields: Sequence[dict[str, Any]]) -> list[Span]:
        """Return spans whose good ids no earlier example has used."""
        example = next(self._examples)
        made = []
        for given_ in fields:
            rest = dict(given_)
            trace, span = rest.pop("trace"), rest.pop("span")
            trace_id = trace if isinstance(trace, str) else f"{example:024x}{trace + 1:08x}"
            span_id = span if isinstance(span, str) else f"{span + 1:016x}"
            made.append(Span(trace_id=trace_id, span_id=span_id, **rest))
        return made

    def post(self, body: bytes, headers: dict[str, str]) -> httpx.Response:
        """Post, and refuse every status that is no answer to a bad body."""
        answer = self._http.post("/v1/traces", content=body, headers=headers)
        assert answer.status_code in (200, 400, 413), answer.text
        return answer

    def shown(self, spans: Iterable[Span]) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the API's spans of these traces, each span once."""
        traces = {span.trace_id for span in spans if len(span.trace_id) == 32}
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for trace_id in traces - {"00" * 16}:
            answer = self._http.get(f"/api/v1/traces/{trace_id}")
            assert answer.status_code in (200, 404)
            for span in json.loads(answer.content).get("spans", []):
                key = (span["trace_id"], span["span_id"])
                assert key not in found, "a span is shown twice"
                found[key] = span
        return found

    def check(self, spans: list[Span], answer: httpx.Response) -> None:
        """Hold the stored spans against the answer."""
        shown = self.shown(spans)
        self.stored += len(shown)
        if answer.status_code != 200:
            self.refused += 1
            assert shown == {}, "a refused request was half stored"
            return
        self.rejected += rejected(answer)
        accepted = len(spans) - rejected(answer)
        sent = [(span.trace_id, span.span_id) for span in spans]
        assert set(shown) <= set(sent)
        assert len(shown) <= accepted <= sum(key in shown for key in sent)
        if accepted == len(spans):
            first = dict(reversed(list(zip(sent, spans, strict=True))))
            assert {key: span["name"] for key, span in shown.items()} == {
                key: span.name for key, span in first.items()
            }


def rejected(answer: httpx.Response) -> int:
    """Return how many spans the answer says were rejected."""
    message = ExportTraceServiceResponse()
    if answer.headers["content-type"] == "application/json":
        json_format.Parse(answer.content, message)
    else:
        message.ParseFromString(answer.content)
    return message.partial_success.rejected_spans


@pytest.fixture
def witness(http: httpx.Client) -> Witness:
    """Watch a collector with a database of its own."""
    return Witness(http)


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_what_is_stored_is_what_was_answered(encoding: str, witness: Witness) -> None:
    """Any ids, clocks, types and depths: refused, or stored except the rejected spans."""
    headers, write = (PROTOBUF, body_of) if encoding == "protobuf" else (JSON, json_of)

    @BOUNDED
    @given(nested_bodies, st.booleans())
    def send(body_of_spans: tuple[list[dict[str, Any]], int], gzipped: bool) -> None:
        fields, depth = body_of_spans
        fields[0]["attributes"] |= {"deep": nested(depth)}
        spans = witness.spans(fields)
        body = write(spans)
        answer = (
            witness.post(gzip.compress(body), headers | {"Content-Encoding": "gzip"})
            if gzipped
            else witness.post(body, headers)
        )
        witness.check(spans, answer)

    send()
    # The examples are worth their time: each kind of answer was seen.
    assert min(witness.stored, witness.rejected, witness.refused) > 0


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_a_truncated_body_is_refused_or_whole(encoding: str, witness: Witness) -> None:
    """A truncated body stores its complete spans, or nothing."""
    headers, write = (PROTOBUF, body_of) if encoding == "protobuf" else (JSON, json_of)

    @BOUNDED
    @given(st.integers(0, 10_000), st.integers(1, 6))
    def send(cut: int, count: int) -> None:
        template = encode(generation_of(1))
        fields = [
            {
                "trace": 1,
                "span": n,
                "name": template.name,
                "start_unix_ns": 1,
                "end_unix_ns": 2,
                "attributes": template.attributes,
            }
            for n in range(count)
        ]
        spans = witness.spans(fields)
        body = write(spans)
        left = body[: cut % len(body)]
        answer = witness.post(left, headers)
        assert encoding == "protobuf" or answer.status_code == 400
        if answer.status_code == 200:  # cut between two messages, which protobuf cannot tell
            request = ExportTraceServiceRequest.FromString(left)
            spans = spans[: sum(len(r.scope_spans) for r in request.resource_spans)]
        witness.check(spans, answer)

    send()


def test_wrong_types_in_json_are_refused_as_a_whole(witness: Witness) -> None:
    """A JSON node replaced by a value of another type makes a 400 that stores nothing, or a 200."""

    @BOUNDED
    @given(st.data())
    def send(data: st.DataObject) -> None:
        attribute_map = encode(generation_of(1)).attributes
        fields = {"name": "s", "start_unix_ns": 1, "end_unix_ns": 2, "attributes": attribute_map}
        spans = witness.spans([{"trace": 0, "span": n, **fields} for n in range(3)])
        document = json.loads(json_of(spans))
        holder, key = data.draw(st.sampled_from(list(places(document))))
        wrong = [None, True, -1, 1.5, math.nan, math.inf, 2**70, "x", "-1", [], [[]], {}, {"a": 1}]
        holder[key] = data.draw(st.sampled_from(wrong))
        answer = witness.post(json.dumps(document).encode(), JSON)
        shown = witness.shown(spans)
        if answer.status_code != 200:
            assert shown == {}
        else:
            assert len(shown) <= len(spans) - rejected(answer)

    send()


def places(document: Any) -> Iterable[tuple[Any, Any]]:
    """Yield (holder, key or index) of every node."""
    keys = document if isinstance(document, dict) else range(len(document))
    for key in list(keys):
        yield document, key
        if isinstance(document[key], dict | list):
            yield from places(document[key])


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
@pytest.mark.parametrize("name", ["free.text", attributes.GEN_AI_INPUT_MESSAGES])
def test_a_string_of_10_mib_is_stored_whole(encoding: str, name: str, witness: Witness) -> None:
    """Large is not wrong: within the body's limit a string comes back as sent."""
    headers, write = (PROTOBUF, body_of) if encoding == "protobuf" else (JSON, json_of)
    long = "naïve ☃ " * (10 * MIB // 8)
    fields = {"trace": 0, "span": 0, "name": "s", "start_unix_ns": 1, "end_unix_ns": 2}
    operation = {attributes.GEN_AI_OPERATION_NAME: "chat"}
    spans = witness.spans([fields | {"attributes": operation | {name: long}}])
    assert witness.post(write(spans), headers).status_code == 200
    (stored,) = witness.shown(spans).values()
    assert stored["attributes"][name] == long


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_a_body_beyond_the_limit_is_413(encoding: str, witness: Witness) -> None:
    """Forty mebibytes of one string are refused, and the collector goes on."""
    headers, write = (PROTOBUF, body_of) if encoding == "protobuf" else (JSON, json_of)
    fields = {"trace": 0, "span": 0, "name": "s", "start_unix_ns": 1, "end_unix_ns": 2}
    large = witness.spans([fields | {"attributes": {"text": "x" * 40 * MIB}}])
    assert witness.post(write(large), headers).status_code == 413
    small = witness.spans([fields])
    witness.check(small, witness.post(write(small), headers))
    assert witness.stored == 1


def test_every_refusal_says_why(witness: Witness) -> None:
    """A span beyond the clocks is rejected with its reason; one that runs backwards is kept."""
    template = encode(generation_of(1)).attributes
    fields = {"trace": 0, "name": "s", "attributes": template}
    clocks = [(EPOCH, YEAR_2100), (YEAR_2100, EPOCH), (0, 5), (5, 2**63)]
    spans = witness.spans(
        [
            fields | {"span": n, "start_unix_ns": start, "end_unix_ns": end}
            for n, (start, end) in enumerate(clocks)
        ]
    )
    request = ExportTraceServiceRequest()
    out = request.resource_spans.add().scope_spans.add().spans
    for span in spans:
        out.add(
            trace_id=bytes.fromhex(span.trace_id),
            span_id=bytes.fromhex(span.span_id),
            start_time_unix_nano=span.start_unix_ns,
            end_time_unix_nano=span.end_unix_ns,
        )
    answer = witness.post(request.SerializeToString(), PROTOBUF)
    assert rejected(answer) == 2
    assert len(witness.shown(spans)) == 2
