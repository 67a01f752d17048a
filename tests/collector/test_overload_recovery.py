"""The overload's recovery is asked for from the moment at which its load ends."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.load.recovery import Probe
from benchmarks.load.sender import Plan
from benchmarks.overload import offering

_LONG_S = 60.0


@contextmanager
def _answering(statuses: Iterator[int]) -> Iterator[str]:
    """Answer requests by the script, 200 after its end; give where."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                first = next(numbers) == 0
            status = 200 if first else next(statuses, 200)
            if first:  # until another one has been accepted
                assert accepted.wait(_LONG_S)
            elif status == 200:
                accepted.set()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, *_: object, **__: object) -> None:
            """Say nothing."""

    numbers, accepted = iter(range(10**6)), threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/traces"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_recovery_is_seen_while_the_load_still_waits_for_answers() -> None:
    """Requests that the load left behind, and its result, do not hold the first question up.

    The load's one request is answered only once a later one was accepted, so that whoever asked
    after it would ask in vain; what is refused before is asked again.
    """
    with _answering(iter((503, 503))) as url:
        plan = Plan(
            url=url, batch=2, batches=1, seed=2, senders=1, first_start_unix_ns=time.time_ns()
        )
        probe = Probe(url, batch=2)
        with offering(plan, rate=1.0, seconds=1.0) as load:
            recovered = probe.recover(load.ends_s, within_s=_LONG_S)
            offered = load.result()
    assert 0 < recovered.first_accepted_after_s == recovered.normal_after_s
    assert offered.statuses == {200: 1}
    assert len(offered.acknowledged) == 2
    assert offered.answered_s > load.ends_s
