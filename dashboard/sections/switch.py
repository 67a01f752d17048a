"""The off-switch: its state, a button to change it, and its audit log."""

from collections.abc import Sequence
from http import HTTPStatus
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client, ClientError
from collector.contract import RampStep, Switch, SwitchState
from dashboard import markup, sign_in, words
from dashboard.markup import TableCell, TableColumn
from dashboard.source import KEY_VARIABLE, Source
from evals.report.answers import cohort_lines, may_it_ship

_COLUMNS = (
    TableColumn("When"),
    TableColumn("Set to"),
    TableColumn("By"),
    TableColumn("Reason"),
)
_WHAT_HAPPENS = {
    Switch.OFF: (
        "Every router that follows this collector sends all requests of {rollout} to the baseline "
        "from now on, and the candidate answers nobody. Requests that it is answering are finished."
    ),
    Switch.ON: (
        "Every router that follows this collector may send requests of {rollout} to the candidate "
        "from now on, at its own shares. If a watch is running, it turns the candidate off again "
        "when it finds harm."
    ),
}
_VERBS = {Switch.OFF: "Turn the candidate off", Switch.ON: "Let the candidate answer"}
_LONGEST = 1_800


def show(client: Client, source: Source, rollout: str, zone: ZoneInfo | None) -> None:
    """Draw the state, the button that changes it, and the audit log."""
    log = client.switch(rollout)
    is_off = not log or log[0].state is Switch.OFF
    st.html(markup.switch_state(off=is_off, said=_said(log, zone)))
    if steps := client.ramp(rollout):
        st.html(markup.note(_ramp(steps[0], zone)))
    wanted = Switch.ON if is_off else Switch.OFF
    if st.button(
        f"{_VERBS[wanted]} …",
        icon=":material/power_settings_new:",
    ):
        _confirm(client, source, rollout, wanted)
    with st.expander(f"Audit log: {words.counted(len(log), 'event')}", expanded=bool(log)):
        if log:
            rows = [_row(event, zone) for event in log]
            st.html(markup.table("Newest first; never changed", _COLUMNS, rows, fit="cards"))
        else:
            st.html(markup.note("This switch was never set."))


@st.dialog("Set the switch", width="medium")
def _confirm(client: Client, source: Source, rollout: str, wanted: Switch) -> None:
    st.html(markup.panel(_VERBS[wanted], [_WHAT_HAPPENS[wanted].format(rollout=f"“{rollout}”")]))
    if wanted is Switch.ON:
        st.html(markup.bullets(_verdict_lines(client, rollout)))
    reason = st.text_area(
        "Reason, for the audit log", max_chars=_LONGEST, placeholder="What was seen, and where"
    ).strip()
    sure = st.checkbox(f"Yes: set the switch of {markup.label(rollout)} to {wanted.value}")
    if not st.button(_VERBS[wanted]):
        return
    if not (reason and sure):
        st.html(markup.note("✕ Give a reason and tick the box: both are needed."))
        return
    name = sign_in.viewer()
    said = reason if name is None else f"{reason} ({name}, on the dashboard)"
    try:
        client.set_switch(rollout, wanted, reason=said)
    except ClientError as error:
        _refused(source, error)
        return
    st.rerun()


def _verdict_lines(client: Client, rollout: str) -> list[str]:
    """Return the newest verdict's sentences on whether the candidate may answer."""
    newest = client.newest_verdict(rollout)
    if newest is None:
        return ["There is no verdict yet: its answers may be worse or slower."]
    return [may_it_ship(newest.verdict), *cohort_lines(newest.verdict)]


def _refused(source: Source, error: ClientError) -> None:
    if error.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
        raise error
    st.html(
        markup.panel(
            "Not set: this dashboard's key may not set switches",
            [f"The key in {KEY_VARIABLE} lacks the scope admin. Nothing was changed.", str(error)],
            ["draftgate keys create dashboard --scope read --scope content --scope admin"],
        )
    )
    st.html(markup.note(f"Collector: {source.address}"))


def _said(log: Sequence[SwitchState], zone: ZoneInfo | None) -> str:
    if not log:
        return "It was never set, so a router sends every request to the baseline."
    event = log[0]
    return f"Set by {event.who}, {words.moment(event.time_unix_ns, zone)}: {event.reason}"


def _ramp(step: RampStep, zone: ZoneInfo | None) -> str:
    at = words.moment(step.time_unix_ns, zone)
    return f"Ramp: {step.percent:g} %, by {step.who}, {at}: {step.reason}"


def _row(event: SwitchState, zone: ZoneInfo | None) -> list[TableCell]:
    word = "■ off" if event.state is Switch.OFF else "● on"
    return [
        TableCell(words.moment(event.time_unix_ns, zone)),
        TableCell(word),
        TableCell(event.who),
        TableCell(event.reason),
    ]
