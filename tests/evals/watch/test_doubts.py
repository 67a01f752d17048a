"""What any window shows of arms that are unlike: between looks, too, nothing passes on it."""

from dataclasses import replace

import pytest

from collector.contract import Arm, Outcome, Reason, Speculation
from evals import policy as policies
from evals.watch.watcher import Watcher

RULES = policies.parse(
    """
version: 1
name: live
design: mirror
prove:
  - {metric: task_completion, stat: diff, min: -0.10, scope: pooled}
""",
    "live.yaml",
)
EAGLE = Speculation(method="eagle", draft_tokens=24, accepted_tokens=12)
NGRAM = Speculation(method="ngram", draft_tokens=24, accepted_tokens=12)
LOSSY = Speculation(method="eagle", draft_tokens=4, accepted_tokens=2, lossless=False)


def watched(client, traffic, prompts, candidate):
    """Count pairs whose candidate's answers have these fields."""
    fields = {Arm.BASELINE: ALIKE, Arm.CANDIDATE: ALIKE | candidate}
    sides = [traffic.side(arm, p, **fields[arm]) for p in prompts for arm in Arm]
    traffic.post(sides)
    client.post_scores(traffic.scored(sides))
    return Watcher(client, "k4", RULES).catch_up().watch


ALIKE = {"temperature": 0.0, "max_tokens": 64, "fingerprint": "f", "output_tokens": 20}
UNLIKE = [
    ({"temperature": 0.7}, Reason.MISMATCH, "the temperature differs in 150 of 150 pairs"),
    ({"max_tokens": 16}, Reason.MISMATCH, "the limit of output tokens differs"),
    ({"fingerprint": "g"}, Reason.MISMATCH, "the candidate was served in 2 configurations"),
    ({"speculation": LOSSY}, Reason.TREATMENT, "lossy acceptance"),
    ({"fallback": True}, Reason.MISSING, "another route answered 150 of 300 requests"),
    ({"fingerprint": None}, Reason.MISMATCH, "do not say in which configuration"),
    ({"speculation": NGRAM}, Reason.MISMATCH, "speculated by 2 methods (eagle, ngram)"),
    ({"speculation": None}, Reason.TREATMENT, "150 of the candidate's 300 answers say nothing"),
    ({"output_tokens": 3}, Reason.MISMATCH, "less than 80% of the baseline's tokens"),
]


@pytest.mark.parametrize(("change", "reason", "words"), UNLIKE, ids=[w for _, _, w in UNLIKE])
def test_a_window_that_is_unlike_holds_back_the_pass(
    client, traffic, change, reason, words
) -> None:
    """What passed before is undecided from then on, and says why."""
    assert watched(client, traffic, range(150), {"speculation": EAGLE}).outcome is Outcome.PASS
    watch = watched(client, traffic, range(150, 300), {"speculation": EAGLE} | change)
    assert watch.outcome is Outcome.INCONCLUSIVE
    assert watch.cells[0].reason is reason
    assert words in watch.cells[0].message


def test_a_candidate_of_which_nothing_was_accepted_does_not_pass(client, traffic) -> None:
    """Until a draft token is: one window had none, the next one has."""
    none = Speculation(draft_tokens=24, accepted_tokens=0)
    watch = watched(client, traffic, range(150), {"speculation": none})
    assert watch.outcome is Outcome.INCONCLUSIVE
    assert "none of the candidate's 3,600 draft tokens was accepted" in watch.cells[0].message
    some = replace(none, accepted_tokens=12)
    later = watched(client, traffic, range(150, 300), {"speculation": some})
    assert later.outcome is Outcome.PASS


def test_scores_of_two_evaluators_hold_back_the_pass(client, traffic) -> None:
    """Even if each window has one."""
    assert watched(client, traffic, range(150), {}).outcome is Outcome.PASS
    sides = [traffic.side(arm, p, **ALIKE) for p in range(150, 300) for arm in Arm]
    traffic.post(sides)
    client.post_scores([replace(one, version="2") for one in traffic.scored(sides)])
    watch = Watcher(client, "k4", RULES).catch_up().watch
    assert watch.outcome is Outcome.INCONCLUSIVE
    assert "several evaluators or versions" in watch.cells[0].message


def test_harm_fails_whatever_is_unlike(client, traffic) -> None:
    """A candidate that loses every task is set off, though it was asked at another temperature."""
    sides = {arm: [traffic.side(arm, p, temperature=t, seed=p) for p in range(150)]
             for arm, t in ((Arm.BASELINE, 0.0), (Arm.CANDIDATE, 0.7))}  # fmt: skip
    traffic.post([one for arm in Arm for one in sides[arm]])
    scores = traffic.scored(sides[Arm.BASELINE])
    client.post_scores([*scores, *traffic.scored(sides[Arm.CANDIDATE], 0.0)])
    assert Watcher(client, "k4", RULES).catch_up().watch.outcome is Outcome.FAIL
