"""The summary of an arm after a run: failures, and drafts that are never accepted."""

from dataclasses import replace

from collector.contract import Generation, Speculation
from engine_adapter.run.arm_counts import ArmCounts
from engine_adapter.run.replay import RunCounts

PLAIN = Generation(trace_id="a" * 32, span_id="b" * 16, start_unix_ns=0, end_unix_ns=10**9)


def test_an_acceptance_that_collapsed_in_sampled_answers_is_told() -> None:
    """Greedy answers of the same arm are healthy; failed and uncounted ones change nothing."""
    counts = ArmCounts()
    for _ in range(10):
        for temperature, accepted in ((0.0, 80), (0.8, 4), (0.8, None), (0.8, 999)):
            drafts = Speculation(draft_tokens=100, accepted_tokens=accepted, steps=25)
            made = replace(PLAIN, temperature=temperature, speculation=drafts)
            counts.add(made)
        counts.add(replace(PLAIN, error_type="timeout"))
    run = RunCounts(50, 10, arms={"candidate": counts})
    (said,) = run.suspicions
    assert said == (
        "the candidate: acceptance collapsed in sampled answers: 4.0% of 1,000 draft tokens were "
        "accepted"
    )
    assert (counts.generations, counts.failed, counts.error_type) == (50, 10, "timeout")
    assert run.failures == ()
