"""Generations that belong to no pair: their senders, and the attributes that they lack."""

from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import Unpaired
from dashboard import markup, words
from dashboard.markup import TableCell, TableColumn

_COLUMNS = (
    TableColumn("Generations", number=True),
    TableColumn("Rollout", "and arm"),
    TableColumn("Sender", "service, engine, and how its spans are written"),
    TableColumn("Why"),
    TableColumn("What to do"),
    TableColumn("Last", number=True),
    TableColumn("Trace", "of one of them"),
)


def show(client: Client, zone: ZoneInfo | None) -> None:
    """Draw the unpaired ones among the newest generations, the most frequent kind first."""
    groups = client.unpaired()
    if not groups:
        st.html(markup.note("All of the newest generations pair."))
        return
    rows = [_row(group, zone) for group in groups]
    st.html(markup.table("Unpaired among the newest generations", _COLUMNS, rows))


def _row(group: Unpaired, zone: ZoneInfo | None) -> list[TableCell]:
    arm = words.ABSENT if group.arm is None else group.arm.value
    sender = filter(None, (group.service_name, group.provider, group.dialect))
    return [
        markup.numeric(words.count(group.generations), group.generations),
        TableCell(markup.stacked(group.rollout or words.ABSENT, arm)),
        TableCell(words.listed(tuple(sender))),
        TableCell(group.why),
        TableCell(group.reason.fix),
        markup.numeric(words.moment(group.last_start_unix_ns, zone), group.last_start_unix_ns),
        TableCell(group.trace_id),
    ]
