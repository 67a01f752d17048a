"""Durability under SIGKILL: no acknowledged span is lost, none is stored twice.

In each round several senders post until the collector is killed at a random moment. It is restarted
on the same database and must return every span that it acknowledged. Then the senders send all
bodies of the round again, acknowledged or not; each span must be stored once, and rollups and pair
counts must equal the rows. On PostgreSQL every fourth round first kills the database server with
all its processes and restarts it: the collector has to recover by itself. Prints one JSON document
last.

    python benchmarks/kill.py --database postgresql --rounds 20
"""

import argparse
import contextlib
import http.client
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from benchmarks.load.processes import family
from benchmarks.load.sender import PROTOBUF, connect
from benchmarks.load.spans import Body, Identity, Spans
from benchmarks.load.targets import Postgres, collector, server, stored_spans
from collector.client import Client
from collector.store import Store
from collector.store.upkeep.rollup_check import differences

SPANS_A_TRACE = 8
_BODIES_A_ROUND = 600
"""More than can be stored before the kill, so that the collector is never idle when killed."""
_RECOVERS_WITHIN_S = 60.0

Check = Callable[[str], object]
"""Called with the database's URL after each round's resend, while the collector is running.

Raises `AssertionError` if data derived from the spans does not match them.
"""


@dataclass(slots=True)
class Load:
    """Senders that post until they are stopped, or until the collector does not answer."""

    url: str
    bodies: Iterator[Body]
    attempted: list[Body] = field(default_factory=list)
    acknowledged: set[Identity] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def spans(self) -> set[Identity]:
        """All spans that were sent, acknowledged or not."""
        return {span for body in self.attempted for span in body.spans}

    def work(self) -> None:
        """Send one body after the other; retry a body while it gets a retryable refusal."""
        connection = connect(self.url)
        with (
            contextlib.suppress(OSError, http.client.HTTPException),
            contextlib.closing(connection),
        ):
            while not self.ended.is_set():
                with self.lock:
                    if (body := next(self.bodies, None)) is None:
                        return
                    self.attempted.append(body)
                while not self._accepted(connection, body) and not self.ended.is_set():
                    time.sleep(0.1)

    def _accepted(self, connection: http.client.HTTPConnection, body: Body) -> bool:
        connection.request("POST", urlsplit(self.url).path, body.content, PROTOBUF)
        answer = connection.getresponse()
        said = answer.read()
        with self.lock:
            self.statuses[answer.status] += 1
            if answer.status == 200 and not said:
                self.acknowledged.update(body.spans)
                return True
            if answer.status not in (429, 503) or answer.headers["Retry-After"] is None:
                self.faults.append(f"{answer.status} {dict(answer.headers)} {said[:200]!r}")
        return False


@dataclass(frozen=True, slots=True)
class Round:
    """The counts of a verified round: no span lost or stored twice, no request stored in part."""

    killed: str
    acknowledged: int
    stored_after_kill: int
    """Stored spans among those that the round sent."""
    attempted: int
    refused_for_now: int


class Rounds:
    """Rounds on one database that grows."""

    def __init__(
        self,
        folder: Path,
        *,
        postgres: Postgres | None = None,
        senders: int = 4,
        seed: int = 1,
        check: Check = lambda _database_url: None,
    ) -> None:
        self._folder = folder
        self._postgres = postgres
        self._senders = senders
        self._check = check
        self._random = random.Random(seed)  # noqa: S311  # not a secret
        now = time.time_ns()
        self._spans = Spans(seed, spans_a_trace=SPANS_A_TRACE, first_start_unix_ns=now)
        self._stored: set[Identity] = set()
        self._unsent: list[Body] = []
        sqlite_url = f"sqlite:///{folder / 'draftgate.db'}"
        self.database_url = postgres.url if postgres else sqlite_url

    def run(self, rounds: int) -> Iterator[Round]:
        """Yield each round after verification; raises `AssertionError` if it fails."""
        with contextlib.ExitStack() as stack:
            address, process = stack.enter_context(self._collector())
            for number in range(rounds):
                crash = self._postgres is not None and number % 4 == 3
                load = self._load_until_killed(address, process, crash_postgres=crash)
                after_kill = self._verify_after_kill(load)
                address, process = stack.enter_context(self._collector())
                self._send_again(address, load)
                yield Round(
                    killed="postgresql and collector" if crash else "collector",
                    acknowledged=len(load.acknowledged),
                    stored_after_kill=len(after_kill & load.spans),
                    attempted=len(load.spans),
                    refused_for_now=load.statuses[429] + load.statuses[503],
                )
        assert stored_spans(self.database_url) == len(self._stored)

    def _load_until_killed(
        self, address: str, process: "subprocess.Popen[bytes]", *, crash_postgres: bool
    ) -> Load:
        made = self._bodies()
        load = Load(f"{address}/v1/traces", iter(made))
        threads = [threading.Thread(target=load.work) for _ in range(self._senders)]
        for thread in threads:
            thread.start()
        until(lambda: bool(load.acknowledged), load)
        time.sleep(self._random.uniform(0, 0.6))
        if crash_postgres:
            self._crash_postgres(load)
        for member in family(process.pid):
            member.kill()
        load.ended.set()
        for thread in threads:
            thread.join()
        assert len(load.attempted) < len(made), "all was sent before the kill"
        assert not load.faults, f"answered otherwise than 200, 429 or 503: {load.faults[:3]}"
        self._unsent = made[len(load.attempted) :]
        return load

    def _bodies(self) -> list[Body]:
        """Return a round's bodies: those that the last one did not send, and new ones."""
        sizes = (
            self._random.randrange(1, 9) * SPANS_A_TRACE
            for _ in range(_BODIES_A_ROUND - len(self._unsent))
        )
        return self._unsent + [body for size in sizes for body in self._spans.bodies(size, 1)]

    def _verify_after_kill(self, load: Load) -> set[Identity]:
        after_kill = stored_ids(self.database_url)
        lost = load.acknowledged - after_kill
        assert not lost, f"{len(lost)} acknowledged spans are not stored: {sorted(lost)[:3]}"
        assert after_kill <= self._stored | load.spans, "something is stored that was never sent"
        for body in load.attempted:
            assert attempted_whole(body, after_kill), "half of a request is stored"
        return after_kill

    def _send_again(self, address: str, load: Load) -> None:
        with Client(address, timeout_s=120) as client:
            assert shown(client, load.acknowledged) == load.acknowledged
            for body in load.attempted:
                client.post_traces(body.content)
        self._stored |= load.spans
        assert stored_ids(self.database_url) == self._stored
        self._check(self.database_url)

    def _crash_postgres(self, load: Load) -> None:
        """Kill and restart the database server, and wait until the collector stores again."""
        assert self._postgres is not None
        self._postgres.kill()
        time.sleep(self._random.uniform(0, 0.6))
        self._postgres.start()
        before = len(load.acknowledged)
        until(lambda: len(load.acknowledged) > before, load)

    def _collector(
        self,
    ) -> contextlib.AbstractContextManager[tuple[str, "subprocess.Popen[bytes]"]]:
        return collector(self.database_url, self._folder / "draftgate.log")


def until(reached: Callable[[], bool], load: Load) -> None:
    """Wait until `reached` is true; raises `AssertionError` if that takes too long."""
    deadline = time.monotonic() + _RECOVERS_WITHIN_S
    while not reached():
        assert time.monotonic() < deadline, f"no request was accepted: {dict(load.statuses)}"
        time.sleep(0.01)


def attempted_whole(body: Body, stored: set[Identity]) -> bool:
    """Return whether all of a request's spans are stored, or none."""
    return len(stored.intersection(body.spans)) in (0, len(body.spans))


def shown(client: Client, spans: set[Identity]) -> set[Identity]:
    """Return those of the spans that the API returns, each once."""
    found = [
        Identity(span.trace_id, span.span_id)
        for trace_id in {span.trace_id for span in spans}
        for span in client.trace(trace_id)
    ]
    assert len(found) == len(set(found)), "the API shows a span twice"
    return spans.intersection(found)


def stored_ids(database_url: str) -> set[Identity]:
    """Return the ids in the span table, read directly; raises `AssertionError` for duplicates."""
    engine = create_engine(database_url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                assert connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"
            rows = connection.execute(text("SELECT trace_id, span_id FROM span")).all()
    finally:
        engine.dispose()
    ids = [Identity(bytes(trace_id).hex(), bytes(span_id).hex()) for trace_id, span_id in rows]
    assert len(ids) == len(set(ids)), "a span is stored twice"
    return set(ids)


def rollups_equal_rows(database_url: str) -> None:
    """Raise `AssertionError` if rollups or pair counts do not equal the rows."""
    with Store.open(database_url) as store, store.read() as connection:
        found = [str(difference) for difference in differences(connection)]
    assert not found, f"{len(found)} rollups differ from the rows: {found[:3]}"


def main() -> None:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--as-user", help="user that runs PostgreSQL if root starts it")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="draftgate-")))
        postgres = None
        if options.database == "postgresql":
            postgres = stack.enter_context(server(folder, durable=True, user=options.as_user))
        rounds = Rounds(
            folder,
            postgres=postgres,
            senders=options.senders,
            seed=options.seed,
            check=rollups_equal_rows,
        )
        done = []
        for number, result in enumerate(rounds.run(options.rounds), 1):
            print(f"{number}: {result}", file=sys.stderr, flush=True)
            done.append(result)
    total = {
        name: sum(getattr(result, name) for result in done)
        for name in ("acknowledged", "stored_after_kill", "attempted", "refused_for_now")
    }
    print(json.dumps({"benchmark": "kill", "options": vars(options), **total}, indent=2))


if __name__ == "__main__":
    main()
