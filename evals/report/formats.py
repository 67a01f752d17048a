"""Render a verdict as Markdown, and as JUnit and GitHub annotations for CI."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from collector.contract import (
    CostComparison,
    Finding,
    Outcome,
    Reason,
    Role,
    SentinelAnswers,
    Verdict,
)
from collector.nouns import counted
from evals.report import capacity_words, cost_words
from evals.report.answers import answers, cohort_lines, may_it_ship, need_lines, scope_lines
from evals.report.findings_by_margin import worst_by_margin, worst_first
from evals.report.sentinel_words import changed_words
from evals.report.terminal import to_json, value_text
from evals.report.visible_text import made_visible, visible

_REFERENCE = re.compile("#(?=[0-9])")
"""The beginning of a reference to an issue."""
MARKS = {Outcome.PASS: "✅", Outcome.FAIL: "❌", Outcome.INCONCLUSIVE: "❔"}


def to_markdown(verdict: Verdict) -> str:
    """Return Markdown for a pull request: the verdict, its reasons, and one row per cell."""
    verdict = made_visible(verdict)
    lines = [f"## {MARKS[verdict.outcome]} {verdict.outcome.value}", "", ""]
    lines[-1] = f"**{may_it_ship(verdict)}** {escaped(verdict.summary)}"
    answers = [*cohort_lines(verdict), *need_lines(verdict)]
    lines += ["", *(f"- {escaped(line)}" for line in answers)] if answers else []
    lines += [""]
    lines += [f"- {escaped(reason)}" for reason in verdict.reasons]
    if verdict.history is not None:
        lines += ["", *(f"- {escaped(note)}" for note in verdict.history.notes)]
    columns = ("Scope", "Metric", "Role", "Estimate", "Limits", "Margin", "n", "Outcome")
    lines += ["", *markdown_table(columns, map(_row, worst_by_margin(verdict.findings)))]
    if verdict.capacity:
        lines += ["", *_capacity(verdict)]
    if verdict.costs:
        lines += ["", *_costs(verdict.costs)]
    if verdict.sentinels:
        lines += ["", *_sentinels(verdict.sentinels)]
    for line in scope_lines(verdict):
        lines += ["", escaped(line)]
    lines += ["", f"Policy {escaped(verdict.policy_name)} `{verdict.policy_hash[:12]}`, "]
    lines[-1] += f"data `{verdict.data_hash[:12]}`."
    return "\n".join(lines)


def to_junit(verdict: Verdict) -> str:
    """Return JUnit XML with one test case per cell; a cell that fails is a failure.

    An inconclusive cell that must pass is an error. An inconclusive guard is skipped, and so is
    every reported cell.
    """
    verdict = made_visible(verdict)
    cases = [_case(finding) for finding in verdict.findings]
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    attributes = {"name": f"draftgate {verdict.rollout}"}
    attributes |= {name: str(count) for name, count in counts.items()}
    suite = ET.Element("testsuite", attributes)
    properties = ET.SubElement(suite, "properties")
    for name, value in answers(verdict):
        ET.SubElement(properties, "property", {"name": name, "value": value})
    suite.extend(cases)
    ET.indent(suite)
    return bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True)).decode()


def to_github(verdict: Verdict) -> str:
    """Return GitHub workflow commands: one annotation for the verdict and one for each reason."""
    level = {Outcome.PASS: "notice", Outcome.FAIL: "error", Outcome.INCONCLUSIVE: "warning"}
    notes = () if verdict.history is None else verdict.history.notes
    message = f"{may_it_ship(verdict)} {verdict.summary}"
    lines = [_annotation(level[verdict.outcome], verdict.outcome.value, message)]
    lines += [
        _annotation("notice", "answer", line)
        for line in (*cohort_lines(verdict), *need_lines(verdict), *scope_lines(verdict))
    ]
    lines += [
        _annotation(level[f.outcome], f"{f.outcome.value}: {_name(f)}", f.message)
        for f in worst_first(verdict.findings)
        if (f.outcome is Outcome.FAIL and f.role is not Role.REPORT)
        or (f.outcome is Outcome.INCONCLUSIVE and f.role is Role.PROVE)
    ]
    lines += [_annotation("notice", "history", note) for note in notes]
    return "\n".join(lines)


FORMATS: Mapping[str, Callable[[Verdict], str]] = {
    "json": to_json,
    "markdown": to_markdown,
    "junit": to_junit,
    "github": to_github,
}


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; its cells are Markdown."""
    head, *lines = (f"| {' | '.join(cells)} |" for cells in (columns, *rows))
    return [head, f"|{'---|' * len(columns)}", *lines]


def _row(group: Sequence[Finding]) -> tuple[str, ...]:
    f = group[0]
    sign = "≤" if f.bound == "max" else "≥"
    return (
        _scope(f.cohort),
        f"{f.metric} {f.stat}",
        ", ".join(one.role.value for one in group),
        value_text(f, f.estimate),
        f"{value_text(f, f.lower)} … {value_text(f, f.upper)}",
        ", ".join(f"{sign} {value_text(one, one.margin)}" for one in group),
        f"{f.n:,}",
        ", ".join(_outcome(one) for one in group),
    )


def _scope(cohort: str | None) -> str:
    return "all" if cohort is None else escaped(cohort)


def _capacity(verdict: Verdict) -> Iterator[str]:
    yield f"{escaped(capacity_words.title(verdict.goodput_ms))}:"
    yield ""
    yield from markdown_table(
        ("Scope", "Arm", *capacity_words.COLUMNS),
        (
            (_scope(row.cohort), row.arm.value, *capacity_words.numbers(row))
            for row in verdict.capacity
        ),
    )


def _costs(costs: Sequence[CostComparison]) -> Iterator[str]:
    yield f"{escaped(cost_words.title(costs))}:"
    yield ""
    yield from markdown_table(
        ("Scope", *cost_words.COLUMNS, "n"),
        ((_scope(cost.cohort), *cost_words.numbers(cost), f"{cost.n:,}") for cost in costs),
    )
    for note in cost_words.notes(costs):
        yield ""
        yield escaped(note)


def _sentinels(found: Sequence[SentinelAnswers]) -> Iterator[str]:
    answers, changed = (sum(getattr(one, name) for one in found) for name in ("answers", "changed"))
    of = counted(answers, "answer")
    yield f"Sentinels (greedy prompts that the run repeats): {changed:,} of {of} changed."
    for one in found:
        if one.changed:
            yield f"- {one.arm.value}: {escaped(changed_words(one))}"


def _outcome(f: Finding) -> str:
    return f"{MARKS[f.outcome]} {f.outcome.value}{_reason(f)}"


def _reason(f: Finding) -> str:
    if f.reason is None:
        return ""
    if f.reason is not Reason.TOO_FEW:
        return f" ({f.reason.value})"
    return " (too few)" if f.n_needed is None else f" (needs {f.n_needed:,} more)"


def escaped(text: str) -> str:
    """Escape text so that Markdown sees no table, tag, link or mention in it."""
    for character in "\\|<>[]`*~":
        text = text.replace(character, f"\\{character}")
    text = _REFERENCE.sub("&#35;", text)
    for link, entity in (("@", "&#64;"), ("://", "&#58;//"), ("www.", "www&#46;")):
        text = text.replace(link, entity)
    return " ".join(text.split())


def _name(f: Finding) -> str:
    return f"{f.metric} {f.stat} {'pooled' if f.cohort is None else f'in {f.cohort}'}"


def _case(f: Finding) -> ET.Element:
    sign = "<=" if f.bound == "max" else ">="
    name = f"{_name(f)} {sign} {f.margin:g}"
    case = ET.Element("testcase", {"classname": f"draftgate.{f.role.value}", "name": name})
    if f.role is Role.REPORT or (f.role is Role.GUARD and f.outcome is Outcome.INCONCLUSIVE):
        ET.SubElement(case, "skipped", {"message": f.message})
    elif f.outcome is not Outcome.PASS:
        kind = "failure" if f.outcome is Outcome.FAIL else "error"
        ET.SubElement(case, kind, {"message": f.message})
    return case


def _annotation(level: str, title: str, message: str) -> str:
    """Return a workflow command, with the characters escaped that would end it."""
    for character, escape in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        title, message = title.replace(character, escape), message.replace(character, escape)
    title = title.replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={visible(title)}::{visible(message)}"
