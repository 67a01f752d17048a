"""Breakdown of the router's overhead on TTFT by stage.

A scripted server answers; the client, the router and the server record when the request and the
answer's first word pass, by one clock. Prints one JSON document last: each stage's median and 99th
percentile in milliseconds, separately for a connection's first request, for which the router opens
a new connection to the engine, and for later ones.

    python -m benchmarks.router_stages --streams 200
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "tests" / "support")]

import scripted_server  # noqa: E402  # the tests' own server
from scripted_server import Received, Reply, Route, Server  # noqa: E402

from benchmarks.router import MIRRORED, TTFT_S, percentiles  # noqa: E402
from benchmarks.routing import targets  # noqa: E402
from benchmarks.routing.load import Streamed, ask  # noqa: E402

_STAGES = {
    "client's write to router's read": ("asked", "read"),
    "router's read to its write": ("read", "sent"),
    "router's write to engine's read": ("sent", "received"),
    "engine's write to router's read": ("written", "answered"),
    "router's read to client's read": ("answered", "arrived"),
}
_REQUESTS = 3


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=200, help="concurrent streams")
    parser.add_argument("--gap", type=float, default=0.05, help="seconds between two chunks")
    parser.add_argument("--chunks", type=int, default=60, help="chunks per answer")
    arguments = parser.parse_args()
    words = [f"w{number} " for number in range(arguments.chunks)]
    whole = scripted_server.chat(words, ttft_s=TTFT_S, gap_s=arguments.gap)
    route = Route(Reply(whole.steps[1:], headers=whole.headers))
    with (
        tempfile.TemporaryDirectory() as work,
        scripted_server.running(route) as server,
        scripted_server.running(route) as other,
    ):
        notes = Path(work) / "notes.json"
        spread_s = TTFT_S + arguments.chunks * arguments.gap
        streams = _ask(server, other, notes, arguments.streams, spread_s)
        noted = json.loads(notes.read_text())
        received = {entry.body["messages"][0]["content"]: entry for entry in server.log()}
    times = [
        _times(stream, noted[stream.name], received[stream.name])
        for stream in streams
        if stream.whole
    ]
    document = {
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform()},
        "streams": arguments.streams,
        "mirrored": MIRRORED,
        "whole": len(times),
        "first": _summary([one for one in times if one["turn"] == 0]),
        "later": _summary([one for one in times if one["turn"] > 0]),
    }
    print(json.dumps(document))


def _ask(
    server: Server, other: Server, notes: Path, streams: int, spread_s: float
) -> list[Streamed]:
    arguments = (server.url, other.url, str(MIRRORED), str(notes))
    with targets.module("staged_router", *arguments) as router:
        answered = asyncio.run(ask(router.url, streams, _REQUESTS, spread_s))
        assert router.process is not None
        router.process.terminate()  # it writes its records on exit
        router.process.wait()
    return answered


def _times(stream: Streamed, noted: Mapping[str, float], entry: Received) -> dict[str, float]:
    return {
        **noted,
        "turn": float(stream.name.partition("-")[2]),
        "asked": stream.sent_s,
        "received": entry.at_s,
        "written": entry.written_s[0],
        "arrived": stream.word_times_s()[0],
    }


def _summary(times: list[dict[str, float]]) -> dict[str, dict[str, float] | None]:
    found = {
        name: percentiles([one[end] - one[begin] for one in times])
        for name, (begin, end) in _STAGES.items()
    }
    waited = [one["arrived"] - one["asked"] - one["written"] + one["received"] for one in times]
    return found | {"all": percentiles(waited)}


if __name__ == "__main__":
    main()
