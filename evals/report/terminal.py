"""Render a verdict for a terminal, and as JSON."""

import json

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from collector.contract import (
    LATENCIES,
    Acceptance,
    Arm,
    ArmLatency,
    CostComparison,
    Finding,
    Outcome,
    Percentiles,
    Reason,
    Role,
    SentinelAnswers,
    StructuredAnswers,
    Verdict,
    is_share,
    to_document,
)
from collector.nouns import counted
from evals.report import capacity_words, cost_words
from evals.report.answers import (
    cohort_lines,
    confidence_words,
    look_lines,
    may_it_ship,
    need_lines,
    scope_lines,
)
from evals.report.findings_by_margin import worst_by_margin
from evals.report.number_words import difference_text, ratio_text
from evals.report.plain_table import plain_table
from evals.report.sentinel_words import first_words
from evals.report.validity_words import load_words, place_words, valid_words
from evals.report.visible_text import made_visible

STYLES = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.INCONCLUSIVE: "yellow"}
_STATS = {
    "geomean_ratio": "geomean",
    "mean_ratio": "mean",
    "p50_ratio": "p50",
    "p95_ratio": "p95",
    "p99_ratio": "p99",
    "diff": "",
    "rate_diff": "",
    "mean_diff": "mean",
}
_MAX_REASONS = 5


def to_json(verdict: Verdict) -> str:
    """Return the verdict as JSON with sorted keys, as the dashboard shows it."""
    return json.dumps(to_document(verdict), indent=2, sort_keys=True, ensure_ascii=False)


def print_verdict(console: Console, verdict: Verdict) -> None:
    """Print a banner with the reasons, then a table of all cells' findings."""
    verdict = made_visible(verdict)
    console.print(_banner(verdict))
    console.print(_findings(verdict))
    if verdict.acceptance:
        console.print(_acceptance(verdict.acceptance))
    if verdict.structured_answers:
        console.print(_structured(verdict.structured_answers))
    if verdict.capacity:
        console.print(_capacity(verdict))
    if verdict.sentinels:
        console.print(_sentinels(verdict.sentinels))
    if verdict.costs:
        console.print(_costs(verdict.costs))
        for note in cost_words.notes(verdict.costs):
            console.print(note, style="dim", markup=False)
    if verdict.latency:
        console.print(_latency(verdict.latency))
    console.print(_provenance(verdict))


def _banner(verdict: Verdict) -> Panel:
    style = STYLES[verdict.outcome]
    lines = [Text(f"{may_it_ship(verdict)} {verdict.summary}", style="bold")]
    lines += [Text(line) for line in cohort_lines(verdict)]
    lines += [Text(line, style="bold") for line in need_lines(verdict)]
    lines += [Text(line) for line in look_lines(verdict)]
    lines += [Text(f"• {reason}") for reason in verdict.reasons[:_MAX_REASONS]]
    if (more := len(verdict.reasons) - _MAX_REASONS) > 0:
        lines.append(Text(f"… and {more} more", style="dim"))
    lines += [Text(line, style="dim") for line in scope_lines(verdict)]
    lines.append(Text(_pairs(verdict), style="dim"))
    if verdict.history is not None:
        lines += [Text(f"◦ {note}", style="dim") for note in verdict.history.notes]
    title = f"[bold {style}]{verdict.outcome.value.upper()}[/]"
    return Panel(Group(*lines), title=title, border_style=style)


def _pairs(verdict: Verdict) -> str:
    return (
        f"{counted(verdict.pairs, 'pair')}, {verdict.incomplete_pairs:,} incomplete, "
        f"{verdict.failed_pairs:,} failed, {counted(verdict.duplicates, 'duplicate')} ignored"
    )


def _findings(verdict: Verdict) -> Table:
    table = _table(
        f"Findings: candidate against baseline (limits one-sided, {confidence_words(verdict)})",
        ("Scope", "Metric", "Role"),
        ("Estimate", "Limits", "Margin", "n"),
    )
    table.add_column("Outcome", overflow="fold")
    for group in worst_by_margin(verdict.findings):
        f = group[0]
        table.add_row(
            _scope(f.cohort),
            f"{f.metric.replace('_', ' ')} {_STATS.get(f.stat, f.stat)}".rstrip(),
            ", ".join(one.role.value for one in group),
            value_text(f, f.estimate),
            f"{_bare(f, f.lower)} … {_bare(f, f.upper)}",
            ", ".join(f"{'≤' if f.bound == 'max' else '≥'}{_bare(f, one.margin)}" for one in group),
            f"{f.n:,}",
            Text(", ").join(_outcome(one) for one in group),
            style="dim" if all(one.role is Role.REPORT for one in group) else None,
        )
    return table


def _table(title: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    return plain_table(f"\n{title}", words, numbers)


def _outcome(finding: Finding) -> Text:
    style = STYLES[finding.outcome]
    if finding.n_needed is not None and finding.reason is Reason.TOO_FEW:
        return Text(f"needs {finding.n_needed:,} more", style=style)
    if finding.reason is Reason.TOO_FEW:
        return Text("too few" if finding.estimate is None else "too wide", style=style)
    if finding.reason is Reason.TOO_CLOSE:
        return Text("too close", style=style)
    if finding.reason is not None:
        return Text(finding.reason.value, style=style)
    return Text(finding.outcome.value, style=f"bold {style}")


def _acceptance(rows: tuple[Acceptance, ...]) -> Table:
    table = _table(
        "Speculation: draft tokens accepted, tokens per verify step",
        ("Scope",),
        ("Answers", "Steps", "Accepted", "Rate", "Per step", "By position"),
    )
    for row in rows:
        excluded = f" (+{row.excluded:,} unusable)" if row.excluded else ""
        baseline = " (baseline)" if row.arm is Arm.BASELINE else ""
        table.add_row(
            _scope(row.cohort) + baseline,
            f"{row.generations:,}{excluded}",
            f"{row.steps:,}",
            f"{row.accepted_tokens:,} of {row.draft_tokens:,}",
            "–" if row.rate is None else f"{row.rate:.1%}",
            "–" if row.length is None else f"{row.length:.2f}",
            " ".join(f"{rate * 100:.0f}" for rate in row.rate_per_pos) + " %"
            if row.rate_per_pos
            else "–",
        )
    return table


def _structured(rows: tuple[StructuredAnswers, ...]) -> Table:
    table = _table(
        "Valid JSON and tool calls; where invalid ones break: character, share of the answer",
        ("Scope", "In flight"),
        ("Baseline", "breaks at", "Candidate", "breaks at"),
    )
    for row in rows:
        sides = (row.baseline, row.candidate)
        table.add_row(
            _scope(row.cohort),
            "any" if row.in_flight is None else load_words(row.in_flight),
            *(shown for side in sides for shown in (valid_words(side), place_words(side) or "–")),
        )
    return table


def _capacity(verdict: Verdict) -> Table:
    title = capacity_words.title(verdict.goodput_ms)
    table = _table(title, ("Scope", "Arm"), capacity_words.COLUMNS)
    for row in verdict.capacity:
        table.add_row(_scope(row.cohort), row.arm.value, *capacity_words.numbers(row))
    return table


def _sentinels(rows: tuple[SentinelAnswers, ...]) -> Table:
    table = _table(
        "Sentinels (greedy prompts that the run repeats): answers that changed",
        ("Prompt", "Arm"),
        ("Answers", "Changed", "First at"),
    )
    for row in rows:
        launch = "" if row.launch is None else f" {row.launch}"
        table.add_row(
            escape(row.sentinel),
            f"{row.arm.value}{escape(launch)}",
            f"{row.answers:,}",
            f"{row.changed:,}",
            escape(first_words(row) or "–"),
        )
    return table


def _costs(rows: tuple[CostComparison, ...]) -> Table:
    table = _table(cost_words.title(rows), ("Scope",), (*cost_words.COLUMNS, "n"))
    for row in rows:
        table.add_row(_scope(row.cohort), *cost_words.numbers(row), f"{row.n:,}")
    return table


def _latency(rows: tuple[ArmLatency, ...]) -> Table:
    table = _table(
        "Latency in milliseconds: p50/p95/p99 of answers that succeeded",
        ("Scope", "Arm"),
        ("Answers", *(latency.title for latency in LATENCIES.values())),
    )
    for row in rows:
        errors = f" (+{row.errors:,} failed)" if row.errors else ""
        table.add_row(
            _scope(row.cohort),
            row.arm.value,
            f"{row.generations:,}{errors}",
            *(_percentiles(getattr(row, f"{metric}_s")) for metric in LATENCIES),
        )
    return table


def _provenance(verdict: Verdict) -> Text:
    return Text(
        f"policy {verdict.policy_name} {verdict.policy_hash[:12]} · data {verdict.data_hash[:12]}",
        style="dim",
    )


def _percentiles(p: Percentiles) -> str:
    return "/".join("–" if v is None else _milliseconds(v) for v in (p.p50, p.p95, p.p99))


def _milliseconds(seconds: float) -> str:
    ms = seconds * 1000
    return f"{ms:.2f}" if ms < 10 else f"{ms:,.1f}" if ms < 100 else f"{ms:,.0f}"


def _scope(cohort: str | None) -> str:
    return "all" if cohort is None else escape(cohort)


def value_text(finding: Finding, value: float | None) -> str:
    """Return a number of a finding in its unit, or a dash."""
    if value is None:
        return "–"
    if finding.unit == "ratio":
        return ratio_text(value)
    return difference_text(value, share=is_share(finding.stat))


def _bare(finding: Finding, value: float | None) -> str:
    """Return the value without its unit, which the estimate beside it shows."""
    return value_text(finding, value).removesuffix(" pp")
