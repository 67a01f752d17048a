"""Acknowledged means committed: through kills, locks, full disks and floods."""

import contextlib
import http.client
import os
import random
import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from collector_in_process import http_of
from commands import command_of, run_to_end
from google.rpc.status_pb2 import Status
from made_generations import generation_of
from otlp_bodies import PROTOBUF, body_of
from sqlite_database import locked, trace_ids
from waiting import until, until_queued

from collector.contract import encode
from collector.settings import Settings

Serve = Callable[..., Any]

QUICK = {"DRAFTGATE_BUSY_TIMEOUT_S": "0.2"}
SENDERS = 4


@pytest.mark.parametrize("seed", range(3))
def test_nothing_acknowledged_is_lost_to_sigkill(
    seed: int, serve: Serve, database_url: str
) -> None:
    """Killed at a random moment under load, the server has stored all that it acknowledged."""
    server = serve(database_url)
    acknowledged: set[str] = set()

    def send(sender: int) -> None:
        with contextlib.suppress(httpx.TransportError), httpx.Client() as http:
            for batch in range(10_000):
                first = 1 + 10 * (sender + SENDERS * batch)
                spans = [encode(generation_of(n)) for n in range(first, first + 10)]
                body = body_of(spans)
                answer = http.post(f"{server.url}/v1/traces", content=body, headers=PROTOBUF)
                assert answer.status_code == 200
                acknowledged.update(span.trace_id for span in spans)

    senders = [threading.Thread(target=send, args=(n,)) for n in range(SENDERS)]
    for thread in senders:
        thread.start()
    until(lambda: len(acknowledged) >= 40)
    time.sleep(random.Random(seed).uniform(0, 0.7))  # noqa: S311  # no secret
    server.kill()
    for thread in senders:
        thread.join()
    stored = trace_ids(database_url)
    assert acknowledged - stored == set()
    # A batch is whole or absent: what was not acknowledged came in tens too.
    assert len(stored) % 10 == 0


def test_sigterm_answers_what_was_sent_and_exits_0(serve: Serve, database_url: str) -> None:
    """A request that waits for a lock while the server is asked to stop is stored and answered."""
    server = serve(database_url)
    body = body_of([encode(generation_of(1))])
    answers: list[int] = []

    def send() -> None:
        answer = httpx.post(f"{server.url}/v1/traces", content=body, headers=PROTOBUF)
        answers.append(answer.status_code)

    with locked(database_url):
        sender = threading.Thread(target=send)
        sender.start()
        until_queued(server.url)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
    sender.join()
    _, errors = server.process.communicate()
    assert (answers, server.process.returncode, errors) == ([200], 0, "")
    assert len(trace_ids(database_url)) == 1


def test_a_locked_database_is_503_and_then_works(serve: Serve, database_url: str) -> None:
    """While another process writes, senders are told to come again, and reads go on."""
    server = serve(database_url, env=QUICK)
    body = body_of([encode(generation_of(1))])
    with httpx.Client(base_url=server.url) as http:
        with locked(database_url):
            answer = http.post("/v1/traces", content=body, headers=PROTOBUF)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert b"database is locked; another process is writing to it" in answer.content
            refused = http.post("/api/v1/scores", json=[score("1" * 32)])
            assert (refused.status_code, refused.json()["title"]) == (503, "Service Unavailable")
            assert http.get("/readyz").status_code == 200
        assert http.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
    assert len(trace_ids(database_url)) == 1
    assert server.stop() == 0


def test_a_full_disk_is_503_and_then_works(serve: Serve, database_url: str) -> None:
    """With no room to write the server answers and lives; with room again it stores."""
    server = serve(database_url)
    with httpx.Client(base_url=server.url) as http:

        def post(first: int) -> int:
            spans = [encode(generation_of(n)) for n in range(first, first + 200)]
            answer = http.post("/v1/traces", content=body_of(spans), headers=PROTOBUF)
            return answer.status_code

        assert post(1) == 200
        # The kernel refuses to let any file of the server grow, as a full disk does.
        size = Path(database_url.removeprefix("sqlite:///") + "-wal").stat().st_size
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, size * 100))
        assert [post(1000 * n) for n in range(1, 4)] == [503, 503, 503]
        assert http.get("/api/v1/rollouts").json()["rollouts"][0]["candidate_generations"] == 200
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size * 100, size * 100))
        assert post(1000) == 200
    assert len(trace_ids(database_url)) == 400


def test_a_full_database_is_503(database_url: str) -> None:
    """SQLite's own "full" says to free some space, and nothing of the request is stored."""
    with http_of(Settings(database_url=database_url)) as http:
        store = http._transport._app.state.collector.store  # type: ignore[attr-defined]
        with store.read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        from sqlalchemy import event

        def limit(connection: sqlite3.Connection, *_: Any) -> None:
            connection.execute(f"PRAGMA max_page_count = {pages + 2}")

        event.listen(store.engine, "checkout", limit)
        spans = [encode(generation_of(n)) for n in range(1, 500)]
        answer = http.post("/v1/traces", content=body_of(spans), headers=PROTOBUF)
        assert answer.status_code == 503
        assert b"database or disk is full; free some space" in answer.content
    assert trace_ids(database_url) == set()


def test_a_database_that_was_deleted_is_503(serve: Serve, database_url: str) -> None:
    """Nothing is acknowledged into a file that no longer has a name."""
    server = serve(database_url)
    for file in Path(database_url.removeprefix("sqlite:///")).parent.iterdir():
        file.unlink()
    body = body_of([encode(generation_of(1))])
    answer = httpx.post(f"{server.url}/v1/traces", content=body, headers=PROTOBUF)
    assert answer.status_code == 503
    assert b"the collector's log says why" in answer.content
    assert database_url.removeprefix("sqlite:///").encode() not in answer.content
    server.process.terminate()
    _, errors = server.process.communicate()
    assert "was deleted or replaced; put it back, or restart" in errors
    assert server.process.returncode == 0


def test_a_full_queue_is_503_and_then_works(database_url: str) -> None:
    """While as much waits as the queue may hold, senders are told to come again."""
    bodies = [body_of([encode(generation_of(n))]) for n in range(1, 7)]
    settings = Settings(database_url=database_url, max_queue_bytes=len(bodies[0]) * 2)
    answers: list[httpx.Response] = []
    with http_of(settings) as http:

        def send(body: bytes) -> None:
            answers.append(http.post("/v1/traces", content=body, headers=PROTOBUF))

        with locked(database_url):
            senders = [threading.Thread(target=send, args=(body,)) for body in bodies]
            for thread in senders:
                thread.start()
            until(lambda: len(answers) >= 4)
            assert {answer.status_code for answer in answers} == {503}
            assert {answer.headers["retry-after"] for answer in answers} == {"1"}
            assert b"raise DRAFTGATE_MAX_QUEUE_BYTES" in answers[0].content
        for thread in senders:
            thread.join()
        assert sorted(answer.status_code for answer in answers) == [200, 200, 503, 503, 503, 503]
        assert len(trace_ids(database_url)) == 2
        assert http.post("/v1/traces", content=bodies[5], headers=PROTOBUF).status_code == 200


def test_a_full_queue_refuses_before_the_body_is_sent(serve: Serve, database_url: str) -> None:
    """A sender that looks for an answer is spared the sending; the log says it once, not each time.

    The connection that was refused on is good for what is sent next, and so is what is sent.
    """
    server = serve(database_url, env={"DRAFTGATE_MAX_QUEUE_BYTES": "1"})
    address = httpx.URL(server.url)
    first, later = (body_of([encode(generation_of(n))]) for n in (1, 2))
    waiting = threading.Thread(
        target=httpx.post,
        args=(f"{server.url}/v1/traces",),
        kwargs={"content": first, "headers": PROTOBUF},
    )
    connection = http.client.HTTPConnection(address.host, address.port, timeout=30)
    with locked(database_url):
        waiting.start()
        until_queued(server.url)
        for _ in range(3):
            connection.putrequest("POST", "/v1/traces")
            connection.putheader("Content-Type", PROTOBUF["Content-Type"])
            connection.putheader("Content-Length", str(2**20))
            connection.endheaders()
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            assert b"bytes wait to be written" in Status.FromString(answer.read()).message.encode()
            connection.send(bytes(2**20))
    waiting.join()
    connection.request("POST", "/v1/traces", later, PROTOBUF)
    assert connection.getresponse().status == 200
    connection.close()
    assert trace_ids(database_url) == {f"{n:032x}" for n in (1, 2)}
    server.process.send_signal(signal.SIGTERM)
    _, log = server.process.communicate()
    assert log.count("more is sent than can be written: senders are told to come again") == 1
    assert "all that waited is written; 3 requests were refused" in log
    assert "status=503" not in log


def test_a_body_larger_than_the_queue_is_stored_alone(database_url: str) -> None:
    """A queue that is set too small slows senders down, but shuts none out for good."""
    body = body_of([encode(generation_of(1))])
    with http_of(Settings(database_url=database_url, max_queue_bytes=1)) as http:
        assert http.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200


def test_a_read_only_database_is_one_line_and_exit_2(database_url: str, serve: Serve) -> None:
    """A server that could store nothing does not start."""
    assert serve(database_url).stop() == 0
    file = Path(database_url.removeprefix("sqlite:///"))
    file.chmod(0o444)
    # Permissions do not bind root, so root gives up that privilege.
    bound = ["setpriv", "--bounding-set=-dac_override"] if os.getuid() == 0 else []
    done = run_to_end(
        [*bound, *command_of("serve", "--database", database_url, "--port", "0", "--no-grpc")]
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {file}: attempt to write a readonly database; "
        "make the file and its folder writable\n"
    )


def test_many_processes_may_write_one_database(serve: Serve, database_url: str) -> None:
    """Two servers on one file store everything once, whatever both are sent."""
    servers = [serve(database_url), serve(database_url)]

    def send(url: str, offset: int) -> None:
        with httpx.Client() as http:
            for batch in range(10):
                first = 1 + offset + 10 * batch
                body = body_of([encode(generation_of(n)) for n in range(first, first + 20)])
                answer = http.post(f"{url}/v1/traces", content=body, headers=PROTOBUF)
                assert answer.status_code == 200

    senders = [
        threading.Thread(target=send, args=(server.url, offset))
        for server, offset in zip(servers, (0, 5), strict=True)
    ]
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()
    assert len(trace_ids(database_url)) == 115


def score(trace_id: str) -> dict[str, Any]:
    return {
        "trace_id": trace_id,
        "span_id": "2" * 16,
        "metric": "m",
        "evaluator": "e",
        "version": "1",
        "value": 0.5,
    }
