"""Exact latency percentiles of each arm."""

from collections.abc import Mapping

import numpy as np

from collector.contract import LATENCIES, P99_FROM, Arm, ArmLatency, Percentiles
from evals.evidence.columns import BoolColumn, Evidence, FloatColumn, Side
from evals.stats.percentiles import percentile


def latency(evidence: Evidence, *, paired: bool = True) -> tuple[ArmLatency, ...]:
    """Return each arm's R-7 percentiles in seconds: all pairs first, then each cohort.

    Over the generations that succeeded, of complete pairs if the arms are paired; errors are
    counted separately. Unknown and contract-breaking times are left out; n is the number left.
    """
    seconds = {arm: {m: evidence.side(arm).latency_s(m) for m in LATENCIES} for arm in Arm}
    counted = {arm: evidence.complete if paired else evidence.side(arm).present for arm in Arm}
    return tuple(
        _of(evidence.side(arm), seconds[arm], counted[arm] & evidence.scope(cohort), arm, cohort)
        for cohort in (None, *evidence.all_cohorts)
        for arm in Arm
    )


def _of(
    side: Side, seconds: Mapping[str, FloatColumn], scope: BoolColumn, arm: Arm, cohort: str | None
) -> ArmLatency:
    answered = scope & side.answered
    return ArmLatency(
        cohort=cohort,
        arm=arm,
        generations=int(scope.sum()),
        errors=int((scope & side.failed).sum()),
        **{f"{metric}_s": percentiles(times[answered]) for metric, times in seconds.items()},
    )


def percentiles(values: FloatColumn) -> Percentiles:
    """Return the percentiles of the values that are not NaN."""
    known = values[~np.isnan(values)]
    return Percentiles(
        n=len(known),
        p50=percentile(known, 0.50),
        p95=percentile(known, 0.95),
        p99=percentile(known, 0.99) if len(known) >= P99_FROM else None,
    )
