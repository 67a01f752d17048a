"""OTLP over gRPC: stored rows, responses and refusals."""

import contextlib
import gzip
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest
from commands import command_of, run_to_end
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from made_generations import generation_of
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from otlp_bodies import body_of, export_request, logs_request, metrics_request
from sqlite_database import locked, trace_ids
from waiting import until, until_queued

from collector.client import Client
from collector.contract import encode

Serve = Callable[..., Any]

MIB = 1024 * 1024
SERVICES = {"traces": "trace.v1.Trace", "logs": "logs.v1.Logs", "metrics": "metrics.v1.Metrics"}
BIG = [("grpc.max_send_message_length", -1)]


@contextlib.contextmanager
def exporting(server: Any) -> Iterator[Callable[..., bytes]]:
    """Call `Export` with bytes, and get bytes."""
    with grpc.insecure_channel(server.grpc, options=BIG) as channel:

        def export(body: bytes, sent: str = "traces", **options: Any) -> bytes:
            method = f"/opentelemetry.proto.collector.{SERVICES[sent]}Service/Export"
            answer: bytes = channel.unary_unary(method)(body, timeout=60, **options)
            return answer

        yield export


def refusal(export: Callable[..., bytes], *arguments: Any, **options: Any) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        export(*arguments, **options)
    return caught.value


def code_of(export: Callable[..., bytes], *arguments: Any) -> grpc.StatusCode | None:
    """Return the code of a refusal; None if the export is stored."""
    try:
        export(*arguments)
    except grpc.RpcError as error:
        return error.code()
    return None


def bodies() -> dict[str, Any]:
    """Return a request of each signal, all of which are stored."""
    ids = {"trace_id": b"t" * 16, "span_id": b"s" * 8}
    result = {
        "gen_ai.evaluation.name": "relevance",
        "gen_ai.evaluation.score.value": 0.5,
        "list": ("a", {"b": 1}),
    }
    event = {**ids, "event_name": "gen_ai.evaluation.result", "attributes": result}
    label = {"key": "model", "value": {"stringValue": "m"}}
    point = {"timeUnixNano": "7", "asDouble": 0.5, "attributes": [label]}
    gauge = {"name": "vllm:kv_cache_usage_perc", "gauge": {"dataPoints": [point]}}
    return {
        "traces": export_request([encode(generation_of(1))]),
        "logs": logs_request([event], resource={"service.name": "s"}),
        "metrics": metrics_request([gauge], resource={"service.name": "s"}),
    }


def test_what_grpc_stores_is_what_http_stores(serve: Serve, database_url: str) -> None:
    """The same bytes sent both ways are stored once, and one that a span rejects is named."""
    server = serve(database_url)
    requests = bodies()
    rejected = requests["traces"].resource_spans[0].scope_spans[0].spans.add(name="no ids")
    with exporting(server) as export, httpx.Client(base_url=server.url) as http:
        for sent, request in requests.items():
            body = request.SerializeToString()
            headers = {"Content-Type": "application/x-protobuf"}
            assert (
                export(body, sent)
                == export(body, sent, compression=grpc.Compression.Gzip)
                == export(body, sent, compression=grpc.Compression.Deflate)
                == http.post(f"/v1/{sent}", content=body, headers=headers).content
            )
        answer = export(requests["traces"].SerializeToString())
    assert rejected.name == "no ids"
    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    assert partial.rejected_spans == 1
    assert partial.error_message.startswith("1 × trace_id: wanted 16 bytes")
    with Client(server.url) as client:
        assert list(client.generations("k4")) == [generation_of(1)]
        assert len(list(client.samples("vllm:kv_cache_usage_perc"))) == 1


@pytest.mark.parametrize("sent", SERVICES)
def test_a_truncated_body_is_the_senders_fault(
    sent: str, module_serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Cut at every seventh byte, over HTTP and gRPC, in both encodings and gzipped: never a 5xx."""
    server = module_serve(f"sqlite:///{tmp_path_factory.mktemp('cut') / 'x.db'}")
    body = bodies()[sent].SerializeToString()
    from google.protobuf import json_format

    as_json = json_format.MessageToJson(bodies()[sent]).encode()
    seen = set()
    with exporting(server) as export, httpx.Client(base_url=server.url) as http:
        for whole, type_, coding in (
            (body, "application/x-protobuf", "identity"),
            (gzip.compress(body), "application/x-protobuf", "gzip"),
            (as_json, "application/json", "identity"),
        ):
            headers = {"Content-Type": type_, "Content-Encoding": coding}
            for end in range(0, len(whole), 7):
                answer = http.post(f"/v1/{sent}", content=whole[:end], headers=headers)
                assert answer.status_code in (200, 400), answer.content
                assert answer.headers["content-type"] == type_
                seen.add(answer.status_code)
        codes = {code_of(export, body[:end], sent) for end in range(0, len(body), 7)}
    assert codes == {None, grpc.StatusCode.INVALID_ARGUMENT}
    assert 400 in seen


def test_a_message_beyond_the_limit_is_not_to_be_sent_again(
    serve: Serve, database_url: str
) -> None:
    """RESOURCE_EXHAUSTED without RetryInfo, for its size as sent and as inflated."""
    server = serve(database_url, env={"DRAFTGATE_MAX_BODY_BYTES": "1000"})
    with exporting(server) as export:
        for options in ({}, {"compression": grpc.Compression.Gzip}):
            error = refusal(export, bytes(1001), **options)
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "google.rpc.retryinfo-bin" not in dict(error.trailing_metadata())
        assert export(b"") == b""


@pytest.mark.slow
def test_a_bomb_over_grpc_holds_no_more_than_the_limit(serve: Serve, database_url: str) -> None:
    """A gigabyte of zeros, a thousand times smaller on the wire, is stopped while inflating."""
    server = serve(database_url, env={"DRAFTGATE_MAX_BODY_BYTES": str(64 * MIB)})
    with exporting(server) as export:
        assert export(b"") == b""
        before = peak(server.process.pid)
        error = refusal(export, bytes(1024 * MIB), compression=grpc.Compression.Gzip)
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert peak(server.process.pid) - before < (64 + 32) * MIB


def peak(pid: int) -> int:
    """Return the most memory that the process has held, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def test_garbage_is_an_invalid_argument(serve: Serve, database_url: str) -> None:
    """The status names the expected value, in the trailers too."""
    server = serve(database_url)
    with exporting(server) as export:
        error = refusal(export, b"garbage", "logs")
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "is no ExportLogsServiceRequest in protobuf" in error.details()
        status = Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
        assert (status.code, status.message) == (3, error.details())


def test_a_locked_database_is_unavailable_and_then_works(serve: Serve, database_url: str) -> None:
    """Senders are told when to come again, as the SDKs and as gRPC read it."""
    server = serve(database_url, env={"DRAFTGATE_BUSY_TIMEOUT_S": "0.2"})
    body = body_of([encode(generation_of(1))])
    with exporting(server) as export:
        with locked(database_url):
            error = refusal(export, body)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        trailers = dict(error.trailing_metadata())
        retry = RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"])
        assert retry.retry_delay.seconds == 1
        (detail,) = Status.FromString(trailers["grpc-status-details-bin"]).details
        assert detail.Is(RetryInfo.DESCRIPTOR)
        assert export(body) == b""


def test_a_full_queue_is_unavailable(serve: Serve, database_url: str) -> None:
    """What HTTP holds in the queue leaves gRPC no room, and what fitted is stored."""
    body = body_of([encode(generation_of(1))])
    server = serve(database_url, env={"DRAFTGATE_MAX_QUEUE_BYTES": str(len(body) + 1)})
    answers: list[int] = []

    def send() -> None:
        headers = {"Content-Type": "application/x-protobuf"}
        answer = httpx.post(f"{server.url}/v1/traces", content=body, headers=headers)
        answers.append(answer.status_code)

    with exporting(server) as export:
        with locked(database_url):
            sender = threading.Thread(target=send)
            sender.start()
            until_queued(server.url)
            error = refusal(export, body)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "raise DRAFTGATE_MAX_QUEUE_BYTES" in error.details()
        sender.join()
    assert answers == [200]


def test_sigterm_loses_nothing_acknowledged(serve: Serve, database_url: str) -> None:
    """Exports in flight are answered and stored; later ones are told to come again."""
    server = serve(database_url)
    acknowledged: set[str] = set()
    codes: list[Any] = []

    def send(sender: int) -> None:
        with exporting(server) as export:
            for batch in range(10_000):
                first = 1 + 10 * (sender + 8 * batch)
                spans = [encode(generation_of(n)) for n in range(first, first + 10)]
                code = code_of(export, body_of(spans))
                if code is not None:
                    codes.append(code)
                    return
                acknowledged.update(span.trace_id for span in spans)

    senders = [threading.Thread(target=send, args=(n,)) for n in range(8)]
    for thread in senders:
        thread.start()
    until(lambda: len(acknowledged) >= 200)
    server.process.send_signal(signal.SIGTERM)
    for thread in senders:
        thread.join()
    _, errors = server.process.communicate()
    assert (server.process.returncode, errors) == (0, "")
    # OTLP has senders try again after either.
    assert set(codes) <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert len(codes) == 8
    assert acknowledged - trace_ids(database_url) == set()


def test_an_export_that_waits_at_sigterm_is_answered(serve: Serve, database_url: str) -> None:
    """It waits for a lock while the server is asked to stop; it is stored, then answered."""
    server = serve(database_url)
    answers: list[bytes] = []
    with exporting(server) as export:
        sender = threading.Thread(
            target=lambda: answers.append(export(body_of([encode(generation_of(1))])))
        )
        with locked(database_url):
            sender.start()
            until_queued(server.url)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
        sender.join()
    _, errors = server.process.communicate()
    assert (answers, server.process.returncode, errors) == ([b""], 0, "")
    assert len(trace_ids(database_url)) == 1


def test_a_port_in_use_is_one_line_and_no_database(database_url: str) -> None:
    """Exit code 2, and both ways out are named."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = run_to_end(
            command_of("serve", "--database", database_url, "--port", "0", "--grpc-port", port)
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "stop what runs there, pass another --grpc-port, or --no-grpc to do without gRPC\n"
    )
    assert not Path(database_url.removeprefix("sqlite:///")).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "env"), [(["--no-grpc"], {}), ([], {"DRAFTGATE_GRPC_PORT": "off"})]
)
def test_grpc_can_be_left_out(options: list[str], env: dict[str, str], database_url: str) -> None:
    """The server then listens on one port alone, and says nothing of gRPC."""
    process = subprocess.Popen(
        command_of("serve", "--database", database_url, "--port", "0", *options),
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    connections = psutil.Process(process.pid).net_connections("tcp")
    process.terminate()
    process.communicate()
    assert [line.split(" at ")[0] for line in lines] == ["OTLP over HTTP", "API described"]
    assert len([found for found in connections if found.status == "LISTEN"]) == 1


def half_message(address: str) -> socket.socket:
    """Begin an export over a connection of its own, and send a part of its message."""

    def literal(name: bytes, value: bytes) -> bytes:
        return b"\x10" + bytes([len(name)]) + name + bytes([len(value)]) + value

    def frame(kind: int, flags: int, stream: int, inside: bytes) -> bytes:
        return (
            len(inside).to_bytes(3, "big")
            + bytes([kind, flags])
            + stream.to_bytes(4, "big")
            + inside
        )

    head = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": b"/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        b":authority": b"x",
        b"content-type": b"application/grpc",
        b"te": b"trailers",
    }
    host, port = address.rsplit(":", 1)
    bare = socket.create_connection((host, int(port)))
    bare.sendall(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(4, 0, 0, b"")
        + frame(1, 4, 1, b"".join(literal(*item) for item in head.items()))
        + frame(0, 0, 1, b"\0" + (100_000).to_bytes(4, "big") + bytes(1000))
    )
    return bare


@pytest.mark.slow
def test_half_messages_and_silent_connections_keep_nobody_out(
    serve: Serve, database_url: str
) -> None:
    """Whoever sends a whole message is answered, however many do not; the silent are closed."""
    server = serve(database_url)
    host, port = server.grpc.rsplit(":", 1)
    body = bodies()["traces"].SerializeToString()
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
        for _ in range(300):
            stack.enter_context(half_message(server.grpc))
        with exporting(server) as export:
            export(body)
        while silent.recv(65536):
            pass


@pytest.mark.slow
def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(serve: Serve, database_url: str) -> None:
    """A message that is more than a body may be, inflated, is not inflated whole."""
    server = serve(database_url)
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    with exporting(server) as export:
        error = refusal(export, bytes(600 * MIB), compression=grpc.Compression.Gzip)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert process.memory_info().rss - before < 300 * MIB
