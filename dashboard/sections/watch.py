"""The state of `draftgate watch`: e-values, looks, and actions."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import AcceptanceWatch, StoredWatch, Watch, WatchCell, WatchLook
from dashboard import charts, markup, words
from dashboard.drawing import draw
from dashboard.markup import TableCell, TableColumn
from evals.watch.acceptance import FALL, REFERENCE

_COLUMNS = (
    TableColumn("Cell", "cohort, metric"),
    TableColumn("So far", "and the cell's role"),
    TableColumn("Estimate", number=True),
    TableColumn(
        "Limits",
        "valid at every moment, if harm lasts no longer than the policy's stretch",
        number=True,
    ),
    TableColumn("Margin", number=True),
    TableColumn("Log e for a pass", "highest, of the threshold", number=True),
    TableColumn("Log e for a fail", "highest, of the threshold", number=True),
    TableColumn("Next look", "pairs", number=True),
    TableColumn("n", "pairs", number=True),
    TableColumn("In words"),
)
_ACCEPTED = (
    TableColumn("Cohort"),
    TableColumn("So far"),
    TableColumn("At first", f"mean of {REFERENCE} reference requests", number=True),
    TableColumn("Lately", "newest 100 requests or so", number=True),
    TableColumn("Compared", "requests", number=True),
)
_LOOKS = (
    TableColumn("Cell"),
    TableColumn("Look at", "pairs", number=True),
    TableColumn("Level spent", number=True),
    TableColumn("Outcome"),
    TableColumn("Estimate", number=True),
    TableColumn("In words"),
)


def show(client: Client, rollout: str, zone: ZoneInfo | None) -> None:
    """Draw each watch of the rollout, or explain how to start one."""
    watches = client.watches(rollout)
    if not watches:
        st.html(
            markup.panel(
                "Nobody watches this rollout",
                ["A watch judges pairs as they arrive; on harm, it switches the candidate off:"],
                [f"draftgate watch {words.argument(rollout)}"],
            )
        )
        return
    for stored in watches:
        _show_watch(stored, zone)


def _show_watch(stored: StoredWatch, zone: ZoneInfo | None) -> None:
    watch = stored.watch
    st.html(markup.banner(watch.outcome, watch.summary, _about(stored, zone)))
    if watch.reasons:
        st.html(markup.bullets(watch.reasons))
    if watch.acceptance:
        fallen_first = sorted(watch.acceptance, key=lambda one: (not one.drifted, one.number))
        rows = map(_accepted, fallen_first)
        st.html(markup.table("Acceptance of the candidate's drafts", _ACCEPTED, rows, fit="cards"))
    running = [cell for cell in watch.cells if cell.path.n and cell.path.log_e_pass]
    if running:
        st.html(markup.heading("Evidence as it grew: a line that reaches 1 decides its cell"))
        draw(charts.evidence(running), alt="E-values over pairs, by cell")
        n = words.counted(watch.pairs, "pair")
        note = (
            "A line is a cell's log e-value divided by the one that decides, for a pass or a fail"
        )
        st.html(markup.note(f"{note}; n = {n}."))
    st.html(markup.table("Cells", _COLUMNS, map(_row, watch.cells), fit="cards"))
    _show_looks(watch)
    if watch.actions:
        st.html(markup.heading("What the watch did"))
        st.html(
            markup.bullets(
                f"{words.moment(action.time_unix_ns, zone)}, after "
                f"{words.counted(action.pairs, 'pair')}: {action.reason}"
                for action in watch.actions
            )
        )


def _about(stored: StoredWatch, zone: ZoneInfo | None) -> str:
    watch = stored.watch
    updated = words.moment(stored.updated_unix_ns, zone)
    return f"Policy {watch.policy_name}, {words.counted(watch.pairs, 'pair')}, as of {updated}."


def _show_looks(watch: Watch) -> None:
    looks = [(cell, look) for cell in watch.cells for look in cell.looks]
    if looks:
        rows = [_look(cell, look) for cell, look in looks]
        st.html(markup.table("Looks, declared before the first pair", _LOOKS, rows, fit="cards"))


def _name(cell: WatchCell) -> str:
    return f"{words.scope(cell.cohort)} · {words.measure(cell.metric, cell.stat)}"


def unit(cell: WatchCell) -> str:
    """Return the unit of a watch cell's numbers, as for a finding."""
    return words.unit_of("ratio" if cell.stat.endswith("_ratio") else "difference", cell.stat)


def _row(cell: WatchCell) -> Sequence[TableCell]:
    of = unit(cell)
    side = "≤" if cell.bound == "max" else "≥"
    ends = words.between(cell.lower, cell.upper, of)
    return [
        TableCell(_name(cell)),
        TableCell(markup.stacked(markup.outcome(cell.outcome), words.ROLE_WORDS[cell.role])),
        markup.numeric(words.in_unit(cell.estimate, of), cell.estimate),
        markup.numeric(ends),
        markup.numeric(f"{side} {words.in_unit(cell.margin, of)}", cell.margin),
        markup.numeric(
            words.evidence(
                None if cell.passing is None else cell.passing.highest_log_e, cell.log_e_to_pass
            )
        ),
        markup.numeric(
            words.evidence(
                None if cell.failing is None else cell.failing.highest_log_e, cell.log_e_to_fail
            )
        ),
        markup.numeric(words.count(cell.next_look), cell.next_look),
        markup.numeric(words.count(cell.n), cell.n),
        TableCell(cell.message),
    ]


def _accepted(one: AcceptanceWatch) -> Sequence[TableCell]:
    """Return a cohort's row; a fall that was found stays."""
    if one.drifted:
        said = f"✕ fell by over {FALL * 100:g} pp"
    elif one.fall is None:
        said = f"{words.count(len(one.first))} of {REFERENCE} reference requests"
    else:
        said = "no fall found"
    return [
        TableCell("no cohort" if one.cohort is None else one.cohort),
        TableCell(said),
        markup.numeric(words.acceptance_rate(one.reference), one.reference),
        markup.numeric(words.acceptance_rate(one.lately), one.lately),
        markup.numeric(words.count(None if one.fall is None else one.fall.n)),
    ]


def _look(cell: WatchCell, look: WatchLook) -> Sequence[TableCell]:
    outcome = "not yet" if look.outcome is None else markup.outcome(look.outcome)
    return [
        TableCell(_name(cell)),
        markup.numeric(words.count(look.pairs), look.pairs),
        markup.numeric(f"{look.alpha:g}", look.alpha),
        TableCell(outcome),
        markup.numeric(words.in_unit(look.estimate, unit(cell)), look.estimate),
        TableCell(look.message or ""),
    ]
