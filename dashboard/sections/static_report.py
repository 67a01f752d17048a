"""A verdict as a self-contained HTML file that needs no server and fetches nothing."""

from collections.abc import Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from collector.contract import Finding, StoredVerdict
from dashboard import markup, static_forest, words
from dashboard.markup import Html, TableCell, TableColumn
from dashboard.sections import (
    acceptance,
    capacity,
    cost,
    divergence,
    findings,
    latency,
    looks,
    quality,
    sentinel_answers,
    structured_answers,
)
from dashboard.sections.cohorts import worst_of_cohorts
from dashboard.sections.verdict_banner import facts, headline
from evals.report.answers import cohort_lines, may_it_ship, need_lines, scope_lines
from evals.report.findings_by_margin import worst_first

_STYLE = Path(__file__).parents[1] / "style.css"


def page(stored: StoredVerdict, zone: ZoneInfo | None) -> str:
    """Return the report: verdict, cohorts, forest plot and every table of evidence."""
    verdict = stored.verdict
    shown = worst_first(verdict.findings)
    answers = [
        may_it_ship(verdict),
        *cohort_lines(verdict),
        *need_lines(verdict),
        *scope_lines(verdict),
    ]
    ratios = {(f.cohort, f.metric, f.stat): f for f in shown}
    parts: list[str] = [
        markup.title(verdict.rollout, f"Decided {words.moment(stored.posted_unix_ns, zone)}"),
        markup.banner(verdict.outcome, headline(verdict), verdict.summary),
        markup.bullets(map(words.plain, answers)),
        markup.bullets(map(words.plain, verdict.reasons)),
        _cohorts(shown),
        *_given(looks.TITLE, looks.COLUMNS, looks.rows(verdict)),
        *_forests(shown),
        markup.table("All findings", findings.COLUMNS, map(findings.row, shown), fit="cards"),
        markup.table(
            "Latency, exact percentiles (R-7)",
            latency.columns(),
            [latency.row(item, ratios) for item in verdict.latency],
        ),
        markup.table(
            "Acceptance and its counts", acceptance.COLUMNS, map(acceptance.row, verdict.acceptance)
        ),
        *_given(
            acceptance.LOAD_TITLE,
            acceptance.LOAD_COLUMNS,
            [*map(acceptance.load_row, verdict.drafts_by_load)],
        ),
        markup.table(
            "Scores, over pairs scored on both sides",
            quality.COLUMNS,
            map(quality.row, verdict.quality),
        ),
        *([capacity.table(verdict.capacity, verdict.goodput_ms)] if verdict.capacity else ()),
        *cost.tables(verdict.costs, ()),
        *_given(
            structured_answers.TITLE,
            structured_answers.COLUMNS,
            [*map(structured_answers.row, verdict.structured_answers)],
        ),
        *_given(divergence.TITLE, divergence.COLUMNS, [*map(divergence.row, verdict.divergence)]),
        *_given(
            sentinel_answers.TITLE,
            sentinel_answers.COLUMNS,
            [*map(sentinel_answers.row, verdict.sentinels)],
        ),
        markup.facts(facts(stored, zone)),
    ]
    return markup.document(f"Draftgate: {verdict.rollout}", _STYLE.read_text("utf-8"), parts)


def _given(
    title: str, columns: Sequence[TableColumn], rows: Sequence[Sequence[TableCell]]
) -> list[Html]:
    """Return a table; none without rows."""
    return [markup.table(title, columns, rows)] if rows else []


def _cohorts(shown: Sequence[Finding]) -> Html:
    return markup.chips(
        (
            worst.outcome,
            markup.stacked(
                f"{words.OUTCOME_ICONS[worst.outcome]} {cohort}",
                f"worst: {words.measure(worst.metric, worst.stat)}",
            ),
        )
        for cohort, worst in worst_of_cohorts(shown).items()
    )


def _forests(shown: Sequence[Finding]) -> list[Html]:
    made = []
    for unit, title in findings.PANELS:
        drawn = [finding for finding in shown if finding.unit == unit]
        if drawn:
            made += [markup.heading(title, level=2), static_forest.drawing(drawn, unit)]
    return made
