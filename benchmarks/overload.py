"""What an overload does: memory, refusals, what was acknowledged, and how soon it is over.

The sustainable rate is measured first, with one request after another on two connections. Then
ten times as many requests a second are offered, on many connections, whatever became of the ones
before; nobody waits as Retry-After asks, so this is the worst case. At the end every acknowledged
span is looked for. Recovery is asked for from the moment at which the load ends, while the requests
that it left behind are still answered. Prints one JSON document last.

    python benchmarks/overload.py --seconds 60
"""

import argparse
import http.client
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.load.processes import Memory, cpu_s
from benchmarks.load.recovery import Probe
from benchmarks.load.sender import PROTOBUF, Plan, connect, sender
from benchmarks.load.spans import Body, Identity, Spans
from benchmarks.load.targets import Running, draftgate
from collector.client import Client

MEMORY_LIMIT_BYTES = 2**30
_SUSTAINED_REQUESTS = 24
_DISTINCT = 200


@dataclass(slots=True)
class Offered:
    """What one sender process offered, and what it was answered."""

    acknowledged: set[Identity] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    without_retry_after: int = 0
    """Refusals that did not say when to come again."""
    unanswered: int = 0
    """Requests that ended without an answer: the connection failed or timed out."""
    cpu_s: float = 0.0
    begun_s: float = 0.0
    answered_s: float = 0.0
    """When the last request was answered, some time after the last was begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """What the overload came to."""

    sustainable_requests_per_s: float
    sustained_cpu_ms: float
    """CPU of the collector for each request that it accepted before the overload."""
    offered_requests_per_s: float
    """Begun a second; fewer than wanted where every connection waits for an answer."""
    accepted_requests_per_s: float
    accepted_cpu_ms: float
    """CPU of the collector for each request that it accepted, its refusals included."""
    senders_cpu_s: float
    """CPU of those who offered, on the same machine."""
    statuses: dict[int, int]
    refused_without_retry_after: int
    unanswered: int
    peak_memory_mib: float
    acknowledged_spans: int
    acknowledged_spans_lost: int
    first_accepted_after_s: float
    """From the end of the load to the first request that was accepted."""
    normal_after_s: float
    """From the end of the load until requests took no longer than twice the time before it."""


def overload(
    target: Running, *, seconds: float, batch: int, factor: int, connections: int
) -> Overload:
    """Overload a collector that was just started."""
    collector = target.processes["server"]
    spent_s = cpu_s(collector())
    sustainable, normal_s = sustain(target.url, batch)
    sustained_s, spent_s = cpu_s(collector()) - spent_s, cpu_s(collector())
    plan = Plan(
        url=target.url,
        batch=batch,
        batches=_DISTINCT,
        seed=2,
        senders=connections,
        first_start_unix_ns=time.time_ns(),
    )
    probe = Probe(target.url, batch)
    with (
        Memory(lambda: list(collector())) as memory,
        offering(plan, rate=factor * sustainable, seconds=seconds) as load,
    ):
        recovered = probe.recover(load.ends_s, within_s=2 * normal_s)
        offered = load.result()
        spent_s = cpu_s(collector()) - spent_s
    lost = offered.acknowledged - shown(target.url, offered.acknowledged)
    took_s = offered.answered_s - offered.begun_s
    return Overload(
        sustainable_requests_per_s=sustainable,
        sustained_cpu_ms=1000 * sustained_s / _SUSTAINED_REQUESTS,
        offered_requests_per_s=(sum(offered.statuses.values()) + offered.unanswered) / seconds,
        accepted_requests_per_s=offered.statuses[200] / took_s,
        accepted_cpu_ms=1000 * spent_s / (offered.statuses[200] + recovered.accepted),
        senders_cpu_s=offered.cpu_s,
        statuses=dict(offered.statuses),
        refused_without_retry_after=offered.without_retry_after,
        unanswered=offered.unanswered,
        peak_memory_mib=memory.peak_bytes / 2**20,
        acknowledged_spans=len(offered.acknowledged),
        acknowledged_spans_lost=len(lost),
        first_accepted_after_s=recovered.first_accepted_after_s,
        normal_after_s=recovered.normal_after_s,
    )


def sustain(url: str, batch: int) -> tuple[float, float]:
    """Return requests a second on two patient connections, and the seconds that each took."""
    plan = Plan(
        url=url,
        batch=batch,
        batches=_SUSTAINED_REQUESTS,
        seed=1,
        first_start_unix_ns=time.time_ns(),
    )
    with sender(plan) as sending:
        sent = sending.send()
    took_s = sent.ended_s - sent.begun_s
    return _SUSTAINED_REQUESTS / took_s, took_s * plan.senders / _SUSTAINED_REQUESTS


class Offering:
    """A process that offers requests."""

    def __init__(self, connection: Connection, seconds: float) -> None:
        self._connection = connection
        self.ends_s: float = connection.recv() + seconds
        """When it begins no more requests, by the clock that all processes share."""

    def result(self) -> Offered:
        """Return what came of it, once every request is answered.

        It is made and handed over only now: that takes seconds of a processor, which would be
        missed by a collector that recovers.
        """
        self._connection.send("hand over")
        offered = self._connection.recv()
        assert isinstance(offered, Offered)
        return offered


@contextmanager
def offering(plan: Plan, *, rate: float, seconds: float) -> Iterator[Offering]:
    """Offer requests at the rate from a process of its own; given once the first are begun."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    arguments = (plan, rate, seconds, theirs)
    process = context.Process(target=_offer, args=arguments, daemon=True)
    process.start()
    theirs.close()
    try:
        yield Offering(ours, seconds)
    finally:
        ours.close()
        process.terminate()
        process.join()


def shown(url: str, spans: set[Identity]) -> set[Identity]:
    """Return those of the spans that the API shows."""
    with Client(url.removesuffix("/v1/traces"), timeout_s=120) as client:
        return {
            Identity(span.trace_id, span.span_id)
            for trace_id in {span.trace_id for span in spans}
            for span in client.trace(trace_id)
        }


def _offer(plan: Plan, rate: float, seconds: float, connection: Connection) -> None:
    spans = Spans(plan.seed, first_start_unix_ns=plan.first_start_unix_ns, spans_a_trace=64)
    distinct = min(plan.batches, 64)
    bodies = spans.many(plan.batch, 10**9, distinct=distinct)
    # The texts are made before the load begins, not while it runs.
    ready = [next(bodies) for _ in range(distinct)]
    lock = threading.Lock()
    begun_s, spent_s = time.perf_counter(), time.process_time()
    connection.send(begun_s)
    offered = Offered(begun_s=begun_s)
    turns = iter(range(int(rate * seconds)))

    queue = deque(ready)

    def work() -> None:
        http_ = connect(plan.url)
        while True:
            with lock:
                turn = next(turns, None)
                if turn is None or time.perf_counter() > begun_s + seconds:
                    return http_.close()
                body = queue.popleft() if queue else next(bodies)
            time.sleep(max(0.0, begun_s + turn / rate - time.perf_counter()))
            try:
                accepted = _post(http_, plan.url, body, offered, lock)
            except (OSError, http.client.HTTPException):
                http_.close()
                with lock:
                    offered.unanswered += 1
                accepted = False
            if not accepted:  # it is offered once more
                with lock:
                    queue.append(body)

    threads = [threading.Thread(target=work) for _ in range(plan.senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    offered.answered_s, offered.cpu_s = time.perf_counter(), time.process_time() - spent_s
    connection.recv()
    connection.send(offered)


def _post(
    http_: http.client.HTTPConnection, url: str, body: Body, offered: Offered, lock: threading.Lock
) -> bool:
    http_.request("POST", urlsplit(url).path, body.content, PROTOBUF)
    answer = http_.getresponse()
    said = answer.read()
    with lock:
        offered.statuses[answer.status] += 1
        if answer.status == 200 and not said:
            offered.acknowledged.update(body.spans)
            return True
        if answer.status not in (429, 503) or answer.headers["Retry-After"] is None:
            offered.without_retry_after += 1
    return False


def main() -> None:
    """Run the overload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--as-user", help="who PostgreSQL runs as, where root starts it")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batch", type=int, default=512, help="spans a request")
    parser.add_argument("--factor", type=int, default=10, help="times the sustainable rate")
    parser.add_argument("--connections", type=int, default=128)
    options = parser.parse_args()
    start = partial(draftgate, database=options.database, user=options.as_user)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="draftgate-"))
        target = stack.enter_context(start(Path(folder)))
        result = overload(
            target,
            seconds=options.seconds,
            batch=options.batch,
            factor=options.factor,
            connections=options.connections,
        )
    document = {"benchmark": "overload", "options": vars(options), "cores": os.cpu_count()}
    print(json.dumps(document | asdict(result), indent=2))
    if result.peak_memory_mib * 2**20 > MEMORY_LIMIT_BYTES or result.acknowledged_spans_lost:
        sys.exit(1)


if __name__ == "__main__":
    main()
