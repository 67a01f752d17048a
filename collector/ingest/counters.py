"""The collector's counters for `GET /metrics`, incremented where the events happen."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    HistogramMetricFamily,
    Metric,
)

_COMMIT_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class SignalCounts:
    """Counts of one signal's items: spans, log records or metric points."""

    def __init__(self) -> None:
        self.received = 0
        """Items in requests that were answered as stored."""
        self.ignored = 0
        """Of these, items of a kind that is not stored: other logs, other metrics."""
        self.rejected: Counter[str] = Counter()
        """Of these, items rejected in the partial success, by the unusable field."""
        self.refused: Counter[str] = Counter()
        """Requests refused as a whole, by the name of their gRPC status code."""


class Durations:
    """A histogram of durations."""

    def __init__(self, buckets_s: tuple[float, ...]) -> None:
        self.buckets_s = buckets_s
        self.counts = [0] * (len(buckets_s) + 1)
        self.sum_s = 0.0

    def add(self, duration_s: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(self.buckets_s, duration_s)] += 1
        self.sum_s += duration_s


class Counters:
    """All counters since the start of the process; may be read at any time."""

    def __init__(self) -> None:
        self.spans = SignalCounts()
        self.log_records = SignalCounts()
        self.metric_points = SignalCounts()
        self.spans_stored = 0
        self.spans_duplicate = 0
        self.quality_violations: Counter[str] = Counter()
        """By quality flag of received generations."""
        self.requests: Counter[tuple[str, str, str]] = Counter()
        """By method, route and status."""
        self.refusals: Counter[str] = Counter()
        """Requests denied by access control, by reason."""
        self.notifications: Counter[tuple[str, str]] = Counter()
        """Attempts to send one, by target and outcome."""
        self.commits = Durations(_COMMIT_BUCKETS_S)
        self.commits_failed = 0
        self._lock = Lock()  # HTTP counts in the event loop, gRPC in its threads

    def answered(
        self,
        counts: SignalCounts,
        *,
        received: int,
        ignored: int,
        rejected: Iterable[str],
        flags: Iterable[str],
    ) -> None:
        """Count a request that was answered as stored; call it once per request."""
        with self._lock:
            counts.received += received
            counts.ignored += ignored
            counts.rejected.update(reason.partition(":")[0] for reason in rejected)
            self.quality_violations.update(map(_bounded, flags))

    def refused(self, counts: SignalCounts, code: str) -> None:
        """Count a request that was refused as a whole."""
        with self._lock:
            counts.refused[code] += 1

    def committed(self, sent: int, stored: int, duration_s: float) -> None:
        """Count a transaction: the spans in it, and those that were new."""
        self.spans_stored += stored
        self.spans_duplicate += sent - stored
        self.commits.add(duration_s)

    def notified(self, target: str, why_not: str | None) -> None:
        """Count an attempt to send a notification; None: it was received."""
        self.notifications[target, "received" if why_not is None else "failed"] += 1

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for Prometheus."""
        for signal, counts in (
            ("spans", self.spans),
            ("log_records", self.log_records),
            ("metric_points", self.metric_points),
        ):
            yield from _signal(signal, counts)
        yield _total("spans_stored", "Spans that were committed.", self.spans_stored)
        yield _total("spans_duplicate", "Spans that were known already.", self.spans_duplicate)
        yield _by(
            "quality_violations",
            "Laws of the wire contract that a received generation breaks.",
            "flag",
            self.quality_violations,
        )
        yield _by("refusals", "Requests that access was denied to.", "reason", self.refusals)
        yield _by_several(
            "requests", "Requests answered.", ("method", "route", "status"), self.requests
        )
        yield _by_several(
            "notification_attempts",
            "Attempts to send a notification.",
            ("target", "outcome"),
            self.notifications,
        )
        yield _total(
            "commits_failed", "Transactions that the database refused.", self.commits_failed
        )
        yield _commit_durations(self.commits)


def _signal(name: str, counts: SignalCounts) -> Iterator[Metric]:
    words = name.replace("_", " ").capitalize()
    yield _total(
        f"{name}_received", f"{words} that arrived in requests that were stored.", counts.received
    )
    yield _total(f"{name}_ignored", f"{words} of a kind that is not stored.", counts.ignored)
    yield _by(f"{name}_rejected", f"{words} that cannot be stored.", "reason", counts.rejected)
    yield _by(f"{name}_requests_refused", f"{words}: requests refused.", "code", counts.refused)


def _bounded(flag: str) -> str:
    """Return a label for the flag without names chosen by senders, to bound the label values."""
    head, dim, _ = flag.partition("draftgate.dim.")
    return f"{head}{dim}*" if dim else flag


def _total(name: str, words: str, value: int) -> CounterMetricFamily:
    return CounterMetricFamily(f"draftgate_{name}", words, value=value)


def _by(name: str, words: str, label: str, counts: Counter[str]) -> CounterMetricFamily:
    of_each = {(value,): count for value, count in list(counts.items())}
    return _by_several(name, words, (label,), of_each)


def _by_several(
    name: str,
    words: str,
    labels: tuple[str, ...],
    counts: Mapping[Any, int],  # Any: a tuple of texts
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"draftgate_{name}", words, labels=labels)
    for values, count in list(counts.items()):
        family.add_metric(values, count)
    return family


def _commit_durations(durations: Durations) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "draftgate_commit_duration_seconds", "Duration of a transaction."
    )
    counts, total, buckets = list(durations.counts), 0, []
    for bound, count in zip((*map(str, durations.buckets_s), "+Inf"), counts, strict=True):
        total += count
        buckets.append((bound, total))
    family.add_metric((), buckets, durations.sum_s)
    return family
