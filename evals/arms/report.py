"""Render a family's grid and interactions for a terminal, as Markdown and as JSON."""

import json
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from collector.contract import MayShip, Outcome, Verdict, to_document
from evals.arms.divergence import TITLE, DivergenceRow, divergence_rows
from evals.arms.grid import ABOUT, OUTCOMES, ArmAnswer, Grid, GridRow, RelativeTime
from evals.arms.interaction import Interaction
from evals.report.answers import MARKS
from evals.report.formats import MARKS as ICONS
from evals.report.formats import escaped, markdown_table
from evals.report.number_words import change_of_time
from evals.report.plain_table import plain_table
from evals.report.terminal import STYLES
from evals.report.visible_text import visible


def to_json(
    grid: Grid, interactions: Sequence[Interaction], verdicts: Mapping[str, Verdict]
) -> str:
    """Return the grid, the interactions, and each candidate's verdict by name."""
    document = {
        **to_document(grid),
        "interactions": [to_document(one) for one in interactions],
        "verdicts": {arm: to_document(verdict) for arm, verdict in verdicts.items()},
    }
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


def to_markdown(
    grid: Grid, interactions: Sequence[Interaction], verdicts: Mapping[str, Verdict]
) -> str:
    """Return Markdown for a pull request: who may ship, and a row per cohort."""
    lines = [
        f"## {ICONS[grid.outcome]} {grid.outcome.value}",
        "",
        f"**{escaped(outcome_line(grid))}**",
        "",
    ]
    columns = ("Scope", *map(escaped, grid.family.arms), "Best")
    lines += markdown_table(columns, map(_row, grid.rows))
    shown = [
        [*map(escaped, (one.arm, *_interaction_cells(one)[:6]))]
        for one in interactions
        if one.is_informative
    ]
    if shown:
        columns = ("Together", "Scope", "Metric", "Interaction", "Limits", "n", "Bad only together")
        lines += ["", *markdown_table(columns, shown)]
    lines += _diverged_in_markdown(verdicts)
    return "\n".join([*lines, "", ABOUT])


def _diverged_in_markdown(verdicts: Mapping[str, Verdict]) -> list[str]:
    rows = list(divergence_rows(verdicts))
    if not rows:
        return []
    columns = ("Scope", *map(escaped, verdicts))
    cells = ((escaped(visible(row.scope)), *row.cells) for row in rows)
    return ["", f"{TITLE.capitalize()}:", "", *markdown_table(columns, cells)]


def _row(row: GridRow) -> tuple[str, ...]:
    scope = "release" if row.cohort is None else escaped(visible(row.cohort))
    cells = (f"{ICONS[OUTCOMES[one.answer]]} {time_words(one.time)}" for one in row.answers)
    return (scope, *cells, escaped(row.best or "–"))


def print_grid(
    console: Console,
    grid: Grid,
    interactions: Sequence[Interaction],
    verdicts: Mapping[str, Verdict],
) -> None:
    """Print the candidates by cohort, why each does not pass, divergences, and interactions."""
    console.print(_grid(grid))
    console.print(Text(f"\n{ABOUT}", style="dim"))
    release = grid.rows[0]
    for one in release.answers:
        console.print(Text(f"{one.arm}: {visible(one.because)}"))
    console.print(Text(outcome_line(grid), style=f"bold {STYLES[grid.outcome]}"))
    if rows := list(divergence_rows(verdicts)):
        console.print(_diverged(rows, list(verdicts)))
    shown = [one for one in interactions if one.is_informative]
    for arm in dict.fromkeys(one.arm for one in shown):
        console.print(_interactions([one for one in shown if one.arm == arm]))


def _diverged(rows: Sequence[DivergenceRow], arms: Sequence[str]) -> Table:
    table = plain_table(f"\n{TITLE}", map(escape, ("Scope", *arms)))
    for row in rows:
        table.add_row(escape(visible(row.scope)), *row.cells)
    return table


def outcome_line(grid: Grid) -> str:
    """Return the sentence that says which candidates pass, and which one is the best."""
    release = grid.rows[0]
    passed = [one.arm for one in release.answers if one.answer is MayShip.YES]
    if not passed:
        words = "every candidate fails" if grid.outcome is Outcome.FAIL else "no candidate passes"
        return f"{grid.family.name}: {words}."
    best = release.best or "none is shown to be faster than the baseline"
    return f"{grid.family.name}: {', '.join(passed)} may ship; the best: {best}."


def _grid(grid: Grid) -> Table:
    table = plain_table(
        f"{grid.family.name}: candidates by cohort, with their time ÷ the baseline's",
        map(escape, ("Scope", *grid.family.arms, "Best")),
    )
    for row in grid.rows:
        table.add_row(
            "release" if row.cohort is None else escape(visible(row.cohort)),
            *(_cell(one, row) for one in row.answers),
            row.best or "–",
        )
    return table


def _cell(one: ArmAnswer, row: GridRow) -> Text:
    style = STYLES[OUTCOMES[one.answer]]
    best = " ★" if row.best == one.arm else ""
    return Text(f"{MARKS[one.answer]} {time_words(one.time)}{best}", style=style)


def time_words(found: RelativeTime | None) -> str:
    """Return a time with its metric and limits, such as `46 % faster e2e, 0.54 (0.51 … 0.58)`."""
    if found is None:
        return "–"
    lower, upper = ("–" if x is None else f"{x:.2f}" for x in (found.lower, found.upper))
    change = change_of_time(found.estimate)
    return f"{change} {found.metric}, {found.estimate:.2f} ({lower} … {upper})"


def _interactions(found: Sequence[Interaction]) -> Table:
    table = plain_table(
        escape(f"\n{found[0].arm}: beyond what {' and '.join(found[0].parts)} do alone"),
        ("Scope", "Metric"),
        ("Interaction", "Limits", "n", "Bad only together", "first", "second"),
    )
    for one in found:
        table.add_row(*map(escape, _interaction_cells(one)))
    return table


def _interaction_cells(one: Interaction) -> tuple[str, ...]:
    first, second = (None, None) if one.only_one is None else one.only_one
    return (
        "all" if one.cohort is None else visible(one.cohort),
        one.metric.replace("_", " "),
        _number(one, one.estimate),
        f"{_number(one, one.lower)} … {_number(one, one.upper)}",
        f"{one.n:,}",
        *("" if count is None else f"{count:,}" for count in (one.only_together, first, second)),
    )


def _number(one: Interaction, value: float | None) -> str:
    """Return an interaction's estimate or limit: a ratio, or a signed difference."""
    if value is None:
        return "–"
    return f"{value:.3f}" if one.unit == "ratio" else f"{round(value, 3) + 0.0:+.3f}"
