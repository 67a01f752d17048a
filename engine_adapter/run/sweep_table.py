"""The result table of a sweep, from the collector's summaries of its rollouts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from engine_adapter.collector_access import CollectorAccess
from engine_adapter.errors import TelemetryError
from engine_adapter.run.sweep import Configuration

_SUMS = (
    "generations",
    "errors",
    "output_tokens",
    "e2e_s_sum",
    "e2e_s_count",
    "ttft_s_sum",
    "ttft_s_count",
    "spec_steps",
    "spec_draft_tokens",
    "spec_accepted_tokens",
)


class Row(NamedTuple):
    """The result of one configuration; a ratio that was not measured is `None`."""

    rollout: str
    k: int | None
    concurrency: int | None
    generations: int
    failed: int
    e2e_ratio: float | None
    """The candidate's mean end-to-end time over the baseline's."""
    ttft_ratio: float | None
    """The candidate's mean time to first token over the baseline's."""
    acceptance_rate: float | None
    """Accepted over proposed draft tokens, of the candidate."""
    acceptance_length: float | None
    """The candidate's tokens per verify step, the bonus token included."""
    drafts_per_step: float | None
    """The candidate's draft tokens per verify step, which shows a k that adapts to the load."""


def row(configuration: Configuration, collector_url: str) -> Row:
    """Return the row of a configuration that has run; raises `TelemetryError`."""
    name = configuration.rollout.rollout
    baseline, candidate = _arms(collector_url, name)
    slow, fast = _mean(baseline, "e2e_s"), _mean(candidate, "e2e_s")
    first, last = _mean(baseline, "ttft_s"), _mean(candidate, "ttft_s")
    accepted, steps = candidate.get("spec_accepted_tokens"), candidate.get("spec_steps")
    return Row(
        rollout=name,
        k=configuration.k,
        concurrency=configuration.concurrency,
        generations=int((baseline["generations"] or 0) + (candidate["generations"] or 0)),
        failed=int((baseline["errors"] or 0) + (candidate["errors"] or 0)),
        e2e_ratio=_ratio(fast, slow),
        ttft_ratio=_ratio(last, first),
        acceptance_rate=_ratio(accepted, candidate.get("spec_draft_tokens")),
        drafts_per_step=_ratio(candidate.get("spec_draft_tokens"), steps),
        acceptance_length=None if accepted is None or not steps else 1 + accepted / steps,
    )


Sums = Mapping[str, float | None]


def _arms(collector_url: str, rollout: str) -> tuple[Sums, Sums]:
    access = CollectorAccess.from_environment()
    url = f"{collector_url.rstrip('/')}/api/v1/rollouts/{quote(rollout, safe='')}/summary"
    try:
        answer = httpx.get(url, headers=access.headers, verify=access.tls(), timeout=60)
        answer.raise_for_status()
        summaries = answer.json()["summary"]
    except (httpx.HTTPError, ValueError, KeyError) as exc:
        raise TelemetryError(
            f"{url}: the sweep is stored, and its summary cannot be read: {exc}"
        ) from exc
    return _summed(summaries, "baseline"), _summed(summaries, "candidate")


def _summed(summaries: Sequence[Mapping[str, Any]], arm: str) -> Sums:  # Any: the API's JSON
    """Return an arm's sums over its cohorts; a sum that no cohort has is `None`."""
    cohorts = [summary for summary in summaries if summary["arm"] == arm]
    return {
        name: sum(found) if (found := [c[name] for c in cohorts if c[name] is not None]) else None
        for name in _SUMS
    }


def _mean(sums: Sums, metric: str) -> float | None:
    return _ratio(sums[f"{metric}_sum"], sums[f"{metric}_count"])


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole
