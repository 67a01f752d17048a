"""The charts draw the records they are handed, and valid Vega-Lite."""

from dataclasses import replace
from typing import Any

import altair as alt
import pytest

from collector.contract import (
    Acceptance,
    Arm,
    ArmLatency,
    Finding,
    Outcome,
    Percentiles,
    QualityCounts,
    Reason,
    Role,
)
from dashboard import charts
from dashboard.charts.forest import row_label
from dashboard.static_forest import drawing


def valid(chart: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return the chart as it is, held against Vega-Lite's schema."""
    alt.LayerChart.from_dict(chart, validate=True)
    return chart


def drawn(chart: Any) -> list[dict[str, Any]]:  # Any: Altair's own
    """Return all rows of a chart's data, once each."""
    rows: list[dict[str, Any]] = []
    for values in valid(chart)["datasets"].values():
        rows += [row for row in values if row not in rows]
    return rows


def made(metric: str, unit: str, **changes: object) -> Finding:
    """Return a finding with changes."""
    values: dict[str, object] = {
        "metric": metric,
        "stat": "p95_ratio" if unit == "ratio" else "diff",
        "cohort": "rag",
        "role": Role.GUARD,
        "outcome": Outcome.PASS,
        "reason": None,
        "bound": "max" if unit == "ratio" else "min",
        "margin": 1.25 if unit == "ratio" else -0.02,
        "unit": unit,
        "confidence": 0.95,
        "n": 40,
        "method": "m/1",
        "message": "In words.",
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


def test_a_missing_limit_runs_to_the_edge() -> None:
    """Without an upper limit the line ends at the axis' end, and the text says why."""
    open_ended = made(
        "ttft",
        "ratio",
        outcome=Outcome.INCONCLUSIVE,
        reason=Reason.TOO_FEW,
        estimate=1.1,
        lower=0.9,
    )
    row, *_ = drawn(charts.forest([open_ended], "ratio"))
    low, high = row["from"], row["to"]
    assert (low, row["lower"], row["upper"]) == (0.9, 0.9, None)
    assert high == row["beyond"] > 1.25
    assert row | {"to": 0, "beyond": 0} == {
        "label": "rag · TTFT p95 · must not fail",
        "outcome": "Inconclusive",
        "bound": "max",
        "margin": 1.25,
        "estimate": 1.1,
        "lower": 0.9,
        "upper": None,
        "estimate_text": "1.10×",
        "lower_text": "0.90×",
        "upper_text": "no limit at this n",
        "margin_text": "≤ 1.25×",
        "n_text": "40 pairs",
        "message": "In words.",
        "no_limit": "no limit at this n",
        "no_estimate": "no estimate",
        "reference": 1.0,
        "from": 0.9,
        "to": 0,
        "beyond": 0,
    }


def test_a_panel_draws_its_own_unit_in_the_order_given() -> None:
    """Ratios and differences never share an axis."""
    findings = [
        made("ttft", "ratio", estimate=1.0, lower=0.9, upper=1.1),
        made("task_completion", "difference", estimate=0.0, lower=-0.1, upper=0.1),
        made("tpot", "ratio", estimate=0.5, lower=0.4, upper=0.6),
    ]
    spec = valid(charts.forest(findings, "ratio"))
    assert spec["layer"][0]["encoding"]["y"]["sort"] == [
        "rag · TTFT p95 · must not fail",
        "rag · TPOT p95 · must not fail",
    ]
    assert row_label(findings[1]) == "rag · task completion · must not fail"


def test_each_launch_is_a_ring_in_its_findings_row() -> None:
    """A launch without an end has none, and without launches there is no such layer."""
    plain = made("ttft", "ratio", estimate=1.0, lower=0.9, upper=1.1)
    several = made("tpot", "ratio", estimate=1.0, lower=0.7, upper=1.4, launches=(0.6, None, 1.5))
    rings = [row for row in drawn(charts.forest([plain, several], "ratio")) if "launch" in row]
    assert [(row["launch"], row["ratio"]) for row in rings] == [
        ("Launch 1 of 3", 0.6),
        ("Launch 3 of 3", 1.5),
    ]
    assert {row["label"] for row in rings} == {row_label(several)}
    low, high = charts.forest([several], "ratio")["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert (low < 0.6, high > 1.5) == (True, True)
    assert not [row for row in drawn(charts.forest([plain], "ratio")) if "launch" in row]
    assert drawing([several], "ratio").count("dg-launch") == 2


def test_ratios_are_on_a_log_axis_around_one_and_differences_around_zero() -> None:
    """Each unit has the axis and the reference that fit it."""
    ratio = valid(charts.forest([made("ttft", "ratio", estimate=1.0)], "ratio"))
    difference = valid(charts.forest([made("x", "difference", estimate=0.0)], "difference"))
    scales = [spec["layer"][1]["encoding"]["x"]["scale"] for spec in (ratio, difference)]
    assert scales[0]["type"] == "log"
    assert "type" not in scales[1]
    references = [
        [row["at"] for rows in spec["datasets"].values() for row in rows if "at" in row]
        for spec in (ratio, difference)
    ]
    assert references == [[1.0], [0.0]]


def test_a_ratio_of_zero_does_not_break_the_log_axis() -> None:
    """What has no logarithm is drawn on a linear axis."""
    spec = valid(charts.forest([made("ttft", "ratio", estimate=0.0, lower=0.0)], "ratio"))
    assert "type" not in spec["layer"][1]["encoding"]["x"]["scale"]


def latency(arm: Arm, p50_s: float | None) -> ArmLatency:
    """Return a latency whose every percentile follows from the median."""
    times = [None] * 3 if p50_s is None else [p50_s, p50_s * 2, p50_s * 4]
    percentiles = Percentiles(
        n=0 if p50_s is None else 40, p50=times[0], p95=times[1], p99=times[2]
    )
    return ArmLatency(
        cohort="rag",
        arm=arm,
        generations=40,
        errors=0,
        ttft_s=percentiles,
        ttfo_s=percentiles,
        tpot_s=percentiles,
        e2e_s=percentiles,
    )


def test_latency_is_drawn_in_milliseconds() -> None:
    """Each arm has a span from p50 to p99 and a point for each percentile; no data draws none."""
    rows = drawn(
        charts.latency_range([latency(Arm.BASELINE, 0.5), latency(Arm.CANDIDATE, None)], "ttft_s")
    )
    about = {"scope": "rag", "arm": "baseline"}
    assert rows == [
        about | {"from": 500.0, "to": 2000.0},
        about | {"percentile": "p50", "at": 500.0, "text": "500.0\u202fms", "n": "40"},
        about | {"percentile": "p95", "at": 1000.0, "text": "1\u202f000.0\u202fms", "n": "40"},
        about | {"percentile": "p99", "at": 2000.0, "text": "2\u202f000.0\u202fms", "n": "40"},
    ]


def test_latency_without_p99_ends_at_p95() -> None:
    """A span ends at the highest percentile that is known."""
    few = Percentiles(n=40, p50=0.5, p95=1.0, p99=None)
    rows = drawn(charts.latency_range([replace(latency(Arm.BASELINE, 0.5), ttft_s=few)], "ttft_s"))
    assert (rows[0]["from"], rows[0]["to"]) == (500.0, 1000.0)
    assert [row["percentile"] for row in rows[1:]] == ["p50", "p95"]


def accepted(arm: Arm, rate: float | None) -> Acceptance:
    """Return an acceptance at a rate."""
    return Acceptance(
        cohort="code",
        arm=arm,
        generations=40,
        excluded=0,
        steps=100,
        draft_tokens=200,
        accepted_tokens=100,
        rate=rate,
        length=2.0,
        rate_per_pos=(0.75, 0.25) if rate is not None else (),
        drafts_per_pos=(100, 100) if rate is not None else (),
    )


def test_acceptance_names_the_arm_only_where_both_speculated() -> None:
    """One speculating arm needs no name; two are told apart."""
    alone = [accepted(Arm.BASELINE, None), accepted(Arm.CANDIDATE, 0.5)]
    both = [accepted(Arm.BASELINE, 0.5), accepted(Arm.CANDIDATE, 0.5)]
    named = [
        [row["series"] for row in drawn(charts.acceptance_by_cohort(a))] for a in (alone, both)
    ]
    assert named == [["code"], ["code (baseline)", "code (candidate)"]]


def test_acceptance_by_position_counts_from_one() -> None:
    """A draft's first position is 1, and each has its rate and its drafts."""
    assert drawn(charts.acceptance_by_position([accepted(Arm.CANDIDATE, 0.5)])) == [
        {"series": "code", "position": 1, "rate": 0.75, "text": "75.0\u202f%", "drafts": "100"},
        {"series": "code", "position": 2, "rate": 0.25, "text": "25.0\u202f%", "drafts": "100"},
    ]


@pytest.mark.parametrize(("losses", "text"), [(0, ""), (7, "7")])
def test_losses_go_left_and_wins_right(losses: int, text: str) -> None:
    """The bars' direction is the side, and the text the count."""
    counts = QualityCounts(
        metric="groundedness",
        cohort=None,
        n=40,
        unscored=1,
        baseline_mean=0.9,
        candidate_mean=0.8,
        wins=2,
        losses=losses,
        ties=38 - losses,
    )
    about = {"label": "groundedness · all cohorts", "ties": str(38 - losses), "n": "40"}
    assert drawn(charts.wins_and_losses([counts])) == [
        about | {"side": "candidate lower", "at": -losses, "text": text},
        about | {"side": "candidate higher", "at": 2, "text": "2"},
    ]


def test_an_axis_is_in_points_where_every_row_is_a_share() -> None:
    """The axis reads as the table does; a difference of scores among shares keeps fractions."""
    share = made("task_completion", "difference", estimate=-0.1)
    score = made("groundedness", "difference", estimate=-0.1, stat="mean_diff")

    def labels(*findings: Finding) -> str:
        layer = valid(charts.forest(findings, "difference"))["layer"][0]
        return str(layer["encoding"]["x"]["axis"]["labelExpr"])

    assert "* 100" in labels(share)
    assert "* 100" not in labels(share, score)
