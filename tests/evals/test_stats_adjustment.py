"""Outcomes of split traffic, adjusted for covariates that are known before the answer."""

import numpy as np
import pytest

from evals import policy
from evals.gate import decide
from evals.stats.adjustment import adjusted


def arm(rng, n, effect=0.0, slope=1.0):
    """Return one arm's covariate and values; the covariate explains half of their variance."""
    x = rng.normal(size=(n, 1))
    return x, slope * x[:, 0] + rng.normal(size=n) + effect


def test_an_adjusted_difference_is_unbiased_and_varies_less() -> None:
    """Over 400 experiments: the mean is the effect, and the spread is down by a factor of √2."""
    rng = np.random.default_rng(8)
    plain, better = [], []
    for _ in range(400):
        (xc, c), (xb, b) = arm(rng, 400, effect=0.1), arm(rng, 300, slope=1.2)
        centre = np.concatenate((xc, xb)).mean(axis=0)
        plain.append(c.mean() - b.mean())
        better.append(adjusted(c, xc, centre).values.mean() - adjusted(b, xb, centre).values.mean())
    assert np.mean(better) == pytest.approx(0.1, abs=0.015)
    assert np.std(better) < 0.8 * np.std(plain)


def test_the_gain_is_the_ratio_of_variances() -> None:
    """A covariate that explains half doubles what a request is worth; noise explains nothing."""
    rng = np.random.default_rng(3)
    x, values = arm(rng, 5_000)
    found = adjusted(values, x, x.mean(axis=0))
    assert found.gain == pytest.approx(2, rel=0.1)
    assert found.values.mean() == pytest.approx(values.mean())
    noise = adjusted(values, rng.normal(size=(5_000, 1)), np.zeros(1))
    assert noise.gain == pytest.approx(1, abs=0.01)


def test_too_few_values_are_left_alone() -> None:
    """Forty values a covariate at the least."""
    rng = np.random.default_rng(3)
    x, values = arm(rng, 39)
    found = adjusted(values, x, x.mean(axis=0))
    assert found.gain == 1
    assert (found.values == values).all()


@pytest.mark.parametrize("rule", [
    "metric: e2e, stat: geomean_ratio, max: 1.10, scope: pooled",
    "metric: task_completion, stat: diff, min: -0.05, scope: pooled",
    "metric: groundedness, stat: mean_diff, min: -0.05, scope: pooled",
])  # fmt: skip
def test_the_length_of_prompts_narrows_split_limits(rule, side, evidence_of) -> None:
    """The same answers, with their prompts' lengths known and unknown."""
    rng = np.random.default_rng(4)
    rows = []
    for i in range(2_000):
        tokens = int(rng.lognormal(6, 1))
        hard = min(tokens / 4_000, 0.9)
        answer = side(
            input_tokens=tokens,
            e2e_s=tokens / 400 * rng.lognormal(0, 0.2),
            score_task_completion=float(rng.random() > hard),
            score_groundedness=float(np.clip(1 - hard + rng.normal(0, 0.1), 0, 1)),
        )
        rows.append(
            {"prompt_id": f"{i:05}", "cohort": "chat", ("candidate", "baseline")[i % 2]: answer}
        )
    rules = policy.parse(f"version: 1\nname: t\ndesign: split\nprove:\n  - {{{rule}}}", "t.yaml")

    def width(known: bool) -> float:
        given = [
            {arm: {**value, "input_tokens": value["input_tokens"] if known else None}
             if isinstance(value, dict) else value for arm, value in row.items()}
            for row in rows
        ]  # fmt: skip
        finding = decide(evidence_of(given), rules, rollout="r").findings[0]
        assert finding.upper is not None
        assert finding.lower is not None
        return finding.upper - finding.lower

    assert width(known=True) < 0.95 * width(known=False)
