"""Bodies that no exporter sends: each is stored or refused, and costs little memory."""

import json
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import psutil
import pytest

from benchmarks.attacks.protobuf_bytes import field

MIB = 2**20
PROTOBUF, JSON = "application/x-protobuf", "application/json"
MANY = 500_000


def pair(key: bytes, value: bytes) -> bytes:
    return field(1, key) + field(2, value)


def span(number: int, more: bytes = b"") -> bytes:
    ids = field(1, b"t" * 16) + field(2, struct.pack(">Q", number))
    times = b"".join(bytes([n << 3 | 1]) + struct.pack("<Q", 10**18) for n in (7, 8))
    return field(2, ids + times + more)


def body(of_span: bytes = b"", resource: bytes = b"", scopes: bytes | None = None) -> bytes:
    inside = field(2, span(1, of_span)) if scopes is None else scopes
    return field(1, field(1, resource) + inside)


def attribute(value: bytes, key: bytes = b"a") -> bytes:
    return body(field(9, pair(key, value)))


def nested(depth: int, *, in_maps: bool) -> bytes:
    value = field(1, b"x")
    for _ in range(depth):
        value = field(6, field(1, pair(b"k", value))) if in_maps else field(5, field(1, value))
    return value


def document(**of_span: Any) -> bytes:
    given = {"traceId": "74" * 16, "spanId": "73" * 8, "startTimeUnixNano": "1"}
    spans = [given | {"endTimeUnixNano": "2"} | of_span]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def with_value(value: bytes, key: bytes = b"a") -> bytes:
    sent = b'{"key":"%s","value":{%s}}' % (key, value)
    return document(attributes=["here"]).replace(b'"here"', sent)


ONE, TEXT = b"\x18\x01", field(1, b"x")
BODIES: dict[str, tuple[str, int, Callable[[], bytes]]] = {
    "lists 45 deep": (PROTOBUF, 400, lambda: attribute(nested(45, in_maps=False))),
    "maps 3,000 deep": (PROTOBUF, 400, lambda: attribute(nested(3000, in_maps=True))),
    "a wide list": (PROTOBUF, 200, lambda: attribute(field(5, field(1, ONE) * MANY))),
    "a wide list of text": (
        PROTOBUF,
        200,
        lambda: attribute(field(5, field(1, TEXT) * MANY), b"gen_ai.prompt"),
    ),
    "a map of one key": (
        PROTOBUF,
        200,
        lambda: attribute(field(6, field(1, pair(b"a@b.de", TEXT)) * MANY), b"gen_ai.prompt"),
    ),
    "a resource of maps": (
        PROTOBUF,
        200,
        lambda: body(resource=field(1, pair(b"m", field(6, field(1, pair(b"k", ONE)) * MANY)))),
    ),
    "many keys": (
        PROTOBUF,
        200,
        lambda: body(b"".join(field(9, pair(b"%d" % n, ONE)) for n in range(MANY))),
    ),
    "long keys": (
        PROTOBUF,
        200,
        lambda: body(b"".join(field(9, pair(b"%6d" % n * 1000, ONE)) for n in range(4000))),
    ),
    "one key of 28 MB": (PROTOBUF, 200, lambda: attribute(ONE, b"k" * 28 * MIB)),
    "empty scopes": (PROTOBUF, 413, lambda: body(scopes=field(2, b"") * 2 * MANY)),
    "empty resources": (PROTOBUF, 413, lambda: field(1, b"") * 2 * MANY),
    "events": (PROTOBUF, 200, lambda: body(field(11, field(2, b"e")) * 300_000)),
    "links": (
        PROTOBUF,
        200,
        lambda: body(field(13, field(1, b"t" * 16) + field(2, b"s" * 8)) * 300_000),
    ),
    "overlong UTF-8": (PROTOBUF, 400, lambda: attribute(field(1, b"\xc0\xaf"))),
    "a surrogate in UTF-8": (PROTOBUF, 400, lambda: attribute(field(1, b"\xed\xa0\x80"))),
    "half a pair": (JSON, 400, lambda: with_value(b'"stringValue":"\\ud800"', b"prompt")),
    "half a pair as key": (JSON, 400, lambda: with_value(b'"stringValue":"x"', b"\\ud800")),
    "NaN": (JSON, 400, lambda: with_value(b'"doubleValue":NaN')),
    "NaN in a string": (JSON, 200, lambda: with_value(b'"doubleValue":"NaN"')),
    "1e999": (JSON, 400, lambda: with_value(b'"doubleValue":1e999')),
    "an int of 1e999": (JSON, 400, lambda: with_value(b'"intValue":1e999')),
    "2^63 in a string": (JSON, 400, lambda: with_value(b'"intValue":"9223372036854775808"')),
    "a million digits": (JSON, 400, lambda: with_value(b'"intValue":%s' % (b"9" * 10**6))),
    "a million digits in a string": (
        JSON,
        400,
        lambda: with_value(b'"intValue":"%s"' % (b"9" * 10**6)),
    ),
    "a key twice": (JSON, 200, lambda: with_value(b'"stringValue":"x","stringValue":"y"')),
    "two values": (JSON, 400, lambda: with_value(b'"stringValue":"x","intValue":"1"')),
    "a time before 1970": (JSON, 400, lambda: document(startTimeUnixNano="-1")),
    "a time of 4,000 digits": (JSON, 400, lambda: document(endTimeUnixNano="9" * 4000)),
    "400 lists": (
        JSON,
        400,
        lambda: with_value(
            b'"arrayValue":{"values":[{' * 400 + b'"intValue":1' + b"}]}" * 400,
        ),
    ),
    "100,000 lists": (JSON, 200, lambda: b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a text of 500 lists": (
        JSON,
        200,
        lambda: with_value(b'"stringValue":"%s"' % (b"[" * 500 + b"]" * 500), b"prompt"),
    ),
    "what follows the end": (JSON, 400, lambda: document() + b"x"),
}


@pytest.fixture(scope="module")
def server(
    module_serve: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """Keep text, so that redaction looks at it."""
    folder = tmp_path_factory.mktemp("hostile")
    started = module_serve(f"sqlite:///{folder / 'x.db'}", env={"DRAFTGATE_CAPTURE_CONTENT": "1"})
    yield started
    assert started.process.poll() is None
    started.process.terminate()
    assert "Traceback" not in started.process.communicate()[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_stored_or_refused(server: Any, name: str) -> None:
    """With a status that says which, and with no more memory than bodies may take."""
    media_type, status, made = BODIES[name]
    process, over = psutil.Process(server.process.pid), threading.Event()
    before = most = process.memory_info().rss

    def watch() -> None:
        nonlocal most
        while not over.wait(0.02):
            most = max(most, process.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    headers = {"Content-Type": media_type}
    answer = httpx.post(f"{server.url}/v1/traces", content=made(), headers=headers, timeout=120)
    over.set()
    watching.join()
    assert answer.status_code == status, answer.content
    assert most - before < 400 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("media_type", [PROTOBUF, JSON])
def test_others_are_answered_while_a_large_body_is_stored(server: Any, media_type: str) -> None:
    """A hundred thousand spans, in either encoding."""
    if media_type == PROTOBUF:
        large = body(scopes=field(2, b"".join(span(n) for n in range(1, 100_001))))
    else:
        (one,) = json.loads(document())["resourceSpans"][0]["scopeSpans"][0]["spans"]
        spans = [one | {"spanId": f"{number:016x}"} for number in range(1, 100_001)]
        large = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    done = threading.Event()
    statuses: list[int] = []

    def send() -> None:
        statuses.append(_post(server, large, media_type))
        done.set()

    sending = threading.Thread(target=send)
    sending.start()
    answered = [_post(server, body(), PROTOBUF)]
    while not done.is_set():
        answered.append(_post(server, body(), PROTOBUF))
    sending.join()
    assert statuses == [200]
    assert len(answered) > 10
    assert set(answered) == {200}


def _post(server: Any, sent: bytes, media_type: str) -> int:
    headers = {"Content-Type": media_type}
    url = f"{server.url}/v1/traces"
    return httpx.post(url, content=sent, headers=headers, timeout=120).status_code
