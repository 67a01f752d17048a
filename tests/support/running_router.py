"""A router in a thread of this process, its control in the test's hands, and a place for spans."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import wire_engine as wire
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from collector.contract import Arm
from engine_adapter.router.decision import Control, Decision, RequestFacts
from engine_adapter.router.server import running
from engine_adapter.router.settings import RouterSettings, Upstream
from engine_adapter.transport import Timeouts

new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
"""Creates the event loop of a router's thread; tests replace it."""
QUICK = Timeouts(first_byte_s=1.0, idle_s=1.0)
"""For upstreams that a test lets run into a timeout."""
QUESTION: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Where?"}]}
STREAMED = QUESTION | {"stream": True}
NOBODY = "http://127.0.0.1:9/v1"
"""An address at which no engine listens."""


@dataclass
class FixedControl:
    """Makes the decision that the test sets, and keeps the requests it decided on."""

    arm: Arm = Arm.BASELINE
    mirrored: bool = False
    allowed: bool = True
    asked: list[RequestFacts] = field(default_factory=list)
    lengths: list[tuple[int | None, int | None]] = field(default_factory=list)

    def decide(self, facts: RequestFacts) -> Decision:
        self.asked.append(facts)
        return Decision(
            rollout="k4",
            arm=self.arm,
            mirrored=self.mirrored,
            cohort="chat",
            session="s1",
            reason="the test",
        )

    def candidate_allowed(self) -> bool:
        return self.allowed

    def counted(self, characters: int | None, tokens: int | None) -> None:
        self.lengths.append((characters, tokens))

    def state(self) -> dict[str, object]:
        return {"candidate_allowed": self.allowed}


@dataclass(frozen=True)
class Router:
    """A running router."""

    root: str

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def connected(self) -> socket.socket:
        """Return a raw connection, for bytes that no HTTP library would send."""
        return socket.create_connection(("127.0.0.1", urlsplit(self.root).port or 0), timeout=200)

    def state(self) -> dict[str, Any]:
        with urlopen(f"{self.root}/router/state") as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found

    def counted(self, name: str) -> dict[str, float]:
        """Return a counter's values, by its labels' values."""
        with urlopen(f"{self.root}/metrics") as answer:  # noqa: S310
            text = answer.read().decode()
        return {
            ",".join(sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"draftgate_router_{name}_total"
        }

    def ask(
        self, body: object = None, *, path: str = "/chat/completions", **headers: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of an answer, whatever the status."""
        data = body if isinstance(body, bytes) else json.dumps(body or QUESTION).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(  # noqa: S310
            self.url + path, data, {"Content-Type": "application/json"} | named
        )
        opener = _no_raise()
        with opener.open(request, timeout=200) as answer:
            return answer.status, answer.headers, answer.read()


def _no_raise() -> Any:
    from urllib.request import HTTPErrorProcessor, build_opener

    class Plain(HTTPErrorProcessor):
        def http_response(self, request: Any, response: Any) -> Any:  # noqa: ARG002
            return response

    return build_opener(Plain)


@contextmanager
def routing(
    baseline: str = NOBODY,
    candidate: str = NOBODY,
    control: Control | None = None,
    *,
    upstream: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[Router]:
    """Run a router before two upstreams."""
    given = upstream or {}
    made = RouterSettings(
        port=0,
        baseline=Upstream(url=baseline, **given),
        candidate=Upstream(url=candidate, **given),
        **settings,
    )
    loop = new_loop()
    listening = threading.Event()
    stop = asyncio.Event()
    address: list[str] = []

    async def serve() -> None:
        async with running(made, control or FixedControl()) as url:
            address.append(url)
            listening.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert listening.wait(200)
        yield Router(address[0])
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


class Collected:
    """The spans that were exported, as OTLP has them; `answering` may be changed."""

    def __init__(self) -> None:
        self.answering = 200
        self.spans: list[Any] = []
        self.arrived = threading.Condition()

    def take(self, body: bytes) -> None:
        export = ExportTraceServiceRequest.FromString(body)
        with self.arrived:
            for resource in export.resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self.arrived.notify_all()

    def wait_for(self, number: int) -> list[dict[str, Any]]:
        """Return the attributes of that many spans, with their ids."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.spans) >= number, 200), self.spans
        return [_flat(span) for span in self.spans]


def _flat(span: Any) -> dict[str, Any]:
    named: dict[str, Any] = {entry.key: _value(entry.value) for entry in span.attributes}
    return named | {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "links": [link.span_id.hex() for link in span.links],
    }


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(part) for part in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def collecting() -> Iterator[tuple[str, Collected]]:
    """Take spans on a free port."""
    collected = Collected()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if collected.answering == 200:
                collected.take(body)
            self.send_response(collected.answering)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", collected
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def recording(*given: Any, **settings: Any) -> Iterator[tuple[Router, Collected]]:
    """Run a router that exports its spans, and take them."""
    with collecting() as (url, collected), routing(*given, collector_url=url, **settings) as router:
        yield router, collected


@contextmanager
def wired(answer: wire.Answer, **settings: Any) -> Iterator[tuple[wire.Engine, Router]]:
    """Run a router before an engine that answers in its own bytes."""
    with wire.running(answer) as engine, routing(engine.url, **settings) as router:
        yield engine, router
