"""Empty stores of each kind, filled with the same batches while measuring the cost."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.load.targets import Postgres, server
from collector.store import Batch, SpanRows, Store

KINDS = ("sqlite", "postgresql", "clickhouse")
_EVERY = 64 * 1024
"""Generations between two folds."""


class Backend(NamedTuple):
    """An open store and its database server."""

    kind: str
    store: Store
    postgres: Postgres | None

    def cpu_s(self) -> float:
        """Return the CPU time of this process and of the server."""
        own = time.process_time()
        if self.postgres is None:
            return own
        times = [process.cpu_times() for process in self.postgres.processes()]
        return own + float(sum(one.user + one.system for one in times))


@contextmanager
def opened(
    kinds: Sequence[str], folder: Path, as_user: str | None = None
) -> Iterator[list[Backend]]:
    """Open an empty store of each kind."""
    folder.mkdir()
    with ExitStack() as stack:
        backends = []
        for kind in kinds:
            postgres = analytics_url = None
            database_url = f"sqlite:///{folder / kind}.db"
            if kind == "postgresql":
                started = server(folder / "cluster", durable=True, user=as_user)
                postgres = stack.enter_context(started)
                database_url = postgres.url
            if kind == "clickhouse":
                analytics_url = f"clickhousedb:///draftgate?interface=chdb&path={folder / 'chdb'}"
            store = Store.open(database_url, analytics_url=analytics_url)
            backends.append(Backend(kind, stack.enter_context(closing(store)), postgres))
        yield backends


def fill(
    backends: Sequence[Backend], batches: Iterable[tuple[SpanRows, ...]]
) -> dict[str, dict[str, float]]:
    """Write every batch into every store; return the CPU time per span."""
    taken: dict[str, list[float]] = {one.kind: [] for one in backends}
    since = 0
    for batch in batches:
        for one in backends:
            before = one.cpu_s()
            assert one.store.write(Batch(spans=batch)) == len(batch)
            taken[one.kind].append((one.cpu_s() - before) / len(batch) * 1e6)
        since += len(batch)
        if since >= _EVERY:
            since = 0
            settle(backends)
    settle(backends)
    # The first batch is excluded: it creates connections and partitions.
    return {
        kind: {"median": round(median(times[1:] or times), 1), "batches": len(times)}
        for kind, times in taken.items()
    }


def settle(backends: Sequence[Backend]) -> None:
    """Fold all pending rollups and count all pairs."""
    for one in backends:
        while one.store.fold(at_most=10_000):
            pass
        while one.store.count_pairs(at_most=50_000):
            pass
