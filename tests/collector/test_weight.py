"""A body is weighed before it is read: a few bytes can stand for much memory."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import psutil
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attacks.protobuf_bytes import field
from collector.content import DROP
from collector.errors import BodyTooLargeError
from collector.ingest.signals import LOGS, METRICS, TRACES, Signal, decode
from collector.otlp import weight
from collector.otlp.body import Encoding
from collector.otlp.json_extent import extent, extent_slowly
from collector.otlp.light_parts import light_parts
from collector.otlp.weight import Root, units

MIB = 2**20


def nested(*numbers: int, inside: bytes) -> bytes:
    for number in reversed(numbers):
        inside = field(number, inside)
    return inside


EMPTY = {
    "spans": (Root.TRACES, nested(1, 2, inside=field(2, b"") * (5 * MIB))),
    "attributes": (Root.TRACES, nested(1, 2, 2, inside=field(9, b"") * (5 * MIB))),
    "events": (Root.TRACES, nested(1, 2, 2, inside=field(11, b"") * (5 * MIB))),
    "nested values": (Root.TRACES, nested(1, 2, 2, 9, 2, 5, inside=field(1, b"") * (5 * MIB))),
    "scopes": (Root.TRACES, nested(1, inside=field(2, b"") * (5 * MIB))),
    "resource attributes": (Root.TRACES, nested(1, 1, inside=field(1, b"") * (5 * MIB))),
    "log records": (Root.LOGS, nested(1, 2, inside=field(2, b"") * (5 * MIB))),
    "points": (Root.METRICS, nested(1, 2, 2, 5, inside=field(1, b"") * (5 * MIB))),
}


@pytest.mark.parametrize("name", EMPTY)
def test_ten_megabytes_of_nothing_are_refused(name: str) -> None:
    """Of whatever kind the messages are, and wherever they stand."""
    root, body = EMPTY[name]
    with pytest.raises(BodyTooLargeError, match="send smaller batches"):
        units(body, Encoding.PROTOBUF, root)


@pytest.mark.parametrize("document", [b'{"resourceSpans":[' + b"{}," * 3 * MIB, b"[" * 2 * MIB])
def test_json_of_a_million_objects_is_refused(document: bytes) -> None:
    """Before any of it is parsed."""
    with pytest.raises(BodyTooLargeError, match="objects and lists"):
        units(document, Encoding.JSON, Root.TRACES)


def test_the_compiled_count_is_pythons() -> None:
    """On bodies of every kind, whole and cut."""
    for root, body in EMPTY.values():
        for piece in (body[:2000], body[:-1][-2000:], body):
            arguments = (piece, weight._SCHEMA, weight._WEIGHTS, root, 100_000)
            ours, theirs = weight._weigh(*arguments), weight.weigh_slowly(*arguments)
            assert (ours > 100_000) == (theirs > 100_000)
            assert ours == theirs or ours > 100_000


@pytest.mark.slow
@pytest.mark.parametrize("name", EMPTY)
def test_a_kilobyte_of_zstd_fills_no_memory(
    name: str, serve: Callable[..., Any], database_url: str
) -> None:
    """Ten megabytes of nothing take less than 300 MB, and nobody waits for them."""
    root, body = EMPTY[name]
    server = serve(database_url)
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    path = {Root.TRACES: "traces", Root.LOGS: "logs", Root.METRICS: "metrics"}[root]
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "zstd"}
    answer = httpx.post(
        f"{server.url}/v1/{path}", content=zstd.compress(body), headers=headers, timeout=30
    )
    assert answer.status_code == 413
    assert process.memory_info().rss - before < 300 * MIB


IDS = field(1, b"t" * 16) + field(2, b"s" * 8)
TIMES = b"".join(bytes([tag]) + (1).to_bytes(8, "little") for tag in (0x39, 0x41))
SPAN = IDS + TIMES
HEAVY: dict[str, Callable[[int], bytes]] = {
    "attributes": lambda count: field(9, b"") * count,
    "events": lambda count: field(11, b"") * count,
    "links": lambda count: field(13, b"") * count,
    "values of a list": lambda count: nested(9, 2, 5, inside=field(1, b"") * (count - 3)),
    "attributes of an event": lambda count: field(11, field(3, b"") * (count - 1)),
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_span_that_holds_too_much_is_rejected_alone(name: str) -> None:
    """One message more than the limit; its neighbours and a span at the limit are kept."""
    of_scope = [field(2, SPAN + HEAVY[name](weight.MOST_IN_ITEM + more)) for more in (0, 1)]
    body = nested(1, 2, inside=field(2, SPAN) + b"".join(of_scope))
    assert outcome(body, Encoding.PROTOBUF) == (2, 1)


@pytest.mark.parametrize("shared", [field(1, field(1, b"") * 70_000), b""])
def test_spans_whose_resource_or_scope_holds_too_much_are_rejected(shared: bytes) -> None:
    """Each of them, and no other resource's."""
    scope = b"" if shared else field(1, field(3, b"") * 70_000)
    heavy = field(1, shared + field(2, scope + field(2, SPAN) * 2))
    assert outcome(heavy + nested(1, 2, 2, inside=SPAN), Encoding.PROTOBUF) == (1, 2)


def test_a_json_span_that_holds_too_much_is_rejected_alone() -> None:
    """Braces within texts do not count."""
    times = {"startTimeUnixNano": "1", "endTimeUnixNano": "1"}
    one = {"traceId": "11" * 16, "spanId": "22" * 8, **times}
    text = {"attributes": [{"key": 'a "key" \\', "value": {"stringValue": '{"a":' * 100_000}}]}
    spans = [one, {**one, "events": [{}] * 65_535}, {**one, "events": [{}] * 65_534}, one | text]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    assert outcome(body, Encoding.JSON) == (3, 1)


COMMAS = '{"key":"k","value":{"arrayValue":{"values":[' + "1," * 8 * weight.MOST_IN_ITEM + "1]}}}"
LISTS = '{"key":"k","value":{"arrayValue":{"values":[' + "[]," * weight.MOST_IN_ITEM + "[]]}}}"
NAMES = {
    TRACES: ("resourceSpans", "scopeSpans", "spans"),
    LOGS: ("resourceLogs", "scopeLogs", "logRecords"),
}


@pytest.mark.parametrize("signal", NAMES, ids=["spans", "records"])
@pytest.mark.parametrize("attribute", [COMMAS, LISTS], ids=["commas", "lists"])
@pytest.mark.parametrize(
    "form", ["%s", '{"resourceSpans":[],"resourceLogs":[],%s'], ids=["once", "twice"]
)
def test_json_that_holds_too_much_in_any_form_is_rejected(
    signal: Signal, attribute: str, form: str
) -> None:
    """In lists and numbers, and with a name twice, of which the last one counts."""
    resources, scopes, items = NAMES[signal]
    body = f'{{"{resources}":[{{"{scopes}":[{{"{items}":[{{"attributes":[{attribute}]}}]}}]}}]}}'
    sent = (form % body[1:]) if form != "%s" else body
    assert outcome(sent.encode(), Encoding.JSON, signal) == (0, 1)


def test_a_log_record_or_metric_that_holds_too_much_is_not_decoded() -> None:
    """A log record is rejected alone; a body with such a metric is refused, with all its points."""
    many = weight.MOST_IN_ITEM + 1
    records = nested(1, 2, inside=field(2, b"") + field(2, field(6, b"") * many))
    assert outcome(records, Encoding.PROTOBUF, LOGS) == (1, 1)
    with pytest.raises(BodyTooLargeError, match="a metric, or its resource"):
        outcome(nested(1, 2, 2, 5, inside=field(1, b"") * many), Encoding.PROTOBUF, METRICS)


def test_what_holds_too_much_reserves_no_room() -> None:
    """Only decoded parts weigh."""
    light = field(2, SPAN + field(9, b"") * 60_000)
    body = nested(1, 2, inside=light + field(2, SPAN + field(9, b"") * 400_000))
    found = light_parts(body, Encoding.PROTOBUF, Root.TRACES)
    assert found.heavy == 1
    assert 60_000 <= found.units < 61_000


@pytest.mark.parametrize(
    ("spans", "attributes", "is_split"),
    [(500, 40, False), (1022, 20, False), (1023, 20, True), (500, 140, True)],
    ids=["of a usual size", "as many as a part may have", "one more", "more than one may hold"],
)
def test_only_a_body_of_many_spans_or_much_in_them_is_split(
    spans: int, attributes: int, is_split: bool
) -> None:
    """A resource and a scope count, too: 1,024 messages are decoded at once."""
    text = field(9, field(2, field(1, b"x" * 1000)))
    span = field(2, SPAN + text + field(9, b"") * attributes)
    found = light_parts(nested(1, 2, inside=span * spans), Encoding.PROTOBUF, Root.TRACES)
    assert (len(list(found.parts)) > 1) is is_split


@given(st.text(alphabet='{}[],":\\a1 \n', max_size=60), st.integers(0, 3))
def test_the_compiled_extent_is_pythons(text: str, at: int) -> None:
    """On JSON and on other text."""
    body = text.encode()
    at = min(at, len(body))
    ours, theirs = extent(body, at), extent_slowly(body, at)
    assert ours[0] == theirs[0]
    assert ours[0] < 0 or ours == theirs


VALUES = st.recursive(
    st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(VALUES)
def test_an_extent_is_that_of_the_value(value: Any) -> None:
    """Whatever its texts hold."""
    text = json.dumps(value).encode()
    if value is None:
        assert extent(text, 0)[0] == -1
    else:
        assert extent(b"[" + text + b", 1]", 1)[0] == 1 + len(text)


def outcome(body: bytes, encoding: Encoding, signal: Signal = TRACES) -> tuple[int, int]:
    """Return how many items are decoded and how many rejected."""
    light = light_parts(body, encoding, signal.root)
    results = [one.result for one in decode(signal, light, encoding, DROP)]
    rejected = [reason for one in results for reason in one.rejected]
    assert all("holds more than 65536" in reason for reason in rejected)
    return sum(one.stored + one.ignored for one in results), len(rejected)
