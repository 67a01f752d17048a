"""Covariates of split traffic, known before an arm answers: the prompt's length and the hour."""

import numpy as np

from evals.evidence.columns import BoolColumn, FloatColumn, Side

_DAY_NS = 86_400 * 10**9


def covariates(side: Side, rows: BoolColumn) -> FloatColumn:
    """Return one row per request: log of its input tokens, and sine and cosine of the hour.

    An unknown length is set to the average, and marked in another column.
    """
    tokens = side.numbers("input_tokens")
    length = np.log(np.where(tokens > 0, tokens, np.nan))[rows]
    unknown = np.isnan(length)
    mean = 0.0 if unknown.all() else float(length[~unknown].mean())
    turn = 2 * np.pi * (side.start_unix_ns[rows] % _DAY_NS) / _DAY_NS
    return np.column_stack(
        (np.where(unknown, mean, length), unknown.astype(np.float64), np.sin(turn), np.cos(turn))
    )


def varying(both: tuple[FloatColumn, FloatColumn]) -> BoolColumn:
    """Return which columns vary between requests, in both arms."""
    return np.asarray(np.all([np.ptp(one, axis=0) > 1e-9 for one in both], axis=0))
