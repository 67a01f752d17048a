"""Timing errors of load generators on streams, against a server that records the true times.

A scripted server in its own process records when each request arrived and when it wrote each chunk.
Draftgate's client is compared with it answer by answer; GuideLLM and AIPerf, each in its own
environment under --rivals, as distributions. Prints one JSON document last.

    python benchmarks/client.py --streams 16 64 256 --rivals .venv-rivals
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "tests" / "support")]

import scripted_server  # noqa: E402  # the tests' own server
from scripted_server import Received, Reply, Route, Server  # noqa: E402

from benchmarks.streams import rivals, truth  # noqa: E402
from benchmarks.streams.truth import Answer  # noqa: E402

CHUNKS = 100
TTFT_S = 0.2
GAP_S = 0.025


def main() -> None:
    """Run the benchmark."""
    arguments = _arguments()
    rows = []
    for streams in arguments.streams:
        requests = streams * arguments.rounds
        rows.append(_draftgate(streams, requests))
        _print_row(rows[-1])
        for rival in rivals.known(arguments.rivals) if arguments.rivals else ():
            rows.append(_rival(rival, streams, requests))
            _print_row(rows[-1])
    document = {
        "chunks": CHUNKS,
        "ttft_s": TTFT_S,
        "gap_s": GAP_S,
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform()},
        "rows": rows,
    }
    print(json.dumps(document))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--rounds", type=int, default=2, help="requests per stream")
    parser.add_argument("--rivals", type=Path, help="folder for the rivals' environments")
    return parser.parse_args()


@contextmanager
def _serving() -> Iterator[Server]:
    """Serve streams that send the role with the first content, so all agree on the first chunk."""
    usage = {"prompt_tokens": 7, "completion_tokens": CHUNKS, "total_tokens": CHUNKS + 7}
    whole = scripted_server.chat(["word "] * CHUNKS, ttft_s=TTFT_S, gap_s=GAP_S, usage=usage)
    reply = Reply(whole.steps[1:], headers=whole.headers)
    health = Route(scripted_server.json_reply({"status": "ok"}), path="/health")
    with scripted_server.running(Route(reply), health, models=["m"], kernel_stamps=True) as server:
        yield server


def _draftgate(streams: int, requests: int) -> dict[str, Any]:  # Any: JSON
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", "benchmarks.streams.measuring_process"]
    with _serving() as server:
        done = subprocess.run(  # noqa: S603
            [*command, server.url, str(streams), str(requests)],
            stdout=subprocess.PIPE,
            check=True,
            cwd=ROOT,
            env=os.environ
            | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        )
        log = _streams_of(server)
    found = json.loads(done.stdout)
    by_name = {entry["name"]: entry for entry in found["answers"]}
    measured = [by_name[entry.body["messages"][0]["content"]] for entry in log]
    answers = [Answer(entry["ttft_s"], entry["gaps_s"]) for entry in measured]
    true = _true(log)
    return {
        "client": "draftgate",
        "streams": streams,
        "load_before": load,
        "cpu_us_per_chunk": round(found["cpu_s"] / (requests * CHUNKS) * 1e6, 1),
        **truth.errors(true, answers, CHUNKS),
        **truth.differences(true, answers),
    }


def _rival(rival: rivals.Rival, streams: int, requests: int) -> dict[str, Any]:
    load = os.getloadavg()[0]
    row: dict[str, Any] = {"client": rival.name, "streams": streams, "load_before": load}
    with _serving() as server:
        try:
            found = rival.measure(server.url, streams, requests)
        except rivals.RivalError as exc:
            return row | {"error": str(exc)}
        log = _streams_of(server)
    row |= {"version": found.version, "answers": len(found.answers)}
    row["cpu_us_per_chunk"] = round(found.cpu_s / (len(log) * CHUNKS) * 1e6, 1)
    row["cpu_includes_start_s"] = round(found.cpu_s, 2)
    return row | dict(truth.differences(_true(log), found.answers))


def _streams_of(server: Server) -> list[Received]:
    """Return the chat requests that were answered completely."""
    return [
        entry
        for entry in server.log()
        if entry.path == scripted_server.OPENAI and len(entry.written_s) >= CHUNKS
    ]


def _true(log: Sequence[Received]) -> list[Answer]:
    return [truth.of_server(entry.at_s, entry.written_s, CHUNKS) for entry in log]


def _print_row(row: dict[str, Any]) -> None:
    print(json.dumps(row), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
