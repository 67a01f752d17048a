"""Stop the client's process while an answer's first quarter of a second streams.

All chunks that arrive meanwhile get one timestamp, so a first token seems later than it was. The
span must say by how much its times may be late, so that the gate excludes such requests from
latencies.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import scripted_server
from scripted_server import OPENAI, Route

from benchmarks.attacks.findings import Finding

ROOT = Path(__file__).resolve().parents[2]
STOPPED_S = 0.25
"""From the first token on, by the server's log."""
GAP_S = 0.0125
TTFT_S = 0.5
"""Long enough to stop the client between its request and the first token."""
_CLIENT = """
import asyncio, json, sys
from engine_adapter.engines import EngineOpener, Request
from engine_adapter.engines.observation import observe
from engine_adapter.routes import HttpRoute
from engine_adapter.transport import reader_thread
from engine_adapter.messages import Message
if sys.argv[2] == "asyncio":
    reader_thread._arrivals = None
async def main():
    engine = await EngineOpener().open(HttpRoute(engine="openai", url=sys.argv[1], model="m"))
    request = Request(messages=(Message(role="user", content="hi"),), max_tokens=40, temperature=0)
    for turn in range(2):
        print("asking", flush=True)
        seen = await observe(engine, request, concurrency=1, due_s=None)
        print(json.dumps([seen.ttft_s, seen.client_lag_s]), flush=True)
    await engine.close()
asyncio.run(main())
"""


def attack() -> Sequence[Finding]:
    """Stop a client that reads with the C reader thread, and one that reads with asyncio."""
    findings = []
    for reader in ("thread", "asyncio"):
        _, untouched_lag_s = ask(reader, stopped_s=0.0)[0]
        ttft_s, lag_s = ask(reader, stopped_s=STOPPED_S)[0]
        findings += [
            Finding(f"{reader}: lag on the stopped request's span, s", lag_s, 0.2, at_least=True),
            Finding(f"{reader}: TTFT less its lag, s", ttft_s - lag_s, TTFT_S + 0.1),
            Finding(f"{reader}: lag on an undisturbed request's span, s", untouched_lag_s, 0.1),
        ]
    return findings


def ask(reader: str, *, stopped_s: float) -> list[tuple[float, float]]:
    """Return TTFT and lag of two requests; the client is stopped during the first."""
    whole = scripted_server.chat(
        [f"w{number} " for number in range(40)], ttft_s=TTFT_S, gap_s=GAP_S
    )
    with scripted_server.running(Route(whole)) as server:
        client = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _CLIENT, server.url, reader],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert client.stdout is not None
        with client:
            answered = []
            for turn in range(2):
                assert client.stdout.readline() == "asking\n"
                if turn == 0 and stopped_s:
                    _await(client, server, writes=1)  # the role; the client has sent its request
                    client.send_signal(signal.SIGSTOP)
                    _await(client, server, writes=2)
                    time.sleep(stopped_s)
                    client.send_signal(signal.SIGCONT)
                ttft_s, lag_s = json.loads(client.stdout.readline())
                answered.append((ttft_s, lag_s))
    return answered


def _await(client: "subprocess.Popen[str]", server: scripted_server.Server, *, writes: int) -> None:
    """Wait until the server has begun so many writes of its first answer to the client."""
    while sum(len(asked.written_s) for asked in server.log() if asked.path == OPENAI) < writes:
        assert client.poll() is None
        time.sleep(0.005)
