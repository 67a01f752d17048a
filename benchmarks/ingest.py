"""How many spans the collector stores a second, and what each costs it in CPU.

A real server process on SQLite, OTLP over HTTP in protobuf, gzip as the stock exporter may send it.
Bodies are made beforehand, so that the sender costs little; the server's CPU is read from the
operating system. Plain and gzip alternate; figures are medians over the repetitions.

    python benchmarks/ingest.py --batches 40
"""

import argparse
import gzip
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from collector.contract import Arm, AttributeValue, Content, Generation, Speculation, encode

ROOT = Path(__file__).parents[1]


class Measured(NamedTuple):
    """One repetition."""

    spans_per_s: float
    cpu_us_per_span: float
    bytes_per_span: float
    """Of the database, once closed."""


def main() -> None:
    """Run the benchmark and print its document last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=512, help="spans a request")
    parser.add_argument("--batches", type=int, default=40, help="requests a repetition")
    parser.add_argument("--senders", type=int, default=2, help="connections at once")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    runs: dict[str, list[Measured]] = {"identity": [], "gzip": []}
    for repetition in range(options.repetitions):
        for coding, measured in runs.items():
            bodies = list(make_bodies(options.batch, options.batches, gzipped=coding == "gzip"))
            measured.append(measure(bodies, coding, options.batch, options.senders))
            print(f"{repetition + 1}: {coding}: {measured[-1]}", file=sys.stderr)
    print(json.dumps(document(options, runs), indent=2))


def document(options: argparse.Namespace, runs: dict[str, list[Measured]]) -> dict[str, object]:
    """Return the medians with what they were measured on."""
    return {
        "benchmark": "ingest",
        "options": vars(options),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "median": {
            coding: {
                name: round(statistics.median(getattr(run, name) for run in measured), 1)
                for name in Measured._fields
            }
            for coding, measured in runs.items()
        },
    }


def measure(bodies: list[bytes], coding: str, batch: int, senders: int) -> Measured:
    """Send the bodies to a fresh server and return what that took."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draftgate.db"
        server = subprocess.Popen(  # noqa: S603  # our own command
            [
                *(sys.executable, "-c", "from collector.cli import app; app()", "serve"),
                *("--database", f"sqlite:///{file}", "--port", "0", "--capture-content"),
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        try:
            assert server.stdout is not None
            address = re.search(r"http://[0-9.:]+", server.stdout.readline())
            assert address is not None
            process = psutil.Process(server.pid)
            before = process.cpu_times()
            begun = time.perf_counter()
            send(bodies, coding, f"{address.group()}/v1/traces", senders)
            elapsed_s = time.perf_counter() - begun
            after = process.cpu_times()
        finally:
            server.terminate()
            server.wait()
        spans = batch * len(bodies)
        cpu_s = after.user + after.system - before.user - before.system
        return Measured(spans / elapsed_s, cpu_s / spans * 1e6, file.stat().st_size / spans)


def send(bodies: list[bytes], coding: str, url: str, senders: int) -> None:
    """Post every body, over as many connections at once."""
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": coding}
    failed: list[int] = []

    def post(mine: list[bytes]) -> None:
        with httpx.Client(timeout=60) as http:
            for body in mine:
                answer = http.post(url, content=body, headers=headers)
                if answer.status_code != 200:
                    failed.append(answer.status_code)

    threads = [threading.Thread(target=post, args=(bodies[n::senders],)) for n in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"{len(failed)} requests were refused: {sorted(set(failed))}")


def make_bodies(batch: int, batches: int, *, gzipped: bool) -> Iterator[bytes]:
    """Yield export requests with ids of their own."""
    for number in range(batches):
        request = ExportTraceServiceRequest()
        scope_spans = request.resource_spans.add().scope_spans.add()
        for index in range(number * batch, (number + 1) * batch):
            span = encode(generation(index))
            out = scope_spans.spans.add(
                trace_id=bytes.fromhex(span.trace_id),
                span_id=bytes.fromhex(span.span_id),
                name=span.name,
                kind=3,
                start_time_unix_nano=span.start_unix_ns,
                end_time_unix_nano=span.end_unix_ns,
            )
            for key, value in span.attributes.items():
                fill(out.attributes.add(key=key).value, value)
        body = request.SerializeToString()
        yield gzip.compress(body, 6) if gzipped else body


def generation(index: int) -> Generation:
    """Return a generation as a replay of a rollout sends it: counts and a little text."""
    return Generation(
        trace_id=os.urandom(16).hex(),
        span_id=os.urandom(8).hex(),
        start_unix_ns=1_700_000_000_000_000_000 + index,
        end_unix_ns=1_700_000_002_000_000_000 + index,
        provider="vllm",
        request_model="target",
        response_model="target",
        max_tokens=256,
        temperature=0.0,
        finish_reasons=("stop",),
        input_tokens=500,
        output_tokens=101,
        ttft_s=0.1,
        tpot_s=0.019,
        stream_chunks=31,
        stream_max_gap_s=0.2,
        rollout="bench",
        arm=Arm.BASELINE if index % 2 else Arm.CANDIDATE,
        cohort=("chat", "code", "rag", "json")[index % 4],
        prompt_id=f"p{index // 2}",
        repeat=0,
        retries=0,
        fallback=False,
        concurrency=4,
        speculation=Speculation(
            method="draft_model",
            draft_model="draft",
            num_speculative_tokens=4,
            source="request",
            steps=30,
            draft_tokens=120,
            accepted_tokens=70,
            draft_tokens_per_pos=(30, 30, 30, 30),
            accepted_tokens_per_pos=(25, 20, 15, 10),
            acceptance_histogram=(5, 5, 5, 5, 10),
        ),
        content=Content(
            input_messages=json.dumps([{"role": "user", "parts": [{"content": "why? " * 80}]}]),
            output_messages=json.dumps([{"role": "assistant", "parts": [{"content": "so " * 99}]}]),
        ),
    )


def fill(out: AnyValue, value: AttributeValue) -> None:
    """Write an attribute value."""
    if isinstance(value, bool):
        out.bool_value = value
    elif isinstance(value, int):
        out.int_value = value
    elif isinstance(value, float):
        out.double_value = value
    elif isinstance(value, str):
        out.string_value = value
    elif isinstance(value, tuple):
        out.array_value.SetInParent()
        for item in value:
            fill(out.array_value.values.add(), item)


if __name__ == "__main__":
    main()
