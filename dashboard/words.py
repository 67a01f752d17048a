"""Format numbers, units, times and outcomes: the single source of truth for how they are shown.

These functions only format values computed elsewhere; nothing is rounded twice, and an absent
value never becomes a number.
"""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from collector.contract import LATENCIES, Finding, Outcome, Reason, Role, is_share
from evals.advice.records import Estimate
from evals.report import number_words

ABSENT = "–"
"""Shown for a value that was not measured."""
NO_LIMIT = "no limit at this n"
THIN_SPACE = "\u202f"
"""Narrow and non-breaking, so that a number never wraps."""
MINUS = "\u2212"

OUTCOME_ICONS = {Outcome.PASS: "✓", Outcome.FAIL: "✕", Outcome.INCONCLUSIVE: "?"}
OUTCOME_WORDS = {
    Outcome.PASS: "Pass",
    Outcome.FAIL: "Fail",
    Outcome.INCONCLUSIVE: "Inconclusive",
}
ROLE_WORDS = {
    Role.PROVE: "must pass",
    Role.GUARD: "must not fail",
    Role.REPORT: "report only",
}
_METRICS = {
    **{name: latency.short for name, latency in LATENCIES.items()},
    "goodput": "within the bounds of goodput",
    "format_intact": "intact format",
    "parity": "equal to the baseline's answer",
    "greedy_divergence": "divergence of greedy answers",
    "sampled_tokens": "tokens of sampled answers",
}
_STATS = {"geomean_ratio": "geometric mean", "diff": "", "rate_diff": ""}
_UNITS = {"ratio": "candidate ÷ baseline", "difference": "candidate − baseline"}
_UNDECIDED: Mapping[Reason | None, str] = {
    Reason.TOO_FEW: "too few pairs for limits that decide",
    Reason.TOO_CLOSE: "too close to the margin for any number of pairs to decide",
    Reason.MISSING: "evidence is missing",
    Reason.QUALITY: "too many spans broke the contract",
    Reason.DRIFT: "times drifted during the run",
    Reason.SRM: "the arms got unequal shares of requests",
    Reason.CLIENT: "the load generator lagged",
    Reason.LAUNCHES: "too few launches of the servers, or launches that differ too much",
    Reason.AA: "the A/A control is missing, or not quiet",
    Reason.DEPENDENCE: "requests depend on each other over too few stretches, or too long ones",
    Reason.MISMATCH: "the arms were not asked, served or judged alike",
    Reason.STATE: "an arm's answers depend on the requests before them",
    Reason.TREATMENT: "the candidate did not do what it is judged for",
}
_STEPS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def count(n: int | None) -> str:
    """Return an integer with thin spaces between thousands."""
    return ABSENT if n is None else f"{n:,}".replace(",", THIN_SPACE).replace("-", MINUS)


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, such as `1 pair` and `2 pairs`."""
    return f"{count(n)} {noun if n == 1 else plural or noun + 's'}"


def milliseconds(seconds: float | None) -> str:
    """Return a duration in milliseconds, to a hundredth of a millisecond below 100 ms."""
    if seconds is None:
        return ABSENT
    shown = seconds * 1_000
    return f"{_grouped(shown, 2 if abs(shown) < 100 else 1)}{THIN_SPACE}ms"


def bare_ms(seconds: float | None) -> str:
    """Return a duration in milliseconds without the unit, for a column whose heading has it."""
    return milliseconds(seconds).removesuffix(f"{THIN_SPACE}ms")


def level(share_below: float) -> str:
    """Return the name of a percentile, such as `p99.5`."""
    return f"p{share_below * 100:g}"


def ratio(value: float | None) -> str:
    """Return a candidate/baseline ratio to two decimals, with ×."""
    return ABSENT if value is None else f"{_grouped(value, 2)}×"


def change_of_time(ratio_of_times: float | None) -> str:
    """Return a candidate/baseline ratio of times in words, such as `38 % faster`."""
    if ratio_of_times is None:
        return ABSENT
    return (
        number_words.change_of_time(ratio_of_times)
        .replace(",", THIN_SPACE)
        .replace(" %", f"{THIN_SPACE}%")
    )


def difference(value: float | None) -> str:
    """Return a candidate − baseline difference, signed, to four decimals."""
    if value is None:
        return ABSENT
    return f"{'+' if value > 0 else ''}{_grouped(value, 4)}"


def points(value: float | None) -> str:
    """Return a difference of two shares in percentage points, signed."""
    if value is None:
        return ABSENT
    shown = _grouped(value * 100, 1)
    return f"{'+' if shown[0] != MINUS and float(shown) else ''}{shown}{THIN_SPACE}pp"


def unit_of(unit: str, stat: str) -> str:
    """Return the unit in which a cell is shown; differences of shares have their own unit."""
    return "share" if is_share(stat) else unit


def in_unit(value: float | None, unit: str) -> str:
    """Return a number formatted in a unit of `unit_of`."""
    if unit == "ratio":
        return ratio(value)
    return points(value) if unit == "share" else difference(value)


def limit(value: float | None, unit: str) -> str:
    """Return a one-sided limit, or say that there is none; a ratio near 1 is told from 1."""
    if value is None:
        return NO_LIMIT
    if unit == "ratio" and value != 1 and round(value, 2) == 1:
        return f"{_grouped(value, 3 if round(value, 3) != 1 else 4)}×"
    return in_unit(value, unit)


def margin(finding: Finding) -> str:
    """Return the margin with its direction, such as `≤ 1.10×`."""
    return f"{'≤' if finding.bound == 'max' else '≥'} {_shown(finding.margin, finding)}"


def share(n: int | None, of: int) -> str:
    """Return a count with its share of another, or with `of 0` if the other is zero."""
    if n is None:
        return ABSENT
    if not of:
        return f"{count(n)} of 0"
    part = n / of * 100
    return f"{count(n)} ({part:.{2 if 0 < part < 1 else 1}f}{THIN_SPACE}%)"


def headline(finding: Finding) -> str:
    """Return the finding that decided a verdict, in one line."""
    what = capitalized(f"{measure(finding.metric, finding.stat)} {_within(finding.cohort)}")
    if finding.outcome is Outcome.INCONCLUSIVE:
        if finding.n_needed is not None:
            return f"{what} needs {count(finding.n_needed)} more pairs"
        return f"{what}: {_UNDECIDED.get(finding.reason, 'undecided')}"
    is_within = "within" if finding.outcome is Outcome.PASS else "beyond"
    shown, allowed = (_shown(value, finding) for value in (finding.estimate, finding.margin))
    return f"{what}: {shown}, {is_within} the margin of {allowed}"


def with_estimate(finding: Finding) -> str:
    """Return a finding's measure with its estimate, if it has one."""
    what = measure(finding.metric, finding.stat)
    return what if finding.estimate is None else f"{what} {_shown(finding.estimate, finding)}"


def limits(finding: Finding) -> str:
    """Return both limits of a finding."""
    return between(finding.lower, finding.upper, unit_of(finding.unit, finding.stat))


def between(lower: float | None, upper: float | None, unit: str) -> str:
    """Return two limits, or say that there is neither."""
    if lower is None and upper is None:
        return NO_LIMIT
    return f"{limit(lower, unit)} to {limit(upper, unit)}"


def pairs_needed(finding: Finding) -> str:
    """Return how many pairs, or launches per arm, a cell still needs."""
    if finding.launches_needed is not None:
        return counted(finding.launches_needed, "more launch", "more launches")
    return ABSENT if finding.n_needed is None else f"{count(finding.n_needed)} more"


def score(value: float | None) -> str:
    """Return a score in [0, 1] to three decimals."""
    return ABSENT if value is None else f"{value:.3f}"


def acceptance_rate(value: float | None) -> str:
    """Return accepted/proposed draft tokens as a percentage."""
    return ABSENT if value is None else f"{value * 100:.1f}{THIN_SPACE}%"


def acceptance_length(value: float | None) -> str:
    """Return tokens emitted a verify step."""
    return ABSENT if value is None else f"{value:.2f} tokens/step"


def tokens_a_step(value: float | None) -> str:
    """Return tokens a verify step, to two decimals."""
    return ABSENT if value is None else f"{_grouped(value, 2)} tokens"


def evidence(log_e: float | None, needed: float | None) -> str:
    """Return the natural logarithm of an e-value, and the threshold that decides."""
    if log_e is None:
        return ABSENT
    return f"{log_e:.2f} of {ABSENT if needed is None else f'{needed:.2f}'}"


def span_of(low: int, high: int) -> str:
    """Return a range of integers; a range of one is just the number."""
    return count(low) if low == high else f"{count(low)}–{count(high)}"


def time_ratio(found: Estimate) -> str:
    """Return a candidate/baseline ratio of times with its one-sided 95 % limits."""
    if found.lower is None or found.upper is None:
        return ratio(found.estimate)
    ends = f"{_grouped(found.lower, 2)} to {_grouped(found.upper, 2)}"
    return f"{ratio(found.estimate)} ({ends})"


def draft_counts(accepted: int | None, drafted: int | None, steps: int | None) -> str:
    """Return the counts behind an acceptance rate; a missing count is named as absent."""
    if accepted is None or drafted is None:
        return "counts not given"
    in_steps = "steps not given" if steps is None else f"in {counted(steps, 'verify step')}"
    return f"{count(accepted)} of {counted(drafted, 'draft token')} accepted, {in_steps}"


def confidence(finding: Finding) -> str:
    """Return the confidence of each one-sided limit."""
    at = "" if finding.look is None else f" at look {finding.look}"
    return f"{finding.confidence * 100:g}{THIN_SPACE}% one-sided{at}"


def metric(name: str) -> str:
    """Return a metric's display name."""
    return _METRICS.get(name, name.replace("_", " "))


def latency(name: str) -> str:
    """Return a latency's title, such as `TTFT: time to first token`."""
    short = capitalized(LATENCIES[name].short)
    return short if " " in short else f"{short}: {LATENCIES[name].words}"


def plain(text: str) -> str:
    """Return a text of the gate without the Markdown quotes around its names."""
    return text.replace("`", "")


def capitalized(text: str) -> str:
    """Return the text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def measure(metric_name: str, stat: str) -> str:
    """Return a finding's measure, such as `TTFT p95`, `groundedness mean`, `task completion`."""
    of = _STATS.get(stat, stat.removesuffix("_ratio").removesuffix("_diff").replace("_", " "))
    return f"{metric(metric_name)} {of}".rstrip()


def cell(finding: Finding) -> str:
    """Return a finding's cohort and measure."""
    return f"{scope(finding.cohort)} · {measure(finding.metric, finding.stat)}"


def hypothesis(finding: Finding) -> str:
    """Return a cell's requirement as a sentence."""
    if finding.stat == "e_value":
        return "the candidate's sampled tokens are drawn from the baseline's distribution"
    what = f"{measure(finding.metric, finding.stat)} {_within(finding.cohort)}"
    side = "at most" if finding.bound == "max" else "at least"
    shown = _shown(finding.margin, finding)
    if finding.unit == "ratio":
        return f"{what} of the candidate is {side} {shown} the baseline's"
    return f"{what}: candidate − baseline is {side} {shown}"


def compared(unit: str) -> str:
    """Describe how the two arms are compared."""
    return _UNITS.get(unit, unit)


def scope(cohort: str | None) -> str:
    """Return the cohort's name, or that of all cohorts pooled."""
    return "all cohorts" if cohort is None else cohort


def outcome(value: Outcome) -> str:
    """Return an outcome as icon and word, so that it does not depend on colour."""
    return f"{OUTCOME_ICONS[value]} {OUTCOME_WORDS[value]}"


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, or `ABSENT` if there are none."""
    return ", ".join(names) or ABSENT


def argument(name: str) -> str:
    """Return a name quoted for a shell command."""
    return shlex.quote(name)


def age(then_unix_ns: int, now_unix_ns: int) -> str:
    """Return how long ago a time was, in the largest whole unit."""
    seconds = (now_unix_ns - then_unix_ns) // 1_000_000_000
    if seconds < 0:
        return "in the future"
    for size, noun in _STEPS:
        if seconds >= size:
            return f"{counted(seconds // size, noun)} ago"
    return "just now"


def moment(unix_ns: int, zone: ZoneInfo | None) -> str:
    """Return a time in the viewer's time zone, with its name; in UTC if the zone is unknown."""
    # Integer division first: a float of nanoseconds since 1970 loses the last microseconds.
    there = datetime.fromtimestamp(unix_ns // 1_000_000_000, UTC).astimezone(zone or UTC)
    return f"{there.day} {there:%b %Y, %H:%M:%S %Z}"


def _shown(value: float | None, finding: Finding) -> str:
    return in_unit(value, unit_of(finding.unit, finding.stat))


def _within(cohort: str | None) -> str:
    return "over all cohorts" if cohort is None else f"in {cohort}"


def _grouped(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace(",", THIN_SPACE).replace("-", MINUS)
