"""Regressions planted in a real engine are seen, and the right cell names them."""

import pytest

from benchmarks.planted import Planted, judged, not_passed, regressions, speculating
from collector.contract import Outcome

PROMPTS = 160


@pytest.mark.slow
def test_a_truncated_context_fails() -> None:
    """Answers without their notes are wrong, in the cohort that needs notes."""
    (planted,) = (p for p in regressions() if p.name == "truncates its context")
    verdict = judged(planted, PROMPTS)
    assert verdict.outcome is Outcome.FAIL
    assert not_passed(verdict)["task_completion diff rag"] == "fail"


@pytest.mark.slow
def test_lenient_acceptance_fails() -> None:
    """Draft tokens that the target would not have chosen cost tasks, and no time is lost."""
    (planted,) = (p for p in regressions() if p.name == "accepts too much")
    verdict = judged(planted, PROMPTS)
    assert verdict.outcome is Outcome.FAIL
    failed = [name for name, outcome in not_passed(verdict).items() if outcome == "fail"]
    assert "task_completion diff pooled" in failed


@pytest.mark.slow
def test_slow_first_tokens_never_pass() -> None:
    """30 ms on every twentieth first token: the time to first token is not proved, all else is."""
    (planted,) = (p for p in regressions() if p.name.startswith("sleeps"))
    verdict = judged(planted, PROMPTS)
    assert verdict.outcome is not Outcome.PASS
    assert "ttft p95_ratio pooled" in not_passed(verdict)
    assert "task_completion diff pooled" not in not_passed(verdict)


@pytest.mark.slow
def test_equal_arms_do_not_fail() -> None:
    """The same route twice."""
    verdict = judged(Planted("none", speculating()), 40)
    assert verdict.outcome is not Outcome.FAIL
