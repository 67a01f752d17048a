"""Cost of `draftgate-vllm`: throughput of vLLM with and without the plugin, in pairs.

Two servers of the demo's target and draft send their spans to one collector, on the CPU; one has
the plugin. Each round sends the same prompts to both, one server after the other, and the order
turns from round to round. Prints one JSON document last: the geometric mean of the rounds' ratios
(with / without), its 95 % limits by Student's t over rounds, and the load of the machine.

    nice -n 19 python -m benchmarks.vllm_plugin [--rounds 20] [--requests 32] [--max-tokens 64]

With `--calls N` it needs no vLLM: CPU of the plugin's own work for a request, N times.
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
import vllm_plugin
import vllm_server
from scipy.stats import t

from demo.collector_process import running
from demo.story import DRAFT, TARGET
from draftgate_vllm.attributes import attributes_of

_AT_ONCE = 4
_SPECULATION = {
    "method": "draft_model",
    "model": str(DRAFT),
    "num_speculative_tokens": vllm_server.DRAFT_TOKENS,
}


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    document = calls(options.calls) if options.calls else pairs(options)
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
    return parser.parse_args()


def calls(number: int) -> dict[str, Any]:
    """Return the microseconds of CPU that one request's attributes take."""
    k = vllm_server.DRAFT_TOKENS
    counts = SimpleNamespace(num_spec_tokens=k, histogram=[9] * (k + 1), num_draft_tokens=180)
    started_s = time.process_time()
    for _ in range(number):
        attributes_of(counts, proposed=True)
    return {"microseconds": round((time.process_time() - started_s) / number * 1e6, 2)}


def pairs(options: argparse.Namespace) -> dict[str, Any]:
    """Return the ratio of the two servers' throughput over the rounds."""
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory()))
        collector = started.enter_context(running(folder / "runs.db", folder / "collector.log"))
        plain, plugged = (
            started.enter_context(
                vllm_server.serving(
                    TARGET, speculation=_SPECULATION, collector_url=collector, variables=variables
                )
            )
            for variables in ({}, vllm_plugin.install(folder / "site"))
        )
        for root in (plain, plugged):
            tokens_a_second(root, options)  # warm
        ratios = []
        for number in range(options.rounds):
            order = (plain, plugged) if number % 2 else (plugged, plain)
            speed = {root: tokens_a_second(root, options) for root in order}
            ratios.append(speed[plugged] / speed[plain])
            print(json.dumps({"round": number, "ratio": round(ratios[-1], 4)}), flush=True)
    return interval(ratios) | {"load": os.getloadavg()[1], "cores": os.cpu_count()}


def tokens_a_second(root: str, options: argparse.Namespace) -> float:
    """Return the output tokens per second of a round's requests."""
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

    started_s = time.perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as clients:
        total = sum(clients.map(tokens, range(options.requests)))
    return total / (time.perf_counter() - started_s)


def interval(ratios: list[float]) -> dict[str, Any]:
    """Return the geometric mean of the ratios and its 95 % limits."""
    logs = [math.log(ratio) for ratio in ratios]
    half = float(t.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
    mean = fmean(logs)
    found = {"ratio": mean, "lower": mean - half, "upper": mean + half}
    return {name: round(math.exp(value), 4) for name, value in found.items()}


if __name__ == "__main__":
    main()
