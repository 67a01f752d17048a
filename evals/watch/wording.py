"""Describe a watched cell in words, with units, for the engineer on call."""

import math

from collector.contract import Outcome, Reason, Watch, WatchCell
from collector.nouns import counted
from evals.policy import Policy
from evals.policy.rules import METRICS
from evals.report.number_words import difference_text, ratio_text
from evals.watch.bounded import nothing_at_stake
from evals.watch.plan import EXCEEDANCE

_WHY = {
    Reason.TOO_FEW: "not decided yet",
    Reason.TOO_CLOSE: "too close to the margin for any number of pairs to decide",
    Reason.MISSING: "scores are missing",
    Reason.SRM: "the arms' counts are not in the design's shares",
    Reason.LAUNCHES: "too few launches of the servers, or launches that differ too much",
    Reason.AA: "the policy requires an A/A control, which `draftgate gate` takes",
    Reason.DRIFT: "the arms' difference changed with time",
    Reason.CLIENT: "the load generator lagged",
    Reason.QUALITY: "times broke the contract",
    Reason.DEPENDENCE: "requests depend on each other over too few stretches, or too long ones",
    Reason.MISMATCH: "the arms were not asked, served or judged alike",
    Reason.TREATMENT: "no count shows that the candidate drafted, or it accepts with loss",
    Reason.STATE: "an arm's answers depend on the requests before them",
}


def message(cell: WatchCell, watch: Watch) -> str:
    """Return a cell in one sentence."""
    parts = [f"{subject(cell, watch)}: {numbers(cell)}margin {margin(cell)}"]
    if (evidence := e_values(cell)) is not None:
        parts.append(evidence)
    if cell.looks:
        parts.append(next_look(cell))
    tail = cell.outcome.value
    if cell.outcome is Outcome.INCONCLUSIVE:
        tail = reason_words(cell)
    return f"{', '.join(parts)}: {tail}"


def reason_words(cell: WatchCell) -> str:
    """Return why a cell is undecided."""
    if cell.because is not None:
        return cell.because
    taken = [one for one in cell.looks if one.outcome is not None]
    if taken and taken[-1].message is not None:
        return taken[-1].message
    if cell.reason is Reason.MISSING and nothing_at_stake(cell):
        return (
            "the baseline has no more than the margin to lose: mend references, evaluator or "
            "`pass_at`, or narrow the margin"
        )
    return _WHY[cell.reason or Reason.TOO_FEW]


def stretch_words(policy: Policy) -> str:
    """Return the sentence on the longest stretch of harm for which the results are valid."""
    rules = policy.dependence
    if rules.stretch_s is not None:
        return f"harm lasts no longer than {rules.stretch_s:g} s (`dependence.stretch`)"
    return f"harm lasts no longer than {counted(rules.stretch, 'request')} (`dependence.stretch`)"


def subject(cell: WatchCell, watch: Watch) -> str:
    """Name the metric, the stat and the scope."""
    scope = "pooled" if cell.cohort is None else f"in `{cell.cohort}`"
    if cell.metric == EXCEEDANCE:
        at = "" if watch.threshold_s is None else f" {watch.threshold_s * 1000:.4g} ms"
        return f"share slower than the threshold{at}, {scope}"
    return f"{METRICS[cell.metric].stat_words(cell.stat)}, {scope}"


def numbers(cell: WatchCell) -> str:
    """Return the estimate with its limits and n."""
    if cell.estimate is None:
        return f"{cell.n:,} so far, "
    limits = ""
    if cell.lower is not None or cell.upper is not None:
        limits = f" ({value(cell, cell.lower)} to {value(cell, cell.upper)})"
    return f"{value(cell, cell.estimate)}{limits} after {cell.n:,}, "


def margin(cell: WatchCell) -> str:
    """Return the margin with its side."""
    return f"{'≤' if cell.bound == 'max' else '≥'} {value(cell, cell.margin)}"


def value(cell: WatchCell, number: float | None) -> str:
    """Return a number in the cell's unit, or a dash."""
    if number is None:
        return "–"
    if cell.stat.endswith("_ratio"):
        return ratio_text(number)
    return difference_text(number, share=cell.stat == "diff")


def e_values(cell: WatchCell) -> str | None:
    """Return both e-values with their thresholds; `None` if the cell has none."""
    if cell.passing is None or cell.failing is None:
        return None
    wanted = (cell.log_e_to_pass, cell.log_e_to_fail)
    shown = [
        f"{name} {e_value(process.highest_log_e)} of {e_value(log_e or 0.0)}"
        for name, process, log_e in zip(
            ("pass", "fail"), (cell.passing, cell.failing), wanted, strict=True
        )
    ]
    return f"e-values {' and '.join(shown)}"


def e_value(log_e: float) -> str:
    """Return an e-value from its logarithm, short."""
    if log_e > math.log(1e6):
        return f"10^{log_e / math.log(10):.0f}"
    number = math.exp(log_e)
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def next_look(cell: WatchCell) -> str:
    """Return when the next look comes, or that there is none."""
    if cell.next_look is None:
        return "all looks taken"
    return f"next look at {cell.next_look:,}"
