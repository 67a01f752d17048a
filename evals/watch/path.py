"""The history of a cell as a few points, denser for recent times."""

from dataclasses import replace
from typing import TypeVar

from collector.contract import EProcess, WatchCell, WatchPath
from evals.stats.significant import significant

_MOST = 64


def extended(cell: WatchCell, unix_ns: int) -> WatchCell:
    """Add a point if the cell has counted more; when full, thin out the older half."""
    path = cell.path
    if cell.estimate is None or (path.n and path.n[-1] == cell.n):
        return cell
    e_values = cell.passing is not None and cell.failing is not None
    return replace(
        cell,
        path=WatchPath(
            time_unix_ns=_thinned((*path.time_unix_ns, unix_ns)),
            n=_thinned((*path.n, cell.n)),
            estimate=_thinned((*path.estimate, _rounded(cell.estimate))),
            log_e_pass=_thinned((*path.log_e_pass, *_log_e(cell.passing))) if e_values else (),
            log_e_fail=_thinned((*path.log_e_fail, *_log_e(cell.failing))) if e_values else (),
        ),
    )


def _log_e(process: EProcess | None) -> tuple[float, ...]:
    return () if process is None else (_rounded(process.log_e),)


def _rounded(value: float) -> float:
    return significant(value, 5) or 0.0


T = TypeVar("T", int, float)


def _thinned(column: tuple[T, ...]) -> tuple[T, ...]:
    if len(column) <= _MOST:
        return column
    return column[: _MOST // 2 : 2] + column[_MOST // 2 :]
