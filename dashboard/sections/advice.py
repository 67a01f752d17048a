"""The advice of `draftgate advise`: predicted and observed times, by k and by load."""

from collections.abc import Sequence

import streamlit as st

from collector.client import Client
from collector.contract import RolloutOverview
from dashboard import address, charts, markup, reading, words
from dashboard.drawing import draw
from dashboard.markup import TableCell, TableColumn
from dashboard.source import Source
from evals.advice.records import Action, Advice, Estimate, ScopeAdvice
from evals.advice.report import basis, prediction_note

READ_UNASKED = 5_000
"""Up to this many pairs, the advice is shown without a click."""
_ACTIONS = {
    Action.KEEP: "✓ keep",
    Action.CHANGE_K: "↔ change k",
    Action.DISABLE: "✕ disable",
    Action.UNKNOWN: "? not enough evidence",
}
_COLUMNS = (
    TableColumn("Cohort", "and load"),
    TableColumn("Advice"),
    TableColumn("Observed", "time of a token, candidate ÷ baseline", number=True),
    TableColumn("Predicted", "by acceptance and cost alone", number=True),
    TableColumn("k", "now → best", number=True),
    TableColumn("Break-even", "tokens per step", number=True),
    TableColumn("Wasted drafts", number=True),
    TableColumn("n", "pairs", number=True),
    TableColumn("Why"),
)


def show(client: Client, source: Source, overview: RolloutOverview, cohort: str | None) -> None:
    """Draw the advice; for a large rollout, only on request."""
    if overview.pairs > READ_UNASKED and not address.ticked(
        f"Work out the advice: read all {words.counted(overview.pairs, 'pair')}",
        "advice",
        of=overview.rollout,
    ):
        return
    found = reading.advice(
        client, reading.stamp(source.address, overview), _others(client, overview)
    )
    scopes = [s for s in found.scopes if cohort is None or s.cohort == cohort]
    if not scopes:
        st.html(markup.note("No pair here was answered by both arms."))
        return
    _show_charts(scopes, found)
    st.html(
        markup.table("Advice, as of “draftgate advise”", _COLUMNS, map(_row, scopes), fit="cards")
    )
    if note := prediction_note(scopes):
        st.html(markup.note(note))
    st.html(markup.note(basis(found)))
    with_gaps = [scope for scope in scopes if scope.missing]
    if with_gaps:
        st.html(markup.note("Missing for further advice:"))
        st.html(markup.bullets(f"{_name(s)}: {'; '.join(s.missing)}" for s in with_gaps))


def _others(client: Client, overview: RolloutOverview) -> tuple[str, ...]:
    """Return the rollouts of the same routes with another k that the viewer has added."""
    names = [o.rollout for o in client.rollouts() if o.rollout != overview.rollout]
    if not names:
        return ()
    asked = [name for name in st.query_params.get_all("with") if name in names]
    chosen: list[int] = st.multiselect(
        "With rollouts of the same routes at another k",
        options=range(len(names)),
        default=[names.index(name) for name in asked],
        format_func=lambda i: names[i],
        key=f"with {overview.rollout}",
    )
    picked = [names[i] for i in chosen]
    if picked:
        st.query_params["with"] = picked
    else:
        st.query_params.pop("with", None)
    return tuple(picked)


def _show_charts(scopes: Sequence[ScopeAdvice], found: Advice) -> None:
    whole = [scope for scope in scopes if scope.load is None]
    loads = [scope for scope in scopes if scope.load is not None and scope.tpot_speedup]
    swept = next((s for s in whole if any(f.tpot_speedup for f in s.by_k)), None)
    with st.container(key="charts-advice"):
        columns = st.columns(2)
    with columns[0]:
        st.html(markup.heading("Time of a token, candidate ÷ baseline: predicted and observed"))
        if any(scope.tpot_speedup or scope.predicted_tpot_speedup for scope in whole):
            draw(charts.predicted_observed(whole), alt="Time of a token by cohort")
        else:
            st.html(
                markup.note("Too little to compare: no time of a token was observed or predicted.")
            )
    with columns[1]:
        st.html(markup.heading("By requests in flight"))
        if loads:
            draw(charts.by_load(loads), alt="Time of a token by requests in flight")
        else:
            st.html(
                markup.note("Only one load was recorded, so there is nothing to compare by load.")
            )
    if swept is None:
        st.html(
            markup.note(
                "The forecast for other k needs a second rollout at another k, which shows what a "
                "draft token costs. Choose one above, or record one."
            )
        )
        return
    st.html(markup.heading(f"k-sweep: {_name(swept)}; {_ACTIONS[swept.action]}"))
    draw(charts.k_sweep(swept), alt="Forecast time of a token by k")
    n = words.counted(swept.pairs, "pair")
    seed = f"bootstrap of {found.bootstrap_draws} draws, seed {found.bootstrap_seed}"
    st.html(markup.note(f"n = {n}; limits one-sided 95 %, {seed}."))


def _row(scope: ScopeAdvice) -> list[TableCell]:
    wasted = scope.wasted
    predicted = scope.predicted_tpot_time
    best = words.ABSENT if scope.best_k is None else str(scope.best_k)
    return [
        TableCell(_name(scope)),
        TableCell(_ACTIONS[scope.action]),
        _observed(scope.tpot_speedup),
        markup.numeric(words.ratio(predicted), predicted),
        markup.numeric(f"{words.ABSENT if scope.k is None else scope.k} → {best}"),
        markup.numeric(words.tokens_a_step(scope.break_even_tokens_a_step)),
        markup.numeric(
            words.ABSENT
            if wasted is None
            else words.share(wasted.wasted_tokens, wasted.draft_tokens)
        ),
        markup.numeric(words.count(scope.pairs), scope.pairs),
        TableCell(scope.reason),
    ]


def _observed(speedup: Estimate | None) -> TableCell:
    if speedup is None:
        return markup.numeric(words.ABSENT)
    time = speedup.inverse()
    change = words.change_of_time(time.estimate)
    return markup.numeric(markup.stacked(change, words.time_ratio(time)), time.estimate)


def _name(scope: ScopeAdvice) -> str:
    name = words.scope(scope.cohort)
    return name if scope.load is None else f"{name}, {words.span_of(*scope.load)} in flight"
