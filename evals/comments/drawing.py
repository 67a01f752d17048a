"""Draw a verdict's cells in plain text, which every forge shows as it is."""

from collections.abc import Sequence

from collector.contract import Finding
from evals.report.findings_by_margin import worst_first

_WIDTH = 33
_SHOWN = 12


def drawn(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each cell with an estimate, worst first, at most 12.

    The limits are a line with the estimate `●` on it, the margin is `┆`, no difference is `│`; an
    arrow is a limit that does not exist. Each line has its own scale.
    """
    cells = [one for one in worst_first(findings) if one.estimate is not None][:_SHOWN]
    names = [_name(one) for one in cells]
    widest = max((len(name) for name in names), default=0)
    return [
        f"{name:<{widest}}  {_line(one)}  {one.estimate:.3f}, wanted {_sign(one)} {one.margin:g}"
        for name, one in zip(names, cells, strict=True)
    ]


def _name(finding: Finding) -> str:
    cohort = "all" if finding.cohort is None else finding.cohort
    return f"{cohort} {finding.metric} {finding.stat}".replace("`", "'")


def _sign(finding: Finding) -> str:
    return "≤" if finding.bound == "max" else "≥"


def _line(f: Finding) -> str:
    equal = 1.0 if f.unit == "ratio" else 0.0
    known = [x for x in (f.estimate, f.lower, f.upper, f.margin, equal) if x is not None]
    low, high = min(known), max(known)
    spread = (high - low) or 1.0

    def column(value: float) -> int:
        return 1 + round((value - low) / spread * (_WIDTH - 3))

    line = [" "] * _WIDTH
    first = 0 if f.lower is None else column(f.lower)
    last = _WIDTH - 1 if f.upper is None else column(f.upper)
    line[first : last + 1] = ["─"] * (last + 1 - first)
    line[column(equal)], line[column(f.margin)] = "│", "┆"
    if f.lower is None:
        line[0] = "←"
    if f.upper is None:
        line[-1] = "→"
    if f.estimate is not None:
        line[column(f.estimate)] = "●"
    return "".join(line)
