"""A collector that a team shares, as a process: keys, TLS, logs, metrics, and its end."""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from certificates import self_signed
from commands import command_of, run_to_end
from made_generations import generation_of, span_of
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from otlp_bodies import PROTOBUF, body_of
from waiting import until

from collector.client import Client, ClientError
from collector.contract import Content, encode

ANYWHERE = "0.0.0.0"  # noqa: S104  # what a team's collector listens on
JSON = {"Content-Type": "application/json"}
SECRET = "PLANTED-hunter2"


@pytest.fixture
def key_of(database_url: str) -> Callable[..., str]:
    """Make a key by the command."""

    def make(*options: str) -> str:
        done = run_to_end(command_of("keys", "create", "t", *options, "--database", database_url))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return make


@contextmanager
def serving(command: list[str]) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run the server; yield its URL on this machine and the process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"(https?)://[0-9.]+:([0-9]+)", process.stdout.readline())
        assert found is not None, process.communicate()[1]
        yield f"{found[1]}://127.0.0.1:{found[2]}", process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """End the server by SIGTERM; return its exit code and its log."""
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    return process.returncode, errors


def test_a_shared_collector_lets_in_its_keys_until_they_are_revoked(
    database_url: str, key_of: Callable[..., str]
) -> None:
    """Keys made by the command open it; one that is revoked elsewhere is refused in seconds."""
    reader = key_of("--scope", "read", "--expires", "90d")
    at = ("--database", database_url, "--port", "0", "--host", ANYWHERE)
    with serving(command_of("serve", *at)) as (url, process):
        with Client(url) as client, pytest.raises(ClientError, match="401 Unauthorized: no API"):
            client.rollouts()
        with Client(url, key=reader) as client:
            assert client.rollouts() == ()
            assert client.about().requires_keys is True
            with pytest.raises(ClientError, match=r"403 Forbidden: .* lacks the scope ingest"):
                client.post_traces(b"")
        added = key_of("--scope", "ingest", "--rate", "0.01")  # while it runs
        with Client(url, key=added) as client:
            client.post_traces(b"")
            with pytest.raises(ClientError, match="429 Too Many Requests"):
                client.post_traces(b"")
        id_ = reader[4:12]
        done = run_to_end(command_of("keys", "revoke", id_, "--database", database_url))
        assert done.stdout == f"key {id_} (t) is revoked\n"
        with Client(url, key=reader) as client:

            def refused() -> str:
                try:
                    return str(client.rollouts() or "")
                except ClientError as exc:
                    return str(exc)

            assert f"401 Unauthorized: the API key {id_} was revoked" in until(refused)
        code, errors = ended(process)
    assert code == 0
    assert f" warning collector.cli.serve: listening on {ANYWHERE} without TLS: " in errors
    assert reader[13:] not in errors
    listed = json.loads(
        run_to_end(command_of("keys", "list", "--json", "--database", database_url)).stdout
    )
    assert {(row["scopes"][0], row["state"]) for row in listed} == {
        ("read", "revoked"),
        ("ingest", "usable"),
    }
    assert all(row["last_used"] for row in listed)  # stored at the end


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["create", "n"], "Missing option '--scope'"),
        (["create", "n", "--scope", "all"], "'all' is not one of"),
        (
            ["create", "n", "--scope", "read", "--expires", "soon"],
            "error: --expires soon: wanted a number with s, m, h, d or w",
        ),
        (["revoke", "00000000"], "error: 00000000: no key has this id"),
    ],
)
def test_an_unusable_key_option_is_told(options: list[str], words: str, database_url: str) -> None:
    """Exit code 2, and no key is made."""
    done = run_to_end([*command_of("keys", *options), "--database", database_url])
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    listed = run_to_end(command_of("keys", "list", "--json", "--database", database_url))
    assert json.loads(listed.stdout) == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a self-signed certificate for 127.0.0.1 with its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def test_https_with_a_certificate_of_ones_own(
    database_url: str, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client and a stock exporter that trust it get through; one that does not is told."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # would win over the exporter's option
        monkeypatch.delenv(name, raising=False)
    cert, key = certificate
    at = ("--database", database_url, "--port", "0", "--tls-cert", str(cert), "--tls-key", str(key))
    with serving(command_of("serve", *at)) as (url, process):
        assert url.startswith("https://")
        with Client(url, ca_file=cert) as client:
            provider = TracerProvider(shutdown_on_exit=False)
            exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces", certificate_file=str(cert))
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            with provider.get_tracer("t").start_as_current_span("chat") as span:
                span.set_attributes({"gen_ai.operation.name": "chat", "draftgate.rollout": "r"})
                span.set_attribute("draftgate.arm", "baseline")
            provider.shutdown()
            assert [overview.rollout for overview in client.rollouts()] == ["r"]
        with Client(url) as client, pytest.raises(ClientError, match="CERTIFICATE_VERIFY_FAILED"):
            client.rollouts()
        assert ended(process)[0] == 0
    with pytest.raises(ClientError, match=r"no\.pem: cannot be used as CA certificates"):
        Client(url, ca_file="no.pem")


def test_an_unusable_certificate_is_named(
    database_url: str, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    """Exit code 2 and one line, before anything listens."""
    cert = str(certificate[0])
    for options, words in (
        (["--tls-cert", cert], "HTTPS needs --tls-cert and --tls-key"),
        (["--tls-cert", cert, "--tls-key", f"{tmp_path}/no"], f"--tls-key {tmp_path}/no: cannot"),
        (["--tls-cert", cert, "--tls-key", cert], f"--tls-key {cert}: cannot be used"),
    ):
        done = run_to_end(command_of("serve", "--database", database_url, "--port", "0", *options))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


def test_no_content_in_logs_or_errors(database_url: str) -> None:
    """A secret in content, in an attribute of the wrong type, in bodies that cannot be read."""
    spans = [
        encode(generation_of(1, content=Content(input_messages=SECRET, reference=SECRET))),
        span_of(
            2,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.usage.output_tokens": SECRET,
                "draftgate.context": SECRET,
            },
        ),
    ]
    bodies: list[tuple[dict[str, str], bytes]] = [
        (PROTOBUF, body_of(spans)),
        (PROTOBUF, body_of(spans)[:-3]),
        (JSON, b'{"resourceSpans": "' + SECRET.encode() + b'"}'),
        (
            JSON,
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": "'
            + SECRET.encode()
            + b'"}]}]}]}',
        ),
        (
            JSON,
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": [{"key": "a", '
            b'"value": {"stringValue": {"' + SECRET.encode() + b'": 1}}}]}]}]}]}',
        ),
        (JSON, b'{"a": ' + SECRET.encode()),
        (JSON | {"Content-Encoding": "gzip"}, SECRET.encode()),
    ]
    at = ("--database", database_url, "--port", "0", "--capture-content")
    logs = ("--log-level", "debug", "--log-format", "json")
    with serving(command_of("serve", *at, *logs)) as (url, process):
        statuses = []
        for headers, body in bodies:
            answer = httpx.post(f"{url}/v1/traces", content=body, headers=headers)
            statuses.append(answer.status_code)
            assert SECRET.encode() not in answer.content
        httpx.get(f"{url}/api/v1/generations?rollout={SECRET}&limit=x")
        code, errors = ended(process)
    assert statuses == [200, 400, 400, 400, 400, 400, 400]
    assert code == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    assert [line["status"] for line in lines if line["message"] == "request"] == [*statuses, 422]
    assert {line["route"] for line in lines} == {"/v1/traces", "/api/v1/generations"}
    assert len({line["request_id"] for line in lines}) == len(lines)
    assert SECRET not in errors


def test_metrics_count_what_happened(http: httpx.Client) -> None:
    """Spans by their fate, flags, requests by route, and the gauges of the scrape."""
    good, flagged, bad = (
        encode(generation_of(1)),
        encode(generation_of(2, ttft_s=-1.0)),
        encode(generation_of(0)),
    )
    for sent in ([good], [good, flagged, bad]):
        assert http.post("/v1/traces", content=body_of(sent), headers=PROTOBUF).is_success
    http.get("/api/v1/traces/nothing")
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    values = {
        name: float(value)
        for name, value in re.findall(r"^(\S+) (\S+)$", answer.text, re.MULTILINE)
    }
    assert values["draftgate_spans_received_total"] == 4
    assert values["draftgate_spans_stored_total"] == 2
    assert values["draftgate_spans_duplicate_total"] == 1
    assert values['draftgate_spans_rejected_total{reason="trace_id"}'] == 1
    assert (
        sum(v for k, v in values.items() if k.startswith("draftgate_quality_violations_total{"))
        == 1
    )
    assert values['draftgate_requests_total{method="POST",route="/v1/traces",status="200"}'] == 2
    route = "/api/v1/traces/{trace_id}"
    assert values[f'draftgate_requests_total{{method="GET",route="{route}",status="422"}}'] == 1
    assert values["draftgate_commit_duration_seconds_count"] == 2
    assert values["draftgate_ingest_queue_bytes"] == 0
    assert values["draftgate_store_size_bytes"] > 0


def test_storing_that_fails_and_works_again_is_two_lines(database_url: str) -> None:
    """However often senders try meanwhile."""
    file = Path(database_url.removeprefix("sqlite:///"))
    body = body_of([encode(generation_of(1))])
    with serving(command_of("serve", "--database", database_url, "--port", "0")) as (url, process):
        moved = file.rename(file.with_suffix(".away"))
        for _ in range(3):
            sent = httpx.post(f"{url}/v1/traces", content=body, headers=PROTOBUF)
            assert sent.status_code == 503
        moved.rename(file)
        assert httpx.post(f"{url}/v1/traces", content=body, headers=PROTOBUF).status_code == 200
        code, errors = ended(process)
    assert code == 0
    ours = [line for line in errors.splitlines() if "collector.ingest.queue" in line]
    assert len(ours) == 2
    assert (
        " warning collector.ingest.queue: storing fails, senders are told to come again: "
        in ours[0]
    )
    assert ours[1].endswith(" info collector.ingest.queue: storing works again")


def test_an_unusable_redaction_file_stops_the_start(database_url: str, tmp_path: Path) -> None:
    """A collector that would keep text unredacted does not start."""
    file = tmp_path / "r.yaml"
    file.write_text("patterns: {x: '('}")
    at = ("--database", database_url, "--port", "0", "--capture-content", "--redaction", str(file))
    done = run_to_end(command_of("serve", *at))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {file}: patterns.x: is no regular expression: ")
