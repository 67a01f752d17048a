"""The server's true times, and the errors of a client's times."""

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """One answer's times in seconds, recorded by the server or a client."""

    ttft_s: float
    gaps_s: Sequence[float]


def of_server(at_s: float, written_s: Sequence[float], chunks: int) -> Answer:
    """Return an answer's true times, from the request's arrival to each content chunk's write."""
    content = written_s[:chunks]
    return Answer(content[0] - at_s, [later - earlier for earlier, later in pairwise(content)])


def errors(
    true: Sequence[Answer], measured: Sequence[Answer], chunks: int
) -> Mapping[str, Any]:  # Any: JSON
    """Return the errors of paired answers in milliseconds."""
    pairs = list(zip(true, measured, strict=True))
    whole = [(a, b) for a, b in pairs if len(b.gaps_s) == chunks - 1]
    return {
        "answers": len(pairs),
        "answers_with_every_chunk": len(whole),
        "ttft_error_ms": _spread([abs(b.ttft_s - a.ttft_s) for a, b in pairs]),
        "gap_error_ms": _spread(
            [abs(y - x) for a, b in whole for x, y in zip(a.gaps_s, b.gaps_s, strict=True)]
        ),
    }


def differences(true: Sequence[Answer], measured: Sequence[Answer]) -> Mapping[str, Any]:
    """Return the differences of two unpaired sets of answers, in milliseconds."""
    return {
        "ttft_median_error_ms": _ms(_median(measured, "ttft") - _median(true, "ttft")),
        "ttft_p99_error_ms": _ms(_p99(measured, "ttft") - _p99(true, "ttft")),
        "mean_gap_median_error_ms": _ms(_median(measured, "gap") - _median(true, "gap")),
        "mean_gap_p99_error_ms": _ms(_p99(measured, "gap") - _p99(true, "gap")),
    }


def _values(answers: Sequence[Answer], what: str) -> list[float]:
    if what == "ttft":
        return [answer.ttft_s for answer in answers]
    return [statistics.fmean(answer.gaps_s) for answer in answers if answer.gaps_s]


def _median(answers: Sequence[Answer], what: str) -> float:
    return statistics.median(_values(answers, what))


def _p99(answers: Sequence[Answer], what: str) -> float:
    return _rank(_values(answers, what), 0.99)


def _spread(seconds: Sequence[float]) -> dict[str, float | None]:
    if not seconds:
        return {"p50": None, "p99": None}
    return {"p50": _ms(_rank(seconds, 0.5)), "p99": _ms(_rank(seconds, 0.99))}


def _rank(seconds: Sequence[float], share: float) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 4)
