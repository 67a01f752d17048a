"""Live charts: evidence over pairs, latencies and requests by minute, engine samples."""

from collections.abc import Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import altair as alt

from collector.contract import Arm, EngineSample, Outcome, TimeBucket, WatchCell
from dashboard import words
from dashboard.charts import look

_SIDES = ("for a pass", "for a fail")
_SHORT = "abs(datum.value) < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"


def evidence(cells: Sequence[WatchCell]) -> look.Spec:
    """Draw each cell's log e-values as a share of the deciding threshold; 1 decides."""
    rows = [row for cell in cells for row in _path(cell)]
    names = list(dict.fromkeys(row["cell"] for row in rows))
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X("n:Q", axis=alt.Axis(title="pairs counted", format="~s")),
        y=alt.Y("part:Q", axis=alt.Axis(title="log e ÷ threshold", tickCount=6)),
        detail=["cell:N", "side:N"],
        tooltip=look.tooltips(cell="Cell", side="Evidence", n_text="n", text="log e"),
    )
    colours = [look.OUTCOME_COLOURS[Outcome.PASS], look.OUTCOME_COLOURS[Outcome.FAIL]]
    colour = look.colour("side", _SIDES, colours)
    dash = alt.StrokeDash(
        "side:N", scale=alt.Scale(domain=list(_SIDES), range=[[1, 0], [5, 3]]), legend=None
    )
    line = base.mark_line(strokeWidth=2).encode(color=colour, strokeDash=dash)
    points = base.mark_point(filled=True, size=40, opacity=1).encode(
        color=colour, shape=_shape_of("cell", names)
    )
    one = alt.Chart(look.data([{"at": 1.0, "label": "decides"}])).encode(y=alt.Y("at:Q"))
    rule = one.mark_rule(strokeDash=[4, 3], color=look.NEUTRAL)
    text = one.mark_text(align="left", dy=-7, dx=4, fontSize=11, color=look.NEUTRAL)
    named = text.encode(x=alt.value(0), text=alt.Text("label:N"))
    return look.layered(rule, named, line, points, rows=8 + len(names))


def latency_over_time(
    buckets: Sequence[TimeBucket], metric: str, zone: ZoneInfo | None, *, both: bool
) -> look.Spec:
    """Draw p95 by minute, one line per arm and cohort; with `both`, p50 and p95 of one cohort."""
    rows = [row for bucket in buckets for row in _percentiles(bucket, metric, both=both)]
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X("at:T", axis=look.time_axis(zone)),
        y=alt.Y("value:Q", axis=alt.Axis(title="ms", tickCount=5, format=",~r")),
        color=look.arm_colour(),
        detail=["cohort:N", "percentile:N"],
        tooltip=[
            alt.Tooltip("at:T", title="From", format="%H:%M"),
            *look.tooltips(arm="Arm", cohort="Cohort", percentile="Percentile", text="Time", n="n"),
        ],
    )
    dash = alt.StrokeDash(
        "percentile:N",
        scale=alt.Scale(domain=["p50", "p95"], range=[[4, 3], [1, 0]]),
        legend=look.legend() if both else None,
    )
    cohorts = list(dict.fromkeys(str(row["cohort"]) for row in rows))
    shape = _arm_shape() if both else _shape_of("cohort", cohorts)
    line = base.mark_line(strokeWidth=1.8).encode(strokeDash=dash)
    points = base.mark_point(filled=True, size=35, opacity=1).encode(shape=shape)
    return look.layered(line, points, rows=8 + (0 if both else (len(cohorts) + 1) // 2))


def requests_over_time(buckets: Sequence[TimeBucket], zone: ZoneInfo | None) -> look.Spec:
    """Draw each arm's requests per minute."""
    sums: dict[tuple[int, Arm], int] = {}
    for bucket in buckets:
        key = (bucket.start_unix_s, bucket.summary.arm)
        sums[key] = sums.get(key, 0) + bucket.summary.generations
    rows = [
        {"at": at * 1_000, "arm": arm.value, "n": n, "text": words.count(n)}
        for (at, arm), n in sorted(sums.items())
    ]
    bars = (
        alt.Chart(look.data(rows))
        .mark_bar()
        .encode(
            x=alt.X("at:T", axis=look.time_axis(zone), timeUnit="yearmonthdatehoursminutes"),
            y=alt.Y("n:Q", axis=alt.Axis(title="requests", tickCount=5, format="~s")),
            color=look.arm_colour(),
            tooltip=[
                alt.Tooltip("at:T", title="From", format="%H:%M"),
                *look.tooltips(arm="Arm", text="Requests"),
            ],
        )
    )
    return look.layered(bars)


def engine_samples(samples: Sequence[EngineSample], zone: ZoneInfo | None) -> look.Spec:
    """Draw a metric's samples, one line per service and instance."""
    rows = [
        {
            "at": sample.time_unix_ns // 1_000_000,
            "value": sample.value,
            "series": words.listed(
                [part for part in (sample.service_name, sample.instance) if part]
            ),
            "text": f"{sample.value:g}",
        }
        for sample in samples
    ]
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X("at:T", axis=look.time_axis(zone)),
        y=alt.Y("value:Q", axis=alt.Axis(title=None, tickCount=5, labelExpr=_SHORT)),
        color=look.series_colour("series", names),
        tooltip=[
            alt.Tooltip("at:T", title="At", format="%H:%M:%S"),
            *look.tooltips(series="Engine", text="Value"),
        ],
    )
    line = base.mark_line(strokeWidth=1.8)
    points = base.mark_point(filled=True, size=25).encode(shape=look.series_shape("series", names))
    return look.layered(line, points, rows=5)


def _arm_shape() -> alt.Shape:
    arms = [arm.value for arm in Arm]
    return alt.Shape("arm:N", scale=alt.Scale(domain=arms, range=["circle", "square"]))


def _shape_of(field: str, names: Sequence[str]) -> alt.Shape:
    """Return one shape per name, with a legend colour that is visible on white and on black."""
    legend = alt.Legend(
        orient="bottom",
        title=None,
        labelLimit=300,
        columns=alt.ExprRef(f"{look.NARROW} ? 1 : 2"),
        symbolFillColor=look.NEUTRAL,
        symbolStrokeColor=look.NEUTRAL,
    )
    scale = alt.Scale(domain=list(names), range=look.cycled(look.SERIES_SHAPES, len(names)))
    return alt.Shape(f"{field}:N", scale=scale, legend=legend)


def _path(cell: WatchCell) -> Iterator[dict[str, Any]]:  # Any: a JSON value
    name = f"{words.scope(cell.cohort)} · {words.measure(cell.metric, cell.stat)}"
    path = cell.path
    for side, logs, needed in (
        (_SIDES[0], path.log_e_pass, cell.log_e_to_pass),
        (_SIDES[1], path.log_e_fail, cell.log_e_to_fail),
    ):
        if not needed:
            continue
        for n, log_e in zip(path.n, logs, strict=False):
            yield {
                "cell": name,
                "side": side,
                "n": n,
                "n_text": words.counted(n, "pair"),
                "part": log_e / needed,
                "text": words.evidence(log_e, needed),
            }


def _percentiles(
    bucket: TimeBucket, metric: str, *, both: bool
) -> Iterator[dict[str, Any]]:  # Any: a JSON value
    summary = bucket.summary
    for found in summary.metrics:
        if found.metric != metric:
            continue
        for name in ("p50", "p95") if both else ("p95",):
            seconds: float | None = getattr(found, name)
            if seconds is not None:
                yield {
                    "at": bucket.start_unix_s * 1_000,
                    "arm": summary.arm.value,
                    "cohort": summary.cohort or "no cohort",
                    "percentile": name,
                    "value": seconds * 1e3,
                    "text": words.milliseconds(seconds),
                    "n": words.count(found.n),
                }
