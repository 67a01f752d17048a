"""A process that creates export requests beforehand and then sends them.

It is a separate process so that the servers' CPU time, read from the operating system, does not
include the sender's.
"""

import gzip
import http.client
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks.load.spans import Body, Spans

PROTOBUF = {"Content-Type": "application/x-protobuf"}
_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The requests to send, and how to send them."""

    url: str
    batch: int
    batches: int
    seed: int
    first_start_unix_ns: int
    senders: int = 2
    spans_a_trace: int = 1
    gzipped: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


class Sent(NamedTuple):
    """The result of sending."""

    begun_s: float
    """When sending began, by the clock shared by all processes (`time.perf_counter`)."""
    ended_s: float
    statuses: Mapping[int, int]
    """Number of requests by status."""
    last_trace_ids: tuple[str, ...]
    """The trace id of the last span of each connection's last request."""
    body_bytes: int


class Sender:
    """A sender process whose requests are created."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._connection.recv()

    def send(self, on_progress: Callable[[int], object] = lambda _requests: None) -> Sent:
        """Send everything and wait for all responses; call `on_progress` with their number."""
        self._connection.send("go")
        while isinstance(answer := self._connection.recv(), int):
            on_progress(answer)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Sent)
        return answer


@contextmanager
def sender(plan: Plan, *, made_while_sending: bool = False) -> Iterator[Sender]:
    """Start a sender process, yield it once its requests are created, and end it.

    `made_while_sending` is for more requests than fit into memory; texts then repeat.
    """
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_run,
        args=(plan, theirs),
        kwargs={"made_while_sending": made_while_sending},
        daemon=True,
    )
    process.start()
    theirs.close()
    try:
        yield Sender(ours)
    finally:
        ours.close()
        process.terminate()
        process.join()


def post(http_: http.client.HTTPConnection, path: str, body: bytes, headers: object) -> int:
    """Post a body and return the response's status."""
    http_.request("POST", path, body, headers)  # type: ignore[arg-type]  # a mapping of strings
    answer = http_.getresponse()
    answer.read()
    return answer.status


def connect(url: str) -> http.client.HTTPConnection:
    """Return a connection, not yet open, to the URL's host."""
    parts = urlsplit(url)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)


def _run(plan: Plan, connection: Connection, *, made_while_sending: bool) -> None:
    spans = Spans(
        plan.seed,
        first_start_unix_ns=plan.first_start_unix_ns,
        spans_a_trace=plan.spans_a_trace,
    )
    bodies = (spans.many if made_while_sending else spans.bodies)(plan.batch, plan.batches)
    if plan.gzipped:
        bodies = (body._replace(content=gzip.compress(body.content, 6)) for body in bodies)
    if not made_while_sending:
        bodies = iter(list(bodies))
    connection.send("ready")
    try:
        connection.recv()
        connection.send(_send(plan, bodies, connection))
    except EOFError:  # the parent process has closed the pipe
        return
    except Exception as exc:  # raised again in the parent process
        connection.send(exc)


def _send(plan: Plan, bodies: Iterator[Body], connection: Connection) -> Sent:
    headers = PROTOBUF | dict(plan.headers)
    if plan.gzipped:
        headers["Content-Encoding"] = "gzip"
    lock = threading.Lock()
    statuses: dict[int, int] = {}
    last: dict[int, str] = {}
    failures: list[Exception] = []
    body_bytes = 0

    def work(number: int) -> None:
        nonlocal body_bytes
        http_, path = connect(plan.url), urlsplit(plan.url).path
        try:
            while True:
                with lock:
                    body = next(bodies, None)
                if body is None:
                    return
                status = post(http_, path, body.content, headers)
                with lock:
                    statuses[status] = statuses.get(status, 0) + 1
                    last[number] = body.spans[-1].trace_id
                    body_bytes += len(body.content)
                    if sum(statuses.values()) % 64 == 0:
                        connection.send(sum(statuses.values()))
        except OSError as exc:
            failures.append(exc)
        finally:
            http_.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(plan.senders)]
    begun_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return Sent(begun_s, time.perf_counter(), statuses, tuple(last.values()), body_bytes)
