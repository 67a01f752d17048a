"""P values of harm that hold at any n."""

import math

import numpy as np
import pytest

from evals.stats.certain_harm import ArmMean, unpaired_mean_p, unpaired_share_p

BOTH = [unpaired_share_p, unpaired_mean_p]


def harm(compare, candidate, baseline, margin=-0.05, draws=60):
    return compare(ArmMean(candidate, draws), ArmMean(baseline, draws), margin=margin, bound="min")


@pytest.mark.parametrize("compare", BOTH)
def test_a_candidate_without_any_success_is_proved_harmful(compare) -> None:
    """60 of 60 lost against nine in ten; the same answers, and the other direction, prove none."""
    assert harm(compare, 0.0, 0.9) < 1e-6
    assert harm(compare, 0.9, 0.9) == 1
    assert harm(compare, 1.0, 0.0) == 1
    assert compare(ArmMean(1.0, 60), ArmMean(0.1, 60), margin=0.05, bound="max") < 1e-6


@pytest.mark.parametrize("compare", BOTH)
@pytest.mark.parametrize("level", [0.01, 0.05])
def test_the_level_holds_at_the_margin(compare, level) -> None:
    """Shares and uniform scores that lose exactly the margin: rarely below the level."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        n = int(rng.integers(5, 200))
        lost, kept = (float((rng.random(n) < share).mean()) for share in (0.75, 0.80))
        found.append(harm(compare, lost, kept, draws=n))
    assert np.mean(np.array(found) <= level) <= level


def test_more_draws_and_wider_gaps_prove_more() -> None:
    """The p value falls in either."""
    few, many = (harm(unpaired_mean_p, 0.4, 0.9, draws=n) for n in (20, 80))
    wide = harm(unpaired_mean_p, 0.2, 0.9, draws=20)
    assert many < few
    assert wide < few


def test_limits_of_means_are_hoeffdings() -> None:
    """Without a loss in n draws the limit is 1 − level^(1/n), as for a share."""
    n, level = 40, 0.01
    limit = 1 - level ** (1 / n)
    margin = -(1 - 2 * limit)  # where the limits of a dead and of a perfect arm meet
    p = unpaired_mean_p(ArmMean(0.0, n), ArmMean(1.0, n), margin=margin, bound="min")
    assert p == pytest.approx(2 * level)
    assert math.isfinite(p)
