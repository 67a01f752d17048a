"""Cost of `draftgate-vllm`: throughput of vLLM with and without the plugin, in pairs.

Two servers of the demo's target and draft send their spans to one collector, on the CPU; one has
the plugin. Each round sends the same prompts to both, one server after the other, and the order
turns from round to round. Prints one JSON document last: for tokens per second, and per second of
the server's CPU, the geometric mean of the rounds' ratios (with / without) with its 95 % limits by
Student's t over rounds; and the load of the machine.

    nice -n 19 python -m benchmarks.vllm_plugin [--rounds 20] [--requests 32] [--max-tokens 64]

With `--calls N` it needs no vLLM: CPU of making and encoding a request's span, without and with the
counts, N times each. That is all that the plugin does, so it bounds the cost where the machine is
too loaded for the pairs to say. With `--beside` too, one server without the plugin answers, and the
difference is divided by the CPU that a request takes of the process that makes the span, and of the
whole server. The first is the largest share of throughput that the plugin can take, reached if that
process alone is the bottleneck.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "packages" / "vllm"))

import httpx
import psutil
import vllm_plugin
import vllm_server
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util.types import AttributeValue
from scipy.stats import t

from benchmarks.load.processes import cpu_s, family
from demo.collector_process import running
from demo.story import DRAFT, TARGET
from draftgate_vllm.attributes import attributes_of

_AT_ONCE = 4
_OF_VLLM: dict[str, AttributeValue] = {
    **{f"gen_ai.latency.{number}": 0.1 for number in range(6)},
    **{f"gen_ai.usage.{number}": 100 for number in range(2)},
    **{f"gen_ai.request.{number}": 1 for number in range(3)},
    "gen_ai.request.id": "chatcmpl-a5421d4d68e504a7",
}
"""As many attributes, of the same types, as vLLM 0.32.0 sets."""
_SPECULATION = {
    "method": "draft_model",
    "model": str(DRAFT),
    "num_speculative_tokens": vllm_server.DRAFT_TOKENS,
}


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    document = bound(options) if options.calls else pairs(options)
    print(json.dumps({"benchmark": "vllm_plugin", "options": vars(options), **document}))


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--requests", type=int, default=32, help="of a round, to each server")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--beside", action="store_true", help="with --calls: a server's CPU")
    return parser.parse_args()


def calls(number: int) -> dict[str, Any]:
    """Return the microseconds of CPU that a request's span takes, without and with the counts.

    Both by the stock SDK, from the counts to the bytes that are sent, in turns of 100 spans.
    """
    k = vllm_server.DRAFT_TOKENS
    counts = SimpleNamespace(num_spec_tokens=k, histogram=[9] * (k + 1), num_draft_tokens=180)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("vllm.tracing.otel")
    spent_s = {"without": 0.0, "with": 0.0}
    for _ in range(number // 100):
        for kind in spent_s:
            started_s = time.process_time()
            for _ in range(100):
                span = tracer.start_span("llm_request")
                added = attributes_of(counts, proposed=False) if kind == "with" else {}
                span.set_attributes(_OF_VLLM | added)
                span.end()
            encode_spans(exporter.get_finished_spans()).SerializeToString()
            spent_s[kind] += time.process_time() - started_s
            exporter.clear()
    spans = number // 100 * 100
    return {f"{kind}_us": round(took_s / spans * 1e6, 1) for kind, took_s in spent_s.items()}


def bound(options: argparse.Namespace) -> dict[str, Any]:
    """Return the CPU that the counts take, and with `--beside` its share of a request's."""
    found = calls(options.calls)
    if not options.beside:
        return found
    added_us = found["with_us"] - found["without_us"]
    taken = requests_us(options)
    shares = {name.replace("_us", "_share"): round(added_us / us, 5) for name, us in taken.items()}
    return found | taken | shares


def requests_us(options: argparse.Namespace) -> dict[str, float]:
    """Return the microseconds of CPU of one request, of the span's process and of the server."""
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory()))
        collector = started.enter_context(running(folder / "runs.db", folder / "collector.log"))
        root = started.enter_context(
            vllm_server.serving(TARGET, speculation=_SPECULATION, collector_url=collector)
        )
        measured(root, options)  # warm
        server = processes_of(root)
        before_s = cpu_s(server[:1]), cpu_s(server)
        measured(root, options)
        after_s = cpu_s(server[:1]), cpu_s(server)
    front, whole = (
        round((after - before) / options.requests * 1e6)
        for before, after in zip(before_s, after_s, strict=True)
    )
    return {"front_end_us": front, "server_us": whole}


def pairs(options: argparse.Namespace) -> dict[str, Any]:
    """Return the ratio of the two servers' throughput over the rounds."""
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory()))
        collector = started.enter_context(running(folder / "runs.db", folder / "collector.log"))
        none: dict[str, str] = {}
        plain, plugged = (
            started.enter_context(
                vllm_server.serving(
                    TARGET, speculation=_SPECULATION, collector_url=collector, variables=variables
                )
            )
            for variables in (none, vllm_plugin.install(folder / "site"))
        )
        for root in (plain, plugged):
            measured(root, options)  # warm
        ratios: dict[str, list[float]] = {"tokens_a_second": [], "tokens_a_cpu_second": []}
        for number in range(options.rounds):
            order = (plain, plugged) if number % 2 else (plugged, plain)
            found = {root: measured(root, options) for root in order}
            for name, values in ratios.items():
                values.append(found[plugged][name] / found[plain][name])
            print(json.dumps({name: round(values[-1], 4) for name, values in ratios.items()}))
    document = {name: interval(values) for name, values in ratios.items()}
    return document | {"load": os.getloadavg()[1], "cores": os.cpu_count()}


def measured(root: str, options: argparse.Namespace) -> dict[str, float]:
    """Return the output tokens of a round's requests per second, and per second of CPU."""
    body = {
        "model": "served",
        "max_tokens": options.max_tokens,
        "ignore_eos": True,
        "temperature": 0,
        "prompt": "The Harbor kettle holds",
    }

    def tokens(_: int) -> int:
        answer = httpx.post(f"{root}/v1/completions", json=body, timeout=600)
        return int(answer.raise_for_status().json()["usage"]["completion_tokens"])

    server = processes_of(root)
    started_s, started_cpu_s = time.perf_counter(), cpu_s(server)
    with ThreadPoolExecutor(_AT_ONCE) as clients:
        total = sum(clients.map(tokens, range(options.requests)))
    return {
        "tokens_a_second": total / (time.perf_counter() - started_s),
        "tokens_a_cpu_second": total / (cpu_s(server) - started_cpu_s),
    }


def processes_of(root: str) -> list[psutil.Process]:
    """Return the server's process and all those below it."""
    port = root.rpartition(":")[2]
    (server,) = (one for one in psutil.Process().children() if port in one.cmdline())
    return family(server.pid)


def interval(ratios: list[float]) -> dict[str, Any]:
    """Return the geometric mean of the ratios and its 95 % limits."""
    logs = [math.log(ratio) for ratio in ratios]
    half = float(t.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
    mean = fmean(logs)
    found = {"ratio": mean, "lower": mean - half, "upper": mean + half}
    return {name: round(math.exp(value), 4) for name, value in found.items()}


if __name__ == "__main__":
    main()
