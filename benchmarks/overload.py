"""Overload: memory, refusals, durability of acknowledged spans, and recovery time.

First the sustainable rate is measured, with one request after another on two connections. Then ten
times that rate is offered on many connections, open loop; senders ignore Retry-After, which is the
worst case. At the end every acknowledged span must be stored. Recovery is measured from the end of
the load, while its remaining requests are still being answered. Prints one JSON document last.

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
    """The requests of one sender process, and their responses."""

    acknowledged: set[Identity] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    without_retry_after: int = 0
    """Refusals without Retry-After."""
    unanswered: int = 0
    """Requests without a response: the connection failed or timed out."""
    cpu_s: float = 0.0
    begun_s: float = 0.0
    answered_s: float = 0.0
    """When the last response arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """The results of the overload."""

    sustainable_requests_per_s: float
    sustained_cpu_ms: float
    """The collector's CPU time per accepted request before the overload."""
    offered_requests_per_s: float
    """Requests begun per second; below the target if every connection waits for a response."""
    accepted_requests_per_s: float
    accepted_cpu_ms: float
    """The collector's CPU time per accepted request, including its refusals."""
    senders_cpu_s: float
    """CPU time of the sender processes, on the same machine."""
    statuses: dict[int, int]
    refused_without_retry_after: int
    unanswered: int
    peak_memory_mib: float
    acknowledged_spans: int
    acknowledged_spans_lost: int
    first_accepted_after_s: float
    """From the end of the load to the first accepted request."""
    normal_after_s: float
    """From the end of the load until requests took at most twice as long as before it."""


def overload(
    target: Running, *, seconds: float, batch: int, factor: int, connections: int
) -> Overload:
    """Overload a newly started collector."""
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
    """Return the requests per second on two closed-loop connections, and seconds per request."""
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
        """When it stops beginning requests, by the clock shared by all processes."""

    def result(self) -> Offered:
        """Wait until every request is answered, and return the result.

        The result is computed only now, because that takes seconds of CPU time, which a recovering
        collector would lack.
        """
        self._connection.send("hand over")
        offered = self._connection.recv()
        assert isinstance(offered, Offered)
        return offered


@contextmanager
def offering(plan: Plan, *, rate: float, seconds: float) -> Iterator[Offering]:
    """Offer requests at the rate from a separate process; yields once the first have begun."""
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
    """Return those of the spans that the API returns."""
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
    # Texts are created before the load begins, not while it runs.
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
            if not accepted:  # offer it again
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
    parser.add_argument("--as-user", help="user that runs PostgreSQL if root starts it")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batch", type=int, default=512, help="spans per request")
    parser.add_argument(
        "--factor", type=int, default=10, help="offered rate as a multiple of the sustainable rate"
    )
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
