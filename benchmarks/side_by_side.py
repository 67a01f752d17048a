"""Several collectors on one PostgreSQL: in each round one is killed and one is paused under load.

Senders spread their requests over the collectors, like a load balancer, and retry unanswered or
refused requests on another collector until one acknowledges them. Each round, one random collector
is killed and restarted, and another is paused (SIGSTOP) for a while. Then everything sent must be
stored, each span once and each request completely, and rollups and pair counts must equal the rows.
Prints one JSON document last.

    python benchmarks/side_by_side.py --collectors 3 --rounds 5
"""

import argparse
import contextlib
import http.client
import json
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.kill import attempted_whole, rollups_equal_rows, stored_ids
from benchmarks.load.processes import cpu_s, family
from benchmarks.load.sender import PROTOBUF
from benchmarks.load.spans import Body, Identity, Spans
from benchmarks.load.targets import Postgres, collector, free_port, server

SPANS_A_TRACE = 8
_BODIES_A_ROUND = 120
_ANSWERED_WITHIN_S = 4.0
_ENV = {"DRAFTGATE_BUSY_TIMEOUT_S": "2"}


class Member:
    """One collector with a fixed port, which can be killed and restarted."""

    def __init__(self, database_url: str, log: Path) -> None:
        self._database_url, self._log, self._port = database_url, log, free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.cpu_s = 0.0
        """CPU time of its ended processes."""
        self._running = contextlib.ExitStack()
        self.start()

    def start(self) -> None:
        """Start the collector."""
        _, self.process = self._running.enter_context(
            collector(self._database_url, self._log, env=_ENV, port=self._port)
        )

    def kill(self) -> None:
        """Kill the collector with SIGKILL."""
        members = family(self.process.pid)
        self.cpu_s += cpu_s(members)
        for member in members:
            member.kill()
        self.process.wait(timeout=30)

    def pause(self, for_s: float) -> None:
        """Stop the collector's process for `for_s` seconds, then continue it."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(for_s)
        finally:
            self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop the collector with SIGTERM."""
        self.cpu_s += cpu_s(family(self.process.pid))
        self._running.close()


@dataclass(slots=True)
class Spread:
    """Senders that try one collector after another until a request is acknowledged."""

    urls: list[str]
    bodies: Iterator[Body]
    seed: int
    acknowledged: set[Identity] = field(default_factory=set)
    sent: list[Body] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    """Responses by status, `none` without a response."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set if a round failed, to stop all senders."""

    def work(self) -> None:
        """Send one body after the other; repeat each until it is acknowledged."""
        draw = random.Random(self.seed + threading.get_ident())  # noqa: S311  # not a secret
        while not self.ended.is_set():
            with self.lock:
                if (body := next(self.bodies, None)) is None:
                    return
                self.sent.append(body)
            while (answer := _answer(draw.choice(self.urls), body)) != "200":
                with self.lock:
                    self.answers[answer] += 1
                if self.ended.wait(0.05):
                    return
            with self.lock:
                self.answers[answer] += 1
                self.acknowledged.update(body.spans)


def _answer(url: str, body: Body) -> str:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=_ANSWERED_WITHIN_S
    )
    try:
        connection.request("POST", "/v1/traces", body.content, PROTOBUF)
        answer = connection.getresponse()
        said = answer.read()
    except (OSError, http.client.HTTPException):
        return "none"
    finally:
        connection.close()
    assert answer.status in (200, 429, 503), f"{answer.status}: {said[:200]!r}"
    assert answer.status != 200 or not said, f"part of a request was refused: {said[:200]!r}"
    return str(answer.status)


@dataclass(frozen=True, slots=True)
class Round:
    """The counts of a verified round: no span lost or stored twice, no request stored in part."""

    acknowledged: int
    requests: int
    unanswered: int
    """Requests that a killed or paused collector did not answer; they were retried elsewhere."""
    refused_for_now: int
    paused_s: float


class Team:
    """Collectors side by side on one database that grows."""

    def __init__(
        self,
        folder: Path,
        postgres: Postgres,
        *,
        collectors: int = 3,
        senders: int = 4,
        seed: int = 1,
    ) -> None:
        self.database_url = postgres.url
        self._senders, self._seed = senders, seed
        self._random = random.Random(seed)  # noqa: S311  # not a secret
        now = time.time_ns()
        self._spans = Spans(seed, spans_a_trace=SPANS_A_TRACE, first_start_unix_ns=now)
        self._stored: set[Identity] = set()
        self.members = [
            Member(self.database_url, folder / f"collector{number}.log")
            for number in range(collectors)
        ]

    def run(self, rounds: int) -> Iterator[Round]:
        """Yield each round after verification; raises `AssertionError` if it fails."""
        for number in range(rounds):
            load, paused_s = self._round(self._seed + number)
            self._stored |= load.acknowledged
            stored = stored_ids(self.database_url)
            assert all(attempted_whole(body, stored) for body in load.sent), "half a request"
            assert stored == self._stored, "acknowledged and stored differ"
            rollups_equal_rows(self.database_url)
            yield Round(
                acknowledged=len(load.acknowledged),
                requests=sum(load.answers.values()),
                unanswered=load.answers["none"],
                refused_for_now=load.answers["429"] + load.answers["503"],
                paused_s=paused_s,
            )

    def stop(self) -> None:
        """Stop every collector."""
        for member in self.members:
            member.stop()

    def _round(self, seed: int) -> tuple[Spread, float]:
        sizes = (self._random.randrange(1, 9) * SPANS_A_TRACE for _ in range(_BODIES_A_ROUND))
        made = [body for size in sizes for body in self._spans.bodies(size, 1)]
        load = Spread([member.url for member in self.members], iter(made), seed)
        threads = [threading.Thread(target=load.work) for _ in range(self._senders)]
        for thread in threads:
            thread.start()
        try:
            while not load.acknowledged:
                time.sleep(0.01)
            time.sleep(self._random.uniform(0, 0.5))
            killed, paused = self._random.sample(self.members, 2)
            killed.kill()
            # Sometimes longer than the timeout for a silent writer.
            paused_s = self._random.uniform(0.5, 6.0)
            paused.pause(paused_s)
            killed.start()
        except BaseException:
            load.ended.set()
            raise
        for thread in threads:
            thread.join()
        assert len(load.sent) == len(made), "a sender gave up"
        return load, paused_s


def main() -> None:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collectors", type=int, default=3)
    parser.add_argument("--as-user", help="user that runs PostgreSQL if root starts it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="draftgate-")))
        postgres = stack.enter_context(server(folder, durable=True, user=options.as_user))
        team = Team(
            folder,
            postgres,
            collectors=options.collectors,
            senders=options.senders,
            seed=options.seed,
        )
        stack.callback(team.stop)
        done = []
        for number, result in enumerate(team.run(options.rounds), 1):
            print(f"{number}: {result}", file=sys.stderr, flush=True)
            done.append(result)
    names = ("acknowledged", "requests", "unanswered", "refused_for_now")
    total = {name: sum(getattr(result, name) for result in done) for name in names}
    print(json.dumps({"benchmark": "side_by_side", "options": vars(options), **total}, indent=2))


if __name__ == "__main__":
    main()
