"""The ratio of two rates of rare events, such as divergences per token."""

import math

from scipy.special import betainc, betaincinv

from evals.stats.interval import Bound, Insufficient, Interval

METHOD = "conditional-poisson/1"


def hazard_ratio(
    candidate: tuple[int, float],
    baseline: tuple[int, float],
    *,
    margin: float,
    bound: Bound,
    confidence: float,
) -> Interval | Insufficient:
    """Return (x_c/t_c)/(x_b/t_b) for (events, exposure), with exact conditional limits.

    Unpaired. Given the total x, the candidate's events are binomial with share
    π = θt_c/(θt_c + t_b); limits are Clopper–Pearson's for π, turned into θ, each one-sided at
    `confidence`. No event at all or no exposure is `Insufficient`; without a candidate's event the
    lower limit is 0, without a baseline's there is neither an estimate nor an upper limit.

    Source: J. Przyborowski and H. Wilenski, Biometrika 31 (1940) 313–323; the same as
    `statsmodels.stats.rates.test_poisson_2indep(method="exact-cond")`.
    """
    (events, exposure), (control, control_exposure) = candidate, baseline
    if min(exposure, control_exposure) <= 0:
        return Insufficient(reason="an arm has no exposure", n=0, n_needed=None)
    total = events + control
    if total == 0:
        return Insufficient(reason="no event in either arm", n=0, n_needed=None)
    scale = control_exposure / exposure
    null = margin / (margin + scale)
    at_least = float(betainc(events, control + 1, null)) if events else 1.0
    at_most = float(betainc(control, events + 1, 1 - null)) if control else 1.0
    return Interval(
        estimate=events / control * scale if control else None,
        lower=_odds(1 - confidence, events, control + 1) * scale if events else 0.0,
        upper=_odds(confidence, events + 1, control) * scale if control else None,
        p_fail=at_least if bound == "max" else at_most,
        n=total,
        method=METHOD,
    )


def _odds(level: float, a: float, b: float) -> float:
    share = float(betaincinv(a, b, level))
    return share / (1 - share) if share < 1 else math.inf
