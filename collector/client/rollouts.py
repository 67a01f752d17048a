"""Client requests for rollouts and the summaries of their arms."""

from datetime import datetime

from collector.client.connection import ApiResource, Query, rollout_path
from collector.contract import ArmSummary, RolloutOverview, TimeBucket
from collector.errors import ClientError

Instant = datetime | float
"""A datetime with a time zone, or Unix seconds."""


class RolloutRequests(ApiResource):
    """Rollouts and the summaries of their arms."""

    def rollouts(self) -> tuple[RolloutOverview, ...]:
        """Return every rollout that has a generation, by name."""
        return self._connection.list(RolloutOverview, "rollouts", "/api/v1/rollouts")

    def summary(
        self, rollout: str, *, start: Instant | None = None, end: Instant | None = None
    ) -> tuple[ArmSummary, ...]:
        """Return counts, sums and percentiles, one row per cohort and arm.

        Covers generations that started in [start, end), or all; the window is widened to whole
        minutes.
        """
        path = rollout_path(rollout, "summary")
        return self._connection.list(ArmSummary, "summary", path, _window(start, end))

    def timeseries(
        self,
        rollout: str,
        *,
        step: str,
        start: Instant | None = None,
        end: Instant | None = None,
        cohort: str | None = None,
        counts_only: bool = False,
    ) -> tuple[TimeBucket, ...]:
        """Return the summary per step: `minute`, `hour` or `day` (UTC).

        The window is widened to whole steps. A step without generations has no row. `counts_only`
        omits the measured metrics, which are most of the work.
        """
        path = rollout_path(rollout, "timeseries")
        query = {
            "step": step,
            "cohort": cohort,
            "counts_only": counts_only or None,
            **_window(start, end),
        }
        return self._connection.list(TimeBucket, "timeseries", path, query)


def _window(start: Instant | None, end: Instant | None) -> Query:
    return {"start": _instant("start", start), "end": _instant("end", end)}


def _instant(name: str, given: Instant | None) -> str | None:
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ClientError(f"{name}={given}: has no time zone; wanted one, such as UTC")
        return given.isoformat()
    return None if given is None else repr(given)
