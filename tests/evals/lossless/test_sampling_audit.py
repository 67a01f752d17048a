"""The sampling audit: quiet on a correct sampler, loud on each planted bug."""

import numpy as np
import pytest

from benchmarks.simulation.speculative_sampler import Bug, emitted
from evals.lossless.sampling_audit import (
    Rescored,
    SamplingAudit,
    log_e_after_each,
    observe,
)


@pytest.mark.parametrize(
    ("bug", "tokens"),
    [
        (Bug.RESAMPLE_P, 3000),
        (Bug.ARGMAX_DRAFTS, 600),
        (Bug.GENEROUS, 3000),
        (Bug.COOL, 6000),
        (Bug.TOP_P, 12000),
    ],
)
def test_each_bug_alarms(bug: Bug, tokens: int) -> None:
    """Within some times the median number of tokens."""
    path = log_e_after_each(emitted(bug, tokens, np.random.default_rng([7, tokens])), 0.005)
    assert path.max() >= np.log(100)


def test_a_correct_sampler_is_quiet() -> None:
    """Ten samplers of 3,000 tokens: the e-value stays below 100 throughout."""
    for run in range(10):
        seen = emitted(Bug.NONE, 3000, np.random.default_rng([8, run]))
        assert log_e_after_each(seen, 0.005).max() < np.log(100)


def test_the_state_goes_on() -> None:
    """In pieces, and without drafts at all: the same as token by token."""
    seen = emitted(Bug.COOL, 900, np.random.default_rng(9))
    audit = SamplingAudit.begin(0.005)
    for start in range(0, 900, 250):
        audit = audit.after(Rescored(*(column[start : start + 250] for column in seen)))
    assert audit.log_e == pytest.approx(log_e_after_each(seen, 0.005)[-1])
    assert SamplingAudit.begin(0.005).log_e == pytest.approx(0.0)
    undrafted = seen._replace(contrast=np.full(900, np.nan), acceptance=np.full(900, np.nan))
    path = log_e_after_each(undrafted, 0.005)
    assert SamplingAudit.begin(0.005).after(undrafted).log_e == pytest.approx(path[-1])


def test_what_each_token_shows() -> None:
    """Three tokens by hand, without drafts."""
    p = np.array([[0.5, 0.3, 0.2]] * 3)
    seen = observe(p, np.array([0, 1, 2]), None, np.random.default_rng(1))
    assert seen.top1.tolist() == [0.5, -0.5, -0.5]
    assert (seen.decile // 1 < [5, 8, 10]).all()
    assert (seen.decile >= [0, 5, 8]).all()
    assert np.isnan(seen.contrast).all()
    assert np.isnan(seen.acceptance).all()
