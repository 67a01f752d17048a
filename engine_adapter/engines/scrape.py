"""Speculation counts of one request from scrapes of `/metrics` before and after it.

For engines whose answers have no speculation counts. The difference is the request's own only if
no other request ran between the scrapes. This is checked: the engine must be idle in both, and
must have finished one request with exactly this answer's tokens in between.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

Labels = Mapping[str, str]


class Scrape:
    """The samples of one scrape."""

    def __init__(self, samples: Mapping[str, list[tuple[Labels, float]]]) -> None:
        self._samples = samples

    @classmethod
    def parse(cls, exposition: str) -> "Scrape":
        """Parse Prometheus' text format; raises `ValueError` for anything else."""
        samples: dict[str, list[tuple[Labels, float]]] = defaultdict(list)
        for family in text_string_to_metric_families(exposition):
            for sample in family.samples:
                samples[sample.name].append((sample.labels, sample.value))
        return cls(samples)

    def total(self, name: str) -> float | None:
        """Return the sum over all labels; `None` if the engine has no such sample."""
        found = self._samples.get(name)
        return sum(value for _, value in found) if found else None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Return the sum for each value of a label."""
        sums: dict[str, float] = defaultdict(float)
        for labels, value in self._samples.get(name, ()):
            if label in labels:
                sums[labels[label]] += value
        return dict(sums)

    def label(self, name: str, label: str) -> str | None:
        """Return a label of the first sample of a metric, such as a flag in an info metric."""
        found = self._samples.get(name)
        return found[0][0].get(label) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationCounters:
    """The names of an engine's counters; `None` if it lacks one."""

    generated: str
    """Counts output tokens."""
    requests: str | None
    """Counts finished requests; llama.cpp has none."""
    in_flight: tuple[str, ...]
    """Gauges that are 0 while the engine is idle."""
    steps: str | None = None
    drafted: str | None = None
    accepted: str | None = None
    drafted_per_position: tuple[str, str] | None = None
    """Name, and the label that holds the position."""
    accepted_per_position: tuple[str, str] | None = None
    """Name, and the label that holds the position."""
    steps_include_prefill: bool = False
    """Whether `steps` also counts each request's prefill."""


class ScrapedCounts(NamedTuple):
    """Counts between two scrapes; `None` if the engine has no counter or it was reset."""

    steps: int | None
    draft_tokens: int | None
    accepted_tokens: int | None
    draft_tokens_per_pos: tuple[int, ...] | None
    accepted_tokens_per_pos: tuple[int, ...] | None


def request_counts(
    before: Scrape, after: Scrape, counters: SpeculationCounters, output_tokens: int | None
) -> ScrapedCounts | None:
    """Return the counts of the single request between two scrapes.

    `None` if the engine restarted, has not counted this request yet, or counted others too.
    """
    difference = _Growth(before, after)
    busy = [gauge for gauge in counters.in_flight if before.total(gauge) or after.total(gauge)]
    if busy or output_tokens is None or difference.of(counters.generated) != output_tokens:
        return None
    if counters.requests is not None and difference.of(counters.requests) != 1:
        return None
    return counts_between(before, after, counters)


def counts_between(before: Scrape, after: Scrape, counters: SpeculationCounters) -> ScrapedCounts:
    """Return the counts of all requests between two scrapes."""
    difference = _Growth(before, after)
    steps = difference.of(counters.steps)
    if steps is not None and counters.steps_include_prefill:
        steps -= difference.of(counters.requests) or 0
    return ScrapedCounts(
        steps=steps,
        draft_tokens=difference.of(counters.drafted),
        accepted_tokens=difference.of(counters.accepted),
        draft_tokens_per_pos=difference.per_position(counters.drafted_per_position),
        accepted_tokens_per_pos=difference.per_position(counters.accepted_per_position),
    )


class _Growth(NamedTuple):
    before: Scrape
    after: Scrape

    def of(self, name: str | None) -> int | None:
        """Return a counter's growth; a counter missing before began at 0.

        `None` if the counter is missing after, fell, or grew by a fraction.
        """
        if name is None or (now := self.after.total(name)) is None:
            return None
        grown = now - (self.before.total(name) or 0)
        return int(grown) if grown >= 0 and grown == int(grown) else None

    def per_position(self, named: tuple[str, str] | None) -> tuple[int, ...] | None:
        """Return the growth at each position, in order of position."""
        if named is None:
            return None
        then, now = self.before.by_label(*named), self.after.by_label(*named)
        if not now or not all(position.isdigit() for position in now):
            return None
        grown = [now[position] - then.get(position, 0) for position in sorted(now, key=int)]
        return tuple(map(int, grown)) if min(grown) >= 0 else None
