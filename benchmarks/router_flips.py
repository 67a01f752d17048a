"""How long the candidate still gets requests after its switch is set off, under load.

Runs a collector, a router and two scripted engines, each in its own process, under constant load.
The arrival of requests is read from the engines' logs, by the machine's monotonic clock, so that a
flip's latency includes the collector's commit, the router's poll and the connection to the engine.
Prints one JSON document.

    python -m benchmarks.router_flips --flips 1000 --streams 16
"""

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "tests" / "support")]

import scripted_server  # noqa: E402  # the tests' own server
from scripted_server import Route, chat  # noqa: E402

from collector.client import Client  # noqa: E402
from collector.contract import Switch  # noqa: E402

ON_S = 0.1
OFF_S = 0.5
LONG_OFF_S = 1.5
"""Duration of every fifth off period: long enough to see requests more than a second late."""
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=1000, help="number of times the switch is set")
    parser.add_argument("--streams", type=int, default=16, help="concurrent streams")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, ExitStack() as stack:
        script = Route(chat(["a", "b", "c"], ttft_s=0.01, gap_s=0.01))
        engines = [stack.enter_context(scripted_server.running(script)) for _ in range(2)]
        collector = stack.enter_context(_collector(Path(work)))
        router = stack.enter_context(_router(Path(work), collector, engines))
        load = os.getloadavg()
        answered, flips = asyncio.run(_flip(collector, router, arguments))
        asked = [received.at_s for received in engines[1].log()]
    late = [_last_after(asked, off, on) for off, on in flips]
    document = {
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "load": load},
        "streams": arguments.streams,
        "flips": arguments.flips,
        "offs": len(flips),
        "answered": answered,
        "asked_of_candidate": len(asked),
        "offs_with_a_request_after": sum(value > 0 for value in late),
        "last_request_after_off_s": _quantiles(late),
    }
    print(json.dumps(document))


async def _flip(
    collector: str, router: str, arguments: argparse.Namespace
) -> tuple[dict[str, int], list[tuple[float, float]]]:
    """Return the responses by kind, and the times when the switch was set off and on again."""
    answered: dict[str, int] = {}
    stop, flips = asyncio.Event(), []
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for _ in range(arguments.streams):
            group.create_task(_ask(session, router, stop, answered))
        with Client(collector) as client:
            await asyncio.to_thread(client.set_switch, "flips", Switch.ON, reason="begin")
            for number in range(arguments.flips // 2):
                await asyncio.sleep(ON_S)
                off_s = time.perf_counter()
                await asyncio.to_thread(client.set_switch, "flips", Switch.OFF, reason="flip")
                await asyncio.sleep(LONG_OFF_S if number % 5 == 0 else OFF_S)
                flips.append((off_s, time.perf_counter()))
                await asyncio.to_thread(client.set_switch, "flips", Switch.ON, reason="flip")
        stop.set()
    return answered, flips


async def _ask(
    session: aiohttp.ClientSession, router: str, stop: asyncio.Event, answered: dict[str, int]
) -> None:
    while not stop.is_set():
        try:
            async with session.post(f"{router}/v1/chat/completions", json=BODY) as answer:
                text = await answer.text()
            how = "whole" if answer.ok and text.endswith("[DONE]\n\n") else "failed"
        except aiohttp.ClientError:
            how = "failed"
        answered[how] = answered.get(how, 0) + 1


def _last_after(asked: Sequence[float], off_s: float, on_s: float) -> float:
    """Return how long after the flip the last request arrived; 0 if none did."""
    return max((at - off_s for at in asked if off_s < at < on_s), default=0.0)


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: ordered[round(q * (len(ordered) - 1))] for name, q in at.items()}


@contextmanager
def _collector(work: Path) -> Iterator[str]:
    database = f"sqlite:///{work / 'flips.db'}"
    with _running(r"HTTP at (http://[0-9.:]+)", "serve", "--database", database, "--port", "0",
                  "--no-grpc") as url:  # fmt: skip
        yield url


@contextmanager
def _router(work: Path, collector: str, engines: Sequence[Any]) -> Iterator[str]:
    document = {
        "rollout": "flips",
        "mode": "split",
        "share": 50,
        "upstreams": {
            "baseline": {"url": engines[0].url},
            "candidate": {"url": engines[1].url},
        },
        "listen": {"port": 0},
        "collector": {"url": collector},
    }
    file = work / "routes.yaml"
    file.write_text(json.dumps(document))  # JSON is YAML
    with _running(r"listening at (.*)/v1;", "route", str(file)) as url:
        yield url


@contextmanager
def _running(ready: str, *arguments: str) -> Iterator[str]:
    process = subprocess.Popen(  # noqa: S603  # our own command
        [sys.executable, "-m", "draftgate", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        found = next(m for line in process.stdout if (m := re.search(ready, line)))
        yield found[1]
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    main()
