"""The router's counters, and their exposition for Prometheus."""

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class Counts:
    """All counters, from the start of the process."""

    def __init__(self) -> None:
        self.responses: Counter[str] = Counter()
        """Answered users' requests, by status."""
        self.refusals: Counter[str] = Counter()
        """Refused users' requests, by error code."""
        self.failures: Counter[tuple[str, str]] = Counter()
        """Failed attempts, including mirrored ones, by arm and error type."""
        self.fallbacks: Counter[str] = Counter()
        """Requests that the baseline answered because the candidate failed, by error type."""
        self.retries: Counter[str] = Counter()
        """Requests that were sent again, by arm."""
        self.mirrors: Counter[str] = Counter()
        """Mirrored requests, by outcome."""
        self.spans: Counter[str] = Counter()
        """Spans, by outcome."""
        self.unread = 0
        """Answers that were too large, whole or in one event, to be parsed for telemetry."""
        self.unread_requests = 0
        """Requests that went to the baseline because they could not be parsed."""


class Gauges(dict[str, float]):
    """Current values, by metric name."""


def exposition(counts: Counts, gauges: Gauges) -> bytes:
    """Return all counters and gauges in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Families(counts, gauges))
    return generate_latest(registry)


class _Families:
    def __init__(self, counts: Counts, gauges: Gauges) -> None:
        self._counts = counts
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        yield _family("responses", "Requests answered", ("status",), _single(counts.responses))
        yield _family("refusals", "Requests refused", ("code",), _single(counts.refusals))
        yield _family("failures", "Attempts failed", ("arm", "error_type"), counts.failures.items())
        yield _family(
            "fallbacks", "Requests that fell back", ("reason",), _single(counts.fallbacks)
        )
        yield _family("retries", "Requests sent again", ("arm",), _single(counts.retries))
        yield _family("mirrors", "Mirrored requests", ("outcome",), _single(counts.mirrors))
        yield _family("spans", "Spans", ("outcome",), _single(counts.spans))
        yield _family("unread", "Answers too large to be read", (), [((), counts.unread)])
        unread = [((), counts.unread_requests)]
        yield _family("unread_requests", "Requests too large to be read", (), unread)
        for name, value in self._gauges.items():
            gauge = GaugeMetricFamily(f"draftgate_router_{name}", name.replace("_", " "))
            gauge.add_metric([], value)
            yield gauge


def _single(counter: Counter[str]) -> Iterable[tuple[tuple[str], int]]:
    return [((label,), value) for label, value in counter.items()]


def _family(
    name: str,
    help_text: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], int]],
) -> Metric:
    family = CounterMetricFamily(f"draftgate_router_{name}", help_text, labels=labels)
    for found, value in values:
        family.add_metric(list(found), value)
    return family
