"""Ingest: CPU time per stored span, and queryable spans per second.

Every repetition starts each server anew, in turn, on an empty folder. A separate sender process
creates the bodies beforehand. A server's CPU time, including its children and its database, is read
from the operating system. The rate counts spans until the server's own API returns the last one.
Figures are medians. Prints one JSON document last.

    python benchmarks/ingest.py --database postgresql --batches 40
    python benchmarks/ingest.py --prefill 5000000
    python benchmarks/ingest.py --file /data/filled-by-reads.db --repetitions 1
    python benchmarks/ingest.py --spans-a-trace 8 --peer phoenix --peer mlflow --batches 8
    python benchmarks/ingest.py --peer x=http://127.0.0.1:{port}/v1/traces --peer-start "x {port}"
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.load import peers
from benchmarks.load.processes import Memory, cpu_s
from benchmarks.load.sender import Plan, Sent, sender
from benchmarks.load.spans import NS_BETWEEN_STARTS
from benchmarks.load.targets import Running, Target, TargetError, command, draftgate

_QUERYABLE_WITHIN_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One repetition of one server."""

    answered_spans_per_s: float
    queryable_spans_per_s: float | None
    """None if the server cannot be queried."""
    server_cpu_us_per_span: float
    database_cpu_us_per_span: float | None
    """CPU time of the database server's processes; None if there is none."""
    peak_memory_mib: float
    bytes_per_span: float
    """Size of the server's files, including its database's, per span."""
    body_bytes_per_span: float


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    targets = chosen(options)
    runs: dict[str, list[Measured]] = {name: [] for name in targets}
    for repetition in range(options.repetitions):
        for name, target in targets.items():
            with tempfile.TemporaryDirectory(prefix="draftgate-", dir=options.folder) as folder:
                runs[name].append(measure(target, Path(folder), options, seed=repetition))
            print(f"{repetition + 1}: {name}: {runs[name][-1]}", file=sys.stderr, flush=True)
    print(json.dumps(document(options, runs), indent=2))


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--as-user", help="user that runs PostgreSQL if root starts it")
    parser.add_argument("--batch", type=int, default=512, help="spans per request")
    parser.add_argument("--batches", type=int, default=40, help="requests per repetition")
    parser.add_argument("--senders", type=int, default=2, help="connections at once")
    parser.add_argument("--spans-a-trace", type=int, default=1)
    parser.add_argument("--gzip", action="store_true", help="compress bodies with gzip")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--prefill", type=int, default=0, help="spans stored before measuring")
    parser.add_argument("--file", type=Path, help="an existing SQLite file to write to")
    parser.add_argument("--folder", help="folder for databases (default: the system's)")
    parser.add_argument("--peer", action="append", default=[], help="phoenix, mlflow or NAME=URL")
    parser.add_argument("--peer-start", help="command that starts the peer given by URL")
    parser.add_argument("--peers-folder", type=Path, default=Path("~/.cache/draftgate-peers"))
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> dict[str, Target]:
    """Return the servers to measure, Draftgate first."""
    file = options.file and options.file.expanduser().absolute()
    ours = partial(draftgate, database=options.database, user=options.as_user, file=file)
    targets: dict[str, Target] = {f"draftgate-{options.database}": ours}
    folder = options.peers_folder.expanduser().absolute()
    for peer in options.peer:
        name, _, url = peer.partition("=")
        if url:
            targets[name] = partial(
                custom_server, url=url, line=options.peer_start or "sleep infinity"
            )
        elif name in peers.PACKAGES:
            version = peers.installed_version(folder, peers.PACKAGES[name])
            targets[f"{name}-{version}"] = peers.known(folder)[name]
        else:
            raise SystemExit(f"--peer {peer}: wanted {', '.join(peers.PACKAGES)} or NAME=URL")
    return targets


def custom_server(folder: Path, *, url: str, line: str) -> AbstractContextManager[Running]:
    """Start a server given only by its command and its URL for traces."""
    return command(
        folder,
        line,
        address=url,
        running=lambda address, processes: Running(
            url=address,
            processes={"server": processes},
            stored=None,
            shows=None,
            size_bytes=lambda: sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()),
            headers={},
        ),
    )


def measure(target: Target, folder: Path, options: argparse.Namespace, *, seed: int) -> Measured:
    """Start the server, prefill it if requested, and measure it while sending."""
    spans = options.batch * options.batches
    with target(folder) as server:
        prefilled = prefill(server, options, seed=1000 + seed)
        if options.file and server.stored is not None:
            prefilled = server.stored()
            seed += prefilled  # do not send the same spans as an earlier run on the file
        plan = plan_of(server, options, batches=options.batches, seed=seed, spans_before=0)
        with sender(plan) as sending, Memory(lambda: processes(server)) as memory:
            before = {name: cpu_s(list_()) for name, list_ in server.processes.items()}
            sent = sending.send()
            queryable_s = until_queryable(server, sent, prefilled + spans)
            after = {name: cpu_s(list_()) for name, list_ in server.processes.items()}
        check(server, sent, prefilled + spans)
    # After it has stopped: by then its write-ahead log is checkpointed.
    bytes_per_span = server.size_bytes() / (prefilled + spans)
    used = {name: (after[name] - before[name]) / spans * 1e6 for name in after}
    return Measured(
        answered_spans_per_s=spans / (sent.ended_s - sent.begun_s),
        queryable_spans_per_s=spans / (queryable_s - sent.begun_s) if queryable_s else None,
        server_cpu_us_per_span=used.pop("server"),
        database_cpu_us_per_span=sum(used.values()) if used else None,
        peak_memory_mib=memory.peak_bytes / 2**20,
        bytes_per_span=bytes_per_span,
        body_bytes_per_span=sent.body_bytes / spans,
    )


def plan_of(
    server: Running, options: argparse.Namespace, *, batches: int, seed: int, spans_before: int
) -> Plan:
    """Return the send plan; start times end about `spans_before` spans before now."""
    spans = spans_before + batches * options.batch
    return Plan(
        url=server.url,
        headers=server.headers,
        batch=options.batch,
        batches=batches,
        senders=options.senders,
        seed=seed,
        gzipped=options.gzip,
        spans_a_trace=options.spans_a_trace,
        first_start_unix_ns=time.time_ns() - spans * NS_BETWEEN_STARTS,
    )


def prefill(server: Running, options: argparse.Namespace, *, seed: int) -> int:
    """Store spans through the same endpoint; return how many."""
    batches: int = -(-options.prefill // options.batch)
    if not batches:
        return 0
    before = options.batch * options.batches
    plan = plan_of(server, options, batches=batches, seed=seed, spans_before=before)
    columns = (TextColumn("prefill"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        Progress(*columns, console=Console(stderr=True)) as bar,
        sender(plan, made_while_sending=True) as sending,
    ):
        task = bar.add_task("", total=batches)
        check_statuses(sending.send(lambda requests: bar.update(task, completed=requests)))
    return batches * int(options.batch)


def until_queryable(server: Running, sent: Sent, expected: int) -> float | None:
    """Return when the last spans became queryable, or all spans if the server stores them later."""
    if server.shows is None:
        return None
    deadline = time.perf_counter() + _QUERYABLE_WITHIN_S
    while time.perf_counter() < deadline:
        if all(server.shows(id_) for id_ in sent.last_trace_ids) and (
            server.answers_once_stored or server.stored is None or server.stored() >= expected
        ):
            return time.perf_counter()
        time.sleep(0.2)
    raise TargetError(f"after {_QUERYABLE_WITHIN_S:.0f} s not all of {expected} spans are found")


def check(server: Running, sent: Sent, expected: int) -> None:
    """Raise `TargetError` unless everything was accepted and is stored once."""
    check_statuses(sent)
    if server.stored is not None and (stored := server.stored()) != expected:
        raise TargetError(f"{expected} spans were accepted, {stored} are stored")


def check_statuses(sent: Sent) -> None:
    """Raise `TargetError` if a request was refused."""
    if set(sent.statuses) != {200}:
        raise TargetError(f"requests by status: {dict(sent.statuses)}; wanted 200 alone")


def processes(server: Running) -> Iterator[psutil.Process]:
    """Yield the processes of the server and of its database."""
    for list_ in server.processes.values():
        yield from list_()


def document(options: argparse.Namespace, runs: dict[str, list[Measured]]) -> dict[str, object]:
    """Return the medians, and the machine and options they were measured with."""
    return {
        "benchmark": "ingest",
        "options": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(options).items()
            if name[:4] != "peer"
        },
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load_average": os.getloadavg()[0],
            "python": platform.python_version(),
        },
        "median": {
            name: median([asdict(run) for run in measured]) for name, measured in runs.items()
        },
        "runs": {name: [asdict(run) for run in measured] for name, measured in runs.items()},
    }


def median(runs: list[dict[str, float | None]]) -> dict[str, float | None]:
    """Return each figure's median; None if a run has none."""
    medians: dict[str, float | None] = {}
    for name in runs[0]:
        values = [value for run in runs if (value := run[name]) is not None]
        whole = len(values) == len(runs)
        medians[name] = round(statistics.median(values), 1) if whole else None
    return medians


if __name__ == "__main__":
    main()
