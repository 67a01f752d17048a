"""What any window shows of arms that are unlike: between looks, too, nothing passes on it."""

from dataclasses import replace

import numpy as np
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


def lasting(one, seed):
    """Give an answer times that no other has, the same for the same seed."""
    lasts_ns = 10**9 + int(np.random.default_rng([seed, one.arm is Arm.CANDIDATE]).integers(10**8))
    return replace(one, end_unix_ns=one.start_unix_ns + lasts_ns, ttft_s=lasts_ns / 1e10)


def sent(client, traffic, prompts, rules, side_of):
    """Store answers, each made by `side_of`, and count them."""
    sides = [one for p in prompts for one in side_of(p)]
    traffic.post(sides)
    client.post_scores(traffic.scored(sides))
    return Watcher(client, "k4", rules).catch_up().watch


@pytest.mark.parametrize(("again", "outcome"), [(0, Outcome.PASS), (9, Outcome.INCONCLUSIVE)])
def test_pairs_sent_again_prove_nothing(client, traffic, again, outcome) -> None:
    """Under other prompt ids, starts and spans, after many windows, even among new ones."""

    def pair(p):
        seed = p - 400 if 400 <= p < 400 + again else p
        return [lasting(traffic.side(arm, p, **ALIKE), seed) for arm in Arm]

    for first in range(0, 600, 100):
        watch = sent(client, traffic, range(first, first + 100), RULES, pair)
    assert watch.outcome is outcome
    assert ("have the very times of an earlier one" in watch.cells[0].message) is bool(again)


SPLIT = replace(RULES, design="split")
MIXES = {
    "the temperature": {"temperature": 0.0},
    "the limit of output tokens": {"max_tokens": 16},
    "the model asked for": {"request_model": "other"},
    "the number of input tokens": {"input_tokens": 30},
}


@pytest.mark.parametrize("what", [None, *MIXES])
def test_split_arms_that_were_asked_otherwise_prove_nothing(client, traffic, what) -> None:
    """In any column, whatever the windows; the same mix in both arms is fine."""
    plain = {
        "temperature": 0.5, "max_tokens": 64, "request_model": "m", "input_tokens": 300,
        "output_tokens": 20,
    }  # fmt: skip

    def answer(p):
        arm = (Arm.BASELINE, Arm.CANDIDATE)[(p * 2654435761 >> 7) % 2]
        other = p % 4 == 0 and (what is None or arm is Arm.CANDIDATE)
        return [traffic.side(arm, p, **plain | (MIXES[what or "the temperature"] if other else {}))]

    for first in range(0, 900, 300):
        watch = sent(client, traffic, range(first, first + 300), SPLIT, answer)
    message = watch.cells[0].message
    if what is None:
        assert "not distributed alike" not in message
    else:
        assert watch.outcome is Outcome.INCONCLUSIVE
        assert f"{what} is not distributed alike" in message
