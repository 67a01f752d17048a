"""Count valid answers by cohort, load and arm, and find where the others break."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from collector.contract import AnswerValidity, StructuredAnswers
from evals.evidence.columns import BoolColumn, Evidence, Side
from evals.evidence.load_bands import load_band
from evals.stats.percentiles import percentile
from evals.stats.significant import significant

METRIC = "schema_validity"
Band = tuple[int, int]
_LEAST_SHARE = 0.05
"""Share of the judged answers from which on a load is listed: a run begins with fewer in flight."""


def structured_answers(evidence: Evidence) -> tuple[StructuredAnswers, ...]:
    """Return the counts of each scope in which an answer was judged.

    The scopes are all pairs and each cohort, each at any load, and at each load that has a
    twentieth of the answers, if several have.
    """
    baseline, candidate = _Judged(evidence.baseline), _Judged(evidence.candidate)
    found = (
        StructuredAnswers(
            cohort=cohort,
            in_flight=load,
            baseline=baseline.within(rows, load),
            candidate=candidate.within(rows, load),
        )
        for cohort, load, rows in _scopes(evidence, baseline, candidate)
    )
    return tuple(one for one in found if one.baseline.judged or one.candidate.judged)


class _Judged:
    """One arm's judged answers."""

    def __init__(self, side: Side) -> None:
        self._side = side
        scores = side.score(METRIC)
        self._judged: BoolColumn = side.answered & ~np.isnan(scores)
        self._invalid: BoolColumn = self._judged & (scores < 1)
        in_flight = side.column("concurrency")
        self._bands = [load_band(number) for number in in_flight]
        at, of = (side.numbers(f"{name}_{METRIC}") for name in ("fault_at", "fault_of"))
        self._at, self._share = at, at / np.where(of > 0, of, np.nan)

    @property
    def loads(self) -> Counter[Band]:
        """The number of judged answers by band of load."""
        pairs = zip(self._bands, self._judged, strict=True)
        return Counter(band for band, judged in pairs if judged and band is not None)

    def within(self, rows: BoolColumn, load: Band | None) -> AnswerValidity:
        """Return the counts of these pairs' answers, in one band of load or in all."""
        if load is not None:
            rows = rows & np.array([band == load for band in self._bands], dtype=np.bool_)
        invalid = self._invalid & rows
        labels = Counter(label for label in self._side.column(f"label_{METRIC}")[invalid] if label)
        p25, p50, p75 = (_percentile(self._at[invalid], q) for q in (0.25, 0.5, 0.75))
        return AnswerValidity(
            judged=int((self._judged & rows).sum()),
            invalid=int(invalid.sum()),
            faults=dict(sorted(labels.items())),
            position_p25=p25,
            position_p50=p50,
            position_p75=p75,
            share_p50=_percentile(self._share[invalid], 0.5),
        )


def _scopes(
    evidence: Evidence, *arms: _Judged
) -> Iterator[tuple[str | None, Band | None, BoolColumn]]:
    counts = sum((arm.loads for arm in arms), Counter[Band]())
    loads = sorted(band for band, n in counts.items() if n >= _LEAST_SHARE * counts.total())
    for cohort in (None, *evidence.all_cohorts):
        rows = evidence.scope(cohort)
        for load in (None, *(loads if len(loads) > 1 else ())):
            yield cohort, load, rows


def _percentile(values: NDArray[np.float64], q: float) -> float | None:
    known = values[~np.isnan(values)]
    return significant(percentile(known, q) or 0.0) if len(known) else None
