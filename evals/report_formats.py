"""The verdict for other readers: Markdown for people, JUnit and annotations for CI."""

from collections.abc import Callable, Mapping, Sequence
from xml.etree import ElementTree as ET

from collector.contract import Finding, Outcome, Role, Verdict
from evals.findings_by_margin import worst_by_margin, worst_first
from evals.report import to_json
from evals.verdict_answers import answers, cohort_lines, may_it_ship, need_lines, scope_lines
from evals.visible_text import made_visible, visible

_MARKS = {Outcome.PASS: "✅", Outcome.FAIL: "❌", Outcome.INCONCLUSIVE: "❔"}


def to_markdown(verdict: Verdict) -> str:
    """Return a page for a pull request: the verdict, its reasons, and a row a cell."""
    verdict = made_visible(verdict)
    lines = [f"## {_MARKS[verdict.outcome]} {verdict.outcome.value}", "", ""]
    lines[-1] = f"**{may_it_ship(verdict)}** {_plain(verdict.summary)}"
    answers = [*cohort_lines(verdict), *need_lines(verdict)]
    lines += ["", *(f"- {_plain(line)}" for line in answers)] if answers else []
    lines += [""]
    lines += [f"- {_plain(reason)}" for reason in verdict.reasons]
    if verdict.history is not None:
        lines += ["", *(f"- {_plain(note)}" for note in verdict.history.notes)]
    lines += ["", "| Scope | Metric | Role | Estimate | Limits | Margin | n | Outcome |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    lines += [_row(group) for group in worst_by_margin(verdict.findings)]
    for line in scope_lines(verdict):
        lines += ["", _plain(line)]
    lines += ["", f"Policy {_plain(verdict.policy_name)} `{verdict.policy_hash[:12]}`, "]
    lines[-1] += f"data `{verdict.data_hash[:12]}`."
    return "\n".join(lines)


def to_junit(verdict: Verdict) -> str:
    """Return JUnit XML: a test case a deciding cell, where fail is a failure.

    A cell that had to pass and is inconclusive is an error; a guard or a reported cell that does
    not decide is skipped.
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
    said = ET.SubElement(suite, "properties")
    for name, value in answers(verdict):
        ET.SubElement(said, "property", {"name": name, "value": value})
    suite.extend(cases)
    ET.indent(suite)
    return bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True)).decode()


def to_github(verdict: Verdict) -> str:
    """Return GitHub's workflow commands: an annotation for each reason, and one for the verdict."""
    level = {Outcome.PASS: "notice", Outcome.FAIL: "error", Outcome.INCONCLUSIVE: "warning"}
    notes = () if verdict.history is None else verdict.history.notes
    said = f"{may_it_ship(verdict)} {verdict.summary}"
    lines = [_annotation(level[verdict.outcome], verdict.outcome.value, said)]
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


def _row(group: Sequence[Finding]) -> str:
    f = group[0]
    sign = "≤" if f.bound == "max" else "≥"
    cells = (
        "all" if f.cohort is None else _plain(f.cohort),
        f"{f.metric} {f.stat}",
        ", ".join(one.role.value for one in group),
        _number(f.estimate),
        f"{_number(f.lower)} … {_number(f.upper)}",
        ", ".join(f"{sign} {one.margin:g}" for one in group),
        f"{f.n:,}",
        ", ".join(_outcome(one) for one in group),
    )
    return f"| {' | '.join(cells)} |"


def _outcome(f: Finding) -> str:
    return f"{_MARKS[f.outcome]} {f.outcome.value if f.reason is None else f.reason.value}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _plain(text: str) -> str:
    """Return a text of which Markdown reads nothing as a table, a tag, a link or a mention."""
    for character in "\\|<>[]`*~":
        text = text.replace(character, f"\\{character}")
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
    """Return a workflow command; the characters that would end it are escaped."""
    for character, escape in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        title, message = title.replace(character, escape), message.replace(character, escape)
    title = title.replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={visible(title)}::{visible(message)}"
