"""Check that times are real measurements: consistent, with distinct starts, and not copied."""

from collections.abc import Iterator

import numpy as np

from collector.contract import Reason
from evals.evidence.columns import BoolColumn, Counts, Evidence, FloatColumn, Side
from evals.gate.invented_times import ALIKE_SHARE, FEWEST
from evals.gate.measured import MAX_UNBOUNDED_SHARE, Obstacle

_SLACK_S = 0.02
"""Seconds that any span may last beyond its last token."""
_OFF, _FAR_OFF = 1.25, 2.0
"""Maximum ratios, either way, of an answer's duration and the time of its tokens."""
_OFF_SHARE = 0.1
"""Maximum share of an arm's answers beyond `_OFF`, of which few may be beyond `_FAR_OFF`."""


def contradictions(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield an obstacle if an arm's answers did not last as long as their tokens took."""
    for side, arm in evidence.arms:
        with np.errstate(invalid="ignore"):
            tokens_s = side.seconds["ttft"] + side.seconds["tpot"] * (side.output_tokens - 1)
            known = np.isfinite(tokens_s + side.latency_s("e2e")) & (side.output_tokens > 1)
        streamed, lasted = tokens_s[known], side.seconds["e2e"][known]
        ratio = np.exp(np.abs(np.log(np.maximum(streamed, 1e-9) / lasted)))
        ratio[np.abs(streamed - lasted) <= _SLACK_S] = 1.0
        off, far = ratio > _OFF, ratio > _FAR_OFF
        few = far.sum() <= MAX_UNBOUNDED_SHARE * len(far)
        if few and off.sum() <= _OFF_SHARE * len(off):
            continue
        first = int(np.argmax(ratio))
        words = (
            f"{int(off.sum()):,} of the {arm}'s {len(off):,} answers did not last as long as their "
            "time to first token and times per output token add up to, such as "
            f"{lasted[first]:.3g} s, not {streamed[first]:.3g} s"
        )
        yield Obstacle(Reason.QUALITY, words, bars_fail=False)


def copies(evidence: Evidence, *, paired: bool) -> Iterator[Obstacle]:
    """Yield an obstacle if times were copied between pairs, between arms, or within an arm."""
    for what, times in timed_rows(evidence, paired=paired):
        words = again_words(what, len(times), len(times) - len(np.unique(times, axis=0)))
        if words is not None:
            yield Obstacle(Reason.MISMATCH, words)
    yield from copies_at_once(evidence)


def copies_at_once(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield an obstacle if an arm's times are the other's, or one and the same in many answers."""
    times = {arm: _times(side) for side, arm in evidence.arms}
    both = np.column_stack((times["baseline"], times["candidate"]))
    pairs = both[np.isfinite(both).all(axis=1)]
    replayed = int((pairs[:, :3] == pairs[:, 3:]).all(axis=1).sum())
    if replayed > MAX_UNBOUNDED_SHARE * len(pairs):
        words = f"in {replayed:,} of {len(pairs):,} pairs both arms have the very same times"
        yield Obstacle(Reason.MISMATCH, f"{words}: one was copied from the other")
    for arm, own in times.items():
        known = own[np.isfinite(own).all(axis=1)]
        most = _most_alike(known)
        if most:
            words = f"{most:,} of the {arm}'s {len(known):,} answers have the very same times"
            yield Obstacle(Reason.MISMATCH, f"{words}, which no measurement has")


def timed_rows(evidence: Evidence, *, paired: bool) -> Iterator[tuple[str, FloatColumn]]:
    """Yield the times of pairs, or of each arm's answers, of which no two are alike.

    One row each; −1 if a time is unknown. Rows that may be alike by chance are left out: with a
    single time in whole microseconds, or with durations in whole milliseconds and another unknown
    time.
    """
    times = {arm: _times(side) for side, arm in evidence.arms}
    rows = {f"answers of the {arm}": own for arm, own in times.items()}
    for what, every in ({"pairs": np.column_stack([*times.values()])} if paired else rows).items():
        known, lasted = np.isfinite(every), every[:, 2::3]
        enough = known.all(axis=1) & (every.shape[1] > 3)
        enough |= (known.sum(axis=1) > 1) & ~_in_steps(lasted, 1e-3)
        enough |= ~_in_steps(lasted, 1e-6)
        ended = np.isfinite(lasted).all(axis=1)
        yield what, np.nan_to_num(every[ended & enough], nan=-1.0, posinf=-1.0)


def again_words(what: str, rows: int, again: int) -> str | None:
    """Describe that rows have the times of others; `None` if hardly any do."""
    if again <= MAX_UNBOUNDED_SHARE * rows:
        return None
    return (
        f"{again:,} of {rows:,} {what} have the very times of an earlier one: copies are no "
        "evidence"
    )


def no_moments(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield an obstacle if an arm's requests have the same start, so that they have no order."""
    for side, arm in evidence.arms:
        starts = side.start_unix_ns[side.present & (side.start_unix_ns >= 0)]
        most = _most_alike(starts[:, None])
        if most:
            words = (
                f"{most:,} of the {arm}'s {len(starts):,} requests start at one and the same "
                "nanosecond, so that nothing tells how requests depend on each other in time"
            )
            yield Obstacle(Reason.DEPENDENCE, words)


def _times(side: Side) -> FloatColumn:
    """Return an arm's times, one row per answer: first token, per token, end to end."""
    return np.column_stack([side.latency_s(name) for name in ("ttft", "tpot", "e2e")])


def _in_steps(times: FloatColumn, step_s: float) -> BoolColumn:
    """Return in which rows every time is a multiple of the step, up to 0.1 ns."""
    with np.errstate(invalid="ignore"):
        off_s = np.abs(times - np.round(times / step_s) * step_s)
    return np.asarray((off_s < 1e-10).all(axis=1))


def _most_alike(rows: FloatColumn | Counts) -> int:
    """Return the number of equal rows, 0 if they may be equal by chance."""
    if len(rows) < FEWEST:
        return 0
    most = int(np.unique(rows, axis=0, return_counts=True)[1].max())
    return most if most > ALIKE_SHARE * len(rows) else 0
