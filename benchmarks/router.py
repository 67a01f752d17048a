"""Overhead of the router per request, compared with a plain proxy and LiteLLM's.

A scripted server in its own process records when each request arrived and when it wrote each chunk.
A proxy's overhead is the delay of its stream minus the delay without a proxy. All targets are
measured in turn, round by round. Prints one JSON document last.

    python -m benchmarks.router --rounds 3 --litellm FOLDER
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "tests" / "support")]

import scripted_server  # noqa: E402  # the tests' own server
from scripted_server import Reply, Route, Server  # noqa: E402

from benchmarks.routing import targets  # noqa: E402
from benchmarks.routing.load import Streamed, ask  # noqa: E402
from benchmarks.routing.targets import Running  # noqa: E402

TTFT_S = 0.1
MIRRORED = 0.1


def main() -> None:
    """Run the benchmark."""
    arguments = _arguments()
    rows: list[dict[str, Any]] = []  # Any: JSON
    with tempfile.TemporaryDirectory() as work, ExitStack() as stack:
        steady = stack.enter_context(_Setting.open(arguments, Path(work), steady=True))
        full = stack.enter_context(_Setting.open(arguments, Path(work), steady=False))
        for number in range(arguments.rounds):
            for setting in (steady, full):
                for place in range(len(setting.targets)):
                    turn = (place + number) % len(setting.targets)
                    rows.append(setting.measure(setting.targets[turn], number))
                    print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    document = {
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform()},
        "streams": arguments.streams,
        "gap_s": arguments.gap,
        "mirrored": MIRRORED,
        "summary": _summary(rows),
    }
    print(json.dumps(document))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=200, help="concurrent streams")
    parser.add_argument("--gap", type=float, default=0.05, help="seconds between two chunks")
    parser.add_argument("--chunks", type=int, default=60, help="chunks per answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--litellm", type=Path, help="folder of LiteLLM's environment")
    return parser.parse_args()


class _Setting:
    """A load scenario: scripted servers, and the targets in front of them."""

    def __init__(self, arguments: argparse.Namespace, *, steady: bool) -> None:
        self.name = "steady" if steady else "saturated"
        self.streams = arguments.streams if steady else 64
        self.chunks = arguments.chunks
        self.requests = 3 if steady else 4
        self.gap_s = arguments.gap if steady else 0.0005
        self.ttft_s = TTFT_S if steady else 0.0
        self.server: Server
        self.targets: list[Running] = []

    @classmethod
    @contextmanager
    def open(
        cls, arguments: argparse.Namespace, work: Path, *, steady: bool
    ) -> Iterator["_Setting"]:
        """Start everything, and stop it on exit."""
        setting = cls(arguments, steady=steady)
        with ExitStack() as stack:
            setting.server = stack.enter_context(setting.serving())
            other = stack.enter_context(setting.serving())
            url = setting.server.url
            router = targets.module("router_process", url, other.url, str(MIRRORED))
            setting.targets = [
                Running("bare", url),
                stack.enter_context(targets.module("plain_proxy", url)),
                stack.enter_context(
                    targets.module("plain_proxy", url, "uvloop", called="plain_proxy, uvloop")
                ),
                stack.enter_context(router),
            ]
            if arguments.litellm is not None:
                peer = targets.litellm(url, arguments.litellm.resolve(), work)
                setting.targets.append(stack.enter_context(peer))
            yield setting

    @contextmanager
    def serving(self) -> Iterator[Server]:
        """Serve streams of numbered words; the first comes with the role."""
        words = [f"w{number} " for number in range(self.chunks)]
        usage = {
            "prompt_tokens": 7,
            "completion_tokens": self.chunks,
            "total_tokens": self.chunks + 7,
        }
        whole = scripted_server.chat(words, ttft_s=self.ttft_s, gap_s=self.gap_s, usage=usage)
        reply = Reply(whole.steps[1:], headers=whole.headers)
        with scripted_server.running(Route(reply)) as server:
            yield server

    def measure(self, target: Running, number: int) -> dict[str, Any]:  # Any: JSON
        """Send the load to a target, and return its row of results."""
        before = len(self.server.log())
        cpu_s, began_s = target.cpu_s(), time.perf_counter()
        load = os.getloadavg()[0]
        spread_s = self.ttft_s + self.chunks * self.gap_s if self.name == "steady" else 0.0
        streams = asyncio.run(ask(target.url, self.streams, self.requests, spread_s))
        took_s = time.perf_counter() - began_s
        cpu_s = target.cpu_s() - cpu_s
        log = [entry for entry in self.server.log()[before:] if entry.path.endswith("completions")]
        written = {entry.body["messages"][0]["content"]: entry for entry in log}
        ttfts_s, chunks_s = [], []
        for stream in streams:
            arrived, entry = stream.word_times_s(), written.get(stream.name)
            if entry is None or 0 not in arrived:
                continue
            ttfts_s.append(arrived[0] - stream.sent_s - (entry.written_s[0] - entry.at_s))
            chunks_s += [arrived[word] - entry.written_s[word] for word in arrived if word > 0]
        relayed = len(ttfts_s) + len(chunks_s)
        return {
            "load": self.name,
            "target": target.name,
            "round": number,
            "machine_load": round(load, 1),
            "requests": len(streams),
            "whole": sum(_whole(stream, self.chunks) for stream in streams),
            "requests_per_s": round(len(streams) / took_s, 1),
            "chunks_per_s": round(relayed / took_s),
            "cpu_us_per_chunk": round(cpu_s / relayed * 1e6, 1) if relayed else None,
            "rss_mb": round(target.rss_bytes() / 1e6),
            "ttft_ms": percentiles(ttfts_s),
            "chunk_ms": percentiles(chunks_s),
        }


def _whole(stream: Streamed, chunks: int) -> bool:
    return stream.whole and len(stream.word_times_s()) == chunks


def percentiles(values_s: Sequence[float]) -> dict[str, float] | None:
    """Return the median and the nearest-rank 99th percentile, in milliseconds."""
    if not values_s:
        return None
    ordered = sorted(values_s)
    return {
        "median": round(statistics.median(ordered) * 1e3, 3),
        "p99": round(ordered[-(-len(ordered) * 99 // 100) - 1] * 1e3, 3),
    }


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:  # Any: JSON
    """Return each target's medians over the rounds, minus the direct server's in each round."""
    names = list(dict.fromkeys(row["target"] for row in rows))
    bare = {(row["load"], row["round"]): row for row in rows if row["target"] == "bare"}
    found: dict[str, Any] = {}
    for name in names:
        mine = [row for row in rows if row["target"] == name and row["ttft_ms"]]
        steady = [row for row in mine if row["load"] == "steady"]
        full = [row for row in mine if row["load"] == "saturated"]
        added = {
            f"added_{kind}_{part}_ms": _median(
                row[f"{kind}_ms"][part] - bare["steady", row["round"]][f"{kind}_ms"][part]
                for row in steady
            )
            for kind in ("ttft", "chunk")
            for part in ("median", "p99")
        }
        found[name] = added | {
            "cpu_us_per_chunk_steady": _median(
                row["cpu_us_per_chunk"] for row in steady if row["cpu_us_per_chunk"] is not None
            ),
            "requests_per_s_saturated": _median(row["requests_per_s"] for row in full),
            "chunks_per_s_saturated": _median(row["chunks_per_s"] for row in full),
            "cpu_us_per_chunk_saturated": _median(row["cpu_us_per_chunk"] for row in full),
            "not_whole": sum(row["requests"] - row["whole"] for row in mine),
        }
    return found


def _median(values: Any) -> float | None:  # Any: an iterable of numbers
    listed = list(values)
    return round(statistics.median(listed), 3) if listed else None


if __name__ == "__main__":
    main()
