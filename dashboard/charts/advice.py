"""The advice: a token's time, candidate ÷ baseline, by k, by load, and predicted or observed."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from collector.contract import Outcome
from dashboard import words
from dashboard.charts import look
from evals.advice.records import Estimate, ScopeAdvice

_COLOUR = look.SERIES_COLOURS[0]
_NOW = look.SERIES_COLOURS[4]
_BEST = look.OUTCOME_COLOURS[Outcome.PASS]
_TIME = "candidate ÷ baseline, time per output token"


def k_sweep(scope: ScopeAdvice) -> look.Spec:
    """Draw the forecast time for each k with its limits; mark the k served and the best k.

    A k larger than any recorded rests on the model alone and is drawn hollow.
    """
    rows: list[dict[str, Any]] = [  # Any: a JSON value
        {
            "k": forecast.k,
            **_time(forecast.tpot_speedup),
            "kind": _kind(scope, forecast.k, extrapolated=forecast.extrapolated),
        }
        for forecast in scope.by_k
        if forecast.tpot_speedup is not None
    ]
    kinds = ["served now", "advised", "forecast", "longer than recorded"]
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X("k:O", axis=alt.Axis(title="k: draft tokens per verify step", labelAngle=0))
    )
    y = look.around_one([row[end] for row in rows for end in ("time", "lower", "upper")])
    limits = base.transform_filter("datum.lower !== null && datum.upper !== null").mark_rule(
        strokeWidth=2, color=look.NEUTRAL
    )
    points = base.mark_point(size=110, opacity=1, filled=True).encode(
        y=alt.Y("time:Q", **y, title=_TIME),
        color=look.colour("kind", kinds, [_NOW, _BEST, _COLOUR, look.NEUTRAL]),
        shape=look.shape("kind", kinds, ["diamond", "square", "circle", "cross"]),
        tooltip=[
            alt.Tooltip("k:O"),
            *look.tooltips(text="Time (one-sided 95 % limits)", kind="This k"),
        ],
    )
    line = base.mark_line(color=_COLOUR, opacity=0.6).encode(y=alt.Y("time:Q", **y))
    shown = [
        *_break_even(y),
        line,
        limits.encode(y=alt.Y("lower:Q", **y), y2=alt.Y2("upper:Q")),
        points,
    ]
    return look.layered(*shown)


def by_load(scopes: Sequence[ScopeAdvice]) -> look.Spec:
    """Draw the observed time by requests in flight, one mark per cohort, and a line at 1."""
    rows = list(_loads(scopes))
    names = list(dict.fromkeys(row["cohort"] for row in rows))
    loads = sorted({(row["first"], row["load"]) for row in rows})
    y = look.around_one([row[end] for row in rows for end in ("time", "lower", "upper")])
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X(
            "load:N",
            sort=[load for _, load in loads],
            axis=alt.Axis(title="requests in flight", labelAngle=0),
        ),
        xOffset=alt.XOffset("cohort:N", sort=names),
        color=look.series_colour("cohort", names),
        tooltip=look.tooltips(
            cohort="Cohort",
            load="Requests in flight",
            text="Time (one-sided 95 % limits)",
            pairs="n",
        ),
    )
    limits = base.transform_filter("datum.lower !== null && datum.upper !== null")
    return look.layered(
        *_break_even(y),
        limits.mark_rule(strokeWidth=2).encode(y=alt.Y("lower:Q", **y), y2=alt.Y2("upper:Q")),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            y=alt.Y("time:Q", **y, title=_TIME),
            shape=look.series_shape("cohort", names),
        ),
    )


def predicted_observed(scopes: Sequence[ScopeAdvice]) -> look.Spec:
    """Draw the predicted and the observed time of a token, one row per cohort."""
    rows: list[dict[str, Any]] = [  # Any: a JSON value
        {
            "cohort": words.scope(scope.cohort),
            "what": what,
            **_time(speedup),
        }
        for scope in scopes
        for what, speedup in _both(scope)
    ]
    kinds = ["observed", "predicted"]
    x = look.around_one([row[end] for row in rows for end in ("time", "lower", "upper")])
    base = alt.Chart(look.data(rows)).encode(
        y=alt.Y("cohort:N", sort=list(dict.fromkeys(r["cohort"] for r in rows)), title=None),
        tooltip=look.tooltips(cohort="Cohort", what="Time of a token", text="Value"),
    )
    limits = base.transform_filter("datum.lower !== null && datum.upper !== null")
    points = base.mark_point(filled=True, size=95, opacity=1).encode(
        x=alt.X("time:Q", **x, title=_TIME),
        color=look.colour("what", kinds, [_COLOUR, _NOW]),
        shape=look.shape("what", kinds, ["circle", "diamond"]),
    )
    one = alt.Chart(look.data([{"at": 1.0}])).mark_rule(strokeDash=[4, 3], color=look.NEUTRAL)
    return look.layered(
        one.encode(x=alt.X("at:Q", **x)),
        limits.mark_rule(strokeWidth=2, color=_COLOUR).encode(
            x=alt.X("lower:Q", **x), x2=alt.X2("upper:Q")
        ),
        points,
        rows=len({row["cohort"] for row in rows}),
    )


def _kind(scope: ScopeAdvice, k: int, *, extrapolated: bool) -> str:
    if k == scope.k:
        return "served now"
    if k == scope.best_k:
        return "advised"
    return "longer than recorded" if extrapolated else "forecast"


def _loads(scopes: Sequence[ScopeAdvice]) -> Iterator[dict[str, Any]]:  # Any: a JSON value
    for scope in scopes:
        if scope.load is not None and scope.tpot_speedup is not None:
            yield {
                "cohort": words.scope(scope.cohort),
                "first": scope.load[0],
                "load": words.span_of(*scope.load),
                **_time(scope.tpot_speedup),
                "pairs": words.counted(scope.pairs, "pair"),
            }


def _both(scope: ScopeAdvice) -> Iterator[tuple[str, Estimate]]:
    if scope.tpot_speedup is not None:
        yield "observed", scope.tpot_speedup
    if scope.predicted_tpot_speedup is not None:
        yield "predicted", Estimate(estimate=scope.predicted_tpot_speedup)


def _time(speedup: Estimate) -> dict[str, Any]:  # Any: a JSON value
    """Return a mark's fields: the time as candidate/baseline, its limits, and both in words."""
    time = speedup.inverse()
    text = f"{words.change_of_time(time.estimate)}, {words.time_ratio(time)}"
    return {"time": time.estimate, "lower": time.lower, "upper": time.upper, "text": text}


def _break_even(y: dict[str, Any]) -> tuple[alt.Chart, alt.Chart]:  # Any: Altair's own
    base = alt.Chart(look.data([{"at": 1.0, "label": "break-even"}])).encode(y=alt.Y("at:Q", **y))
    rule = base.mark_rule(strokeDash=[4, 3], color=look.NEUTRAL)
    text = base.mark_text(align="left", dy=-7, dx=4, fontSize=11, color=look.NEUTRAL)
    return rule, text.encode(x=alt.value(0), text=alt.Text("label:N"))
