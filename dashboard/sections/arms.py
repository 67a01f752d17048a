"""The candidates of a family by cohort, the best that passes, and interactions of two changes."""

import streamlit as st

from collector.client import Client
from collector.contract import Family
from dashboard import markup, words
from dashboard.markup import Html, TableCell, TableColumn
from evals.arms.grid import ABOUT, OUTCOMES, ArmAnswer, GridRow, grid
from evals.arms.interaction import Interaction, load_interactions
from evals.policy.registration import policy_for

_INTERACTIONS = (
    TableColumn("Metric", "cohort"),
    TableColumn("Interaction", "1× or 0 is none", number=True),
    TableColumn("Lower limit", "one-sided", number=True),
    TableColumn("Upper limit", "one-sided", number=True),
    TableColumn("n", "prompts", number=True),
    TableColumn("Bad only together", "prompts", number=True),
    TableColumn("Bad only in one", "first, second", number=True),
)


def show(client: Client, family: Family, rollout: str) -> None:
    """Draw the grid of a family's newest verdicts, and its interactions."""
    newest = [client.newest_verdict(name) for name in family.rollouts]
    found = grid(family, [None if one is None else one.verdict for one in newest])
    st.header(f"Candidates of {markup.label(family.name)}", anchor="candidates")
    release, *_ = found.rows
    st.html(markup.chips((OUTCOMES[one.answer], _card(family, one, rollout))
                         for one in release.answers))  # fmt: skip
    columns = [TableColumn("Cohort"), *map(TableColumn, family.arms), TableColumn("Best")]
    caption = "May it ship, and its time, candidate ÷ baseline"
    st.html(markup.table(caption, columns, map(_row, found.rows), fit="cards"))
    st.html(markup.note(ABOUT))
    if not family.combined or None in newest:
        return
    together = load_interactions(client, family, policy_for(client, family.name, None).policy)
    for arm, parts in family.combined.items():
        caption = f"{arm}: beyond what {' and '.join(parts)} do by themselves"
        shown = [_interaction(one) for one in together if one.arm == arm and one.is_informative]
        if shown:
            st.html(markup.table(caption, _INTERACTIONS, shown, fit="cards"))
        else:
            st.html(
                markup.note(f"{caption}: too few prompts for limits, and none wrong in one only.")
            )


def _card(family: Family, one: ArmAnswer, rollout: str) -> Html:
    own = family.rollout_of(one.arm)
    name = markup.link("rollout", one.arm, {"rollout": own})
    here = "this page" if own == rollout else words.OUTCOME_WORDS[OUTCOMES[one.answer]].lower()
    return markup.stacked(name, here)


def _row(row: GridRow) -> list[TableCell]:
    scope = "all (the release)" if row.cohort is None else row.cohort
    cells = (_answer(one, row) for one in row.answers)
    return [TableCell(scope), *cells, TableCell(markup.badge(row.best) if row.best else "baseline")]


def _answer(one: ArmAnswer, row: GridRow) -> TableCell:
    outcome = markup.outcome(OUTCOMES[one.answer])
    first = markup.joined((outcome, markup.badge("best"))) if one.arm == row.best else outcome
    if one.time is None:
        because = words.ABSENT if row.cohort is None else words.plain(one.because)
        return TableCell(markup.stacked(first, because))
    found = one.time
    lower, upper = (words.limit(value, "ratio") for value in (found.lower, found.upper))
    change = f"{words.change_of_time(found.estimate)} {words.metric(found.metric)}"
    time = f"{change}: {words.ratio(found.estimate)}, {lower} to {upper}"
    return TableCell(markup.stacked(first, time), found.estimate)


def _interaction(one: Interaction) -> list[TableCell]:
    values = (one.estimate, one.lower, one.upper)
    singles = () if one.only_one is None else one.only_one
    return [
        TableCell(markup.stacked(words.metric(one.metric), words.scope(one.cohort))),
        *(markup.numeric(words.in_unit(value, one.unit), value) for value in values),
        markup.numeric(words.count(one.n), one.n),
        markup.numeric(words.count(one.only_together), one.only_together),
        markup.numeric(", ".join(map(words.count, singles)) or words.ABSENT),
    ]
