"""The policy's sections other than its rules: design, sampling, validity, prices and more."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, cast

from evals.policy_reading import Node
from evals.stats.spending import ever_passes, last_level

Design = Literal["paired_replay", "mirror", "split"]
LATENCIES = ("ttft", "ttfo", "tpot", "e2e")
DESIGNS = ("paired_replay", "mirror", "split")
Control = Literal["optional", "required"]
CONTROLS = ("optional", "required")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the requests were drawn."""

    warmup_drop: int = 0
    """Pairs dropped from the start of the rollout, by count."""
    candidate_share: float = 0.5
    """The candidate's planned share of split traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """The longest disturbance that the verdict must allow for."""

    stretch: int = 1
    """Successive requests that one disturbance may affect together."""
    stretch_s: float | None = None
    """The same in seconds; `stretch` is then the number of requests that start in that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityRules:
    """Conditions for deciding anything."""

    srm_p_min: float = 0.001
    drift_p_min: float = 0.01
    drift_min_correlation: float = 0.03
    """Minimum rank correlation with time; .03 explains less than a thousandth of the variance."""
    client_lag_p99_max_frac: float = 0.01
    aa_control: Control = "optional"
    speculation: Control = "required"
    """Whether the candidate's counts must prove that it drafted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """The continuous test for harm: the share of requests slower than a threshold."""

    latency: str = "ttft"
    threshold_s: float | None = None
    """`None`: the baseline's p99 over the first pairs, then fixed."""
    margin: float = 0.005
    """The acceptable difference of the shares of slower requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Judging while traffic flows; statistics of bounded differences always use bets."""

    looks: tuple[int, ...] = (300, 600, 1_200, 2_400, 5_000)
    """Numbers of pairs at which unbounded statistics are tested."""
    spend: tuple[float, ...] = (0.001, 0.003, 0.006, 0.010, 0.04013)
    """The level of each look; since looks are correlated, all together pass wrongly in .05."""
    rollback: Rollback | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lossless:
    """The rules for a candidate that claims to be lossless."""

    alpha: float = 0.01
    """Maximum probability that greedy answers pass, or fail, wrongly."""
    max_tie_gap: float | None = None
    """`None`: two ulp of the model's dtype at the logit, or the control's noise."""
    hazard_ratio_max: float = 1.5
    """Maximum ratio of divergences per token, candidate over A/A control."""
    tolerance: float = 0.005
    """Bias of the sampling audit's means that numerical error may cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRules:
    """How often the arms' servers must be started."""

    min: int
    """Minimum number of independent launches for a cell of times to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyPrices:
    """The price of an hour of each route, in one currency."""

    baseline_per_hour: float
    candidate_per_hour: float


def read_design(root: Node) -> Design:
    """Return the design; paired replay by default."""
    node = root.get("design")
    return "paired_replay" if node is None else cast("Design", node.one_of(DESIGNS))


def read_sampling(root: Node) -> Sampling:
    """Return the section on how the requests were drawn."""
    node = root.mapping("sampling")
    node.only("warmup_drop", "candidate_share")
    drop, share = node.get("warmup_drop"), node.get("candidate_share")
    return Sampling(
        warmup_drop=0 if drop is None else _at_least(drop, 0),
        candidate_share=0.5 if share is None else _open_unit(share),
    )


def read_dependence(root: Node) -> Dependence:
    """Return the longest disturbance to allow for; one request by default."""
    node = root.mapping("dependence")
    node.only("stretch")
    stretch = node.get("stretch")
    if stretch is None:
        return Dependence()
    if isinstance(stretch.value, str):
        return Dependence(stretch_s=_seconds(stretch))
    return Dependence(stretch=_at_least(stretch, 1))


def _seconds(node: Node) -> float:
    number, unit = node.text()[:-1], node.text()[-1]
    try:
        seconds = float(number) if unit == "s" else 0.0
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise node.error(f"wanted requests, such as 25, or seconds, such as 30s; got {node.text()}")
    return seconds


def read_validity(root: Node) -> ValidityRules:
    """Return the conditions for deciding anything."""
    node, plain = root.mapping("validity"), ValidityRules()
    node.only(
        "srm_p_min",
        "drift_p_min",
        "drift_min_correlation",
        "client_lag_p99_max_frac",
        "aa_control",
        "speculation",
    )

    def level(key: str, default: float) -> float:
        given = node.get(key)
        return default if given is None else _open_unit(given)

    control, correlation = node.get("aa_control"), node.get("drift_min_correlation")
    speculation = node.get("speculation")
    return ValidityRules(
        srm_p_min=level("srm_p_min", plain.srm_p_min),
        drift_p_min=level("drift_p_min", plain.drift_p_min),
        drift_min_correlation=(
            plain.drift_min_correlation if correlation is None else _share(correlation)
        ),
        client_lag_p99_max_frac=level("client_lag_p99_max_frac", plain.client_lag_p99_max_frac),
        aa_control="optional" if control is None else cast("Control", control.one_of(CONTROLS)),
        speculation=(
            plain.speculation
            if speculation is None
            else cast("Control", speculation.one_of(CONTROLS))
        ),
    )


def read_prices(root: Node) -> HourlyPrices | None:
    """Return the prices, `None` if none are given."""
    node = root.get("prices")
    if node is None:
        return None
    node.only("baseline_per_hour", "candidate_per_hour")
    return HourlyPrices(
        baseline_per_hour=_price(node.required("baseline_per_hour")),
        candidate_per_hour=_price(node.required("candidate_per_hour")),
    )


def read_launches(root: Node) -> LaunchRules | None:
    """Return the rule for launches, `None` without that section."""
    node = root.get("launches")
    if node is None:
        return None
    node.only("min")
    return LaunchRules(min=_at_least(node.required("min"), 1))


def read_live(root: Node, alpha_pass: float) -> Live | None:
    """Return the rules for judging while traffic flows, `None` without that section."""
    node, plain = root.get("live"), Live()
    if node is None:
        return None
    node.only("bounded", "looks", "spend", "rollback")
    if (bounded := node.get("bounded")) is not None:
        bounded.one_of(("betting_eprocess",))
    looks = tuple(_at_least(item, 1) for item in node.items("looks")) or plain.looks
    given = tuple(_open_unit(item) for item in node.items("spend"))
    where = node.get("spend") or node
    if len(looks) != len(given or plain.spend):
        levels = len(given or plain.spend)
        raise where.error(f"wanted a level for each of {len(looks)} looks, got {levels}")
    if any(b <= a for a, b in pairwise(looks)):
        raise node.required("looks").error("wanted growing numbers of pairs")
    spend = given or scaled(alpha_pass, looks).spend
    if sum(spend) > alpha_pass and (all_ := ever_passes(looks, spend)) > alpha_pass * (1 + 1e-6):
        raise where.error(f"wanted at most alpha.pass = {alpha_pass:g} over all, got {all_:.4g}")
    return Live(looks=looks, spend=spend, rollback=_rollback(node.get("rollback")))


def scaled(alpha_pass: float, looks: tuple[int, ...] | None = None) -> Live:
    """Return looks that spend `alpha_pass` in total; the last one spends the rest."""
    plain, share = Live(), alpha_pass / 0.05
    looks = looks or plain.looks
    earlier = tuple(round(level * share, 12) for level in plain.spend[:-1])
    return Live(looks=looks, spend=(*earlier, last_level(looks, earlier, alpha_pass)))


def divided(live: Live, parts: int, alpha_pass: float) -> Live:
    """Return the looks with divided levels; the last one spends what `alpha_pass` leaves."""
    earlier = tuple(round(level / parts, 12) for level in live.spend[:-1])
    return replace(live, spend=(*earlier, last_level(live.looks, earlier, alpha_pass)))


def read_lossless(root: Node) -> Lossless | None:
    """Return the rules for losslessness, `None` without that section."""
    node, plain = root.get("lossless"), Lossless()
    if node is None:
        return None
    node.only("greedy", "sampled")
    greedy, sampled = node.mapping("greedy"), node.mapping("sampled")
    greedy.only("max_tie_gap", "hazard_ratio_max")
    sampled.only("tolerance")
    level = root.mapping("alpha").get("lossless")
    ratio, tolerance = greedy.get("hazard_ratio_max"), sampled.get("tolerance")
    if ratio is not None and ratio.number() <= 1:
        raise ratio.error(f"wanted a ratio above 1, got {ratio.number()}")
    return Lossless(
        alpha=plain.alpha if level is None else _open_unit(level),
        max_tie_gap=_tie_gap(greedy.get("max_tie_gap")),
        hazard_ratio_max=plain.hazard_ratio_max if ratio is None else ratio.number(),
        tolerance=plain.tolerance if tolerance is None else _open_unit(tolerance),
    )


def _tie_gap(node: Node | None) -> float | None:
    if node is None or node.value == "auto":
        return None
    if (gap := node.number()) < 0:
        raise node.error(f"wanted auto or a gap of at least 0, got {gap}")
    return gap


def _rollback(node: Node | None) -> Rollback | None:
    if node is None:
        return None
    node.only("metric", "latency", "threshold", "margin")
    plain = Rollback()
    node.required("metric").one_of(("slo_exceedance",))
    latency, threshold, margin = (node.get(key) for key in ("latency", "threshold", "margin"))
    return Rollback(
        latency=plain.latency if latency is None else latency.one_of(LATENCIES),
        threshold_s=None if threshold is None else _threshold(threshold),
        margin=plain.margin if margin is None else _open_unit(margin),
    )


def _threshold(node: Node) -> float | None:
    if isinstance(node.value, str):
        node.one_of(("baseline_p99",))
        return None
    if (seconds := node.number()) <= 0:
        raise node.error(f"wanted baseline_p99 or seconds above 0, got {seconds}")
    return seconds


def _at_least(node: Node, least: int) -> int:
    if (count := node.integer()) < least:
        raise node.error(f"wanted at least {least}, got {count}")
    return count


def _open_unit(node: Node) -> float:
    if not 0 < (value := node.number()) < 1:
        raise node.error(f"wanted a number between 0 and 1, got {value}")
    return value


def _share(node: Node) -> float:
    if not 0 <= (value := node.number()) < 1:
        raise node.error(f"wanted a number from 0 to below 1, got {value}")
    return value


def _price(node: Node) -> float:
    if (price := node.number()) <= 0:
        raise node.error(f"wanted a price above 0, got {price}")
    return price
