"""The router's counters, and their exposition for Prometheus."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


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


_FAMILIES = (
    ("responses", "Requests answered", ("status",)),
    ("refusals", "Requests refused", ("code",)),
    ("failures", "Attempts failed", ("arm", "error_type")),
    ("fallbacks", "Requests that fell back", ("reason",)),
    ("retries", "Requests sent again", ("arm",)),
    ("mirrors", "Mirrored requests", ("outcome",)),
    ("spans", "Spans", ("outcome",)),
    ("unread", "Answers too large to be read", ()),
    ("unread_requests", "Requests too large to be read", ()),
)
"""Name, help and labels of each counter."""


@dataclass
class Exposition(Collector):
    """All counters and gauges, as Prometheus' client collects them."""

    counts: Counts
    gauges: Mapping[str, float]

    def collect(self) -> Iterator[Metric]:
        """Yield the counters, then the gauges."""
        for name, words, labels in _FAMILIES:
            family = CounterMetricFamily(f"draftgate_router_{name}", words, labels=labels)
            counted = getattr(self.counts, name)
            for found, value in (counted if labels else {(): counted}).items():
                family.add_metric([found] if isinstance(found, str) else found, value)
            yield family
        for name, value in self.gauges.items():
            yield GaugeMetricFamily(f"draftgate_router_{name}", name.replace("_", " "), value)
