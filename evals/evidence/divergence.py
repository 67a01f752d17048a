"""Count the greedy answers that differ between the arms, and where they first differ."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from collector.contract import DivergedAnswers
from evals.evidence.columns import BoolColumn, Counts, Evidence
from evals.evidence.load_bands import load_band
from evals.stats.percentiles import percentile
from evals.stats.significant import significant


class _Compared(NamedTuple):
    """Comparisons, with one entry per pair."""

    compared: BoolColumn
    diverged: BoolColumn
    position: Counts
    """−1 if unknown."""


def divergence(evidence: Evidence) -> tuple[DivergedAnswers, ...]:
    """Return the counts of all pairs, each cohort, and each load if several were recorded.

    From the compared texts if a lossless policy had them compared, otherwise from the scores of
    `parity`, which have no position.
    """
    found = _compared(evidence)
    return tuple(
        _of(found, rows, cohort, load)
        for cohort, load, rows in _scopes(evidence)
        if (found.compared & rows).any()
    )


def _compared(evidence: Evidence) -> _Compared:
    texts = evidence.divergences
    if texts is not None and (texts.compared >= 0).any():
        return _Compared(texts.compared >= 0, texts.position >= 0, texts.position)
    scores = evidence.scores("parity")
    unknown = np.full(len(evidence), -1, dtype=np.int64)
    both = scores.both & evidence.candidate.answered & evidence.baseline.answered
    return _Compared(both, both & (scores.candidate < 1), unknown)


def _scopes(
    evidence: Evidence,
) -> Iterator[tuple[str | None, tuple[int, int] | None, BoolColumn]]:
    for cohort in (None, *evidence.all_cohorts):
        yield cohort, None, evidence.scope(cohort)
    in_flight = evidence.candidate.column("concurrency")
    bands = [load_band(concurrency) for concurrency in in_flight]
    known = sorted({band for band in bands if band is not None})
    for load in known if len(known) > 1 else ():
        yield None, load, np.array([band == load for band in bands], dtype=np.bool_)


def _of(
    found: _Compared, rows: BoolColumn, cohort: str | None, load: tuple[int, int] | None
) -> DivergedAnswers:
    diverged = found.diverged & rows
    at = found.position[diverged & (found.position >= 0)].astype(np.float64)
    quartiles = (
        None if not len(at) else significant(percentile(at, q) or 0.0) for q in (0.25, 0.5, 0.75)
    )
    p25, p50, p75 = quartiles
    return DivergedAnswers(
        cohort=cohort,
        in_flight=load,
        compared=int((found.compared & rows).sum()),
        diverged=int(diverged.sum()),
        position_p25=p25,
        position_p50=p50,
        position_p75=p75,
    )
