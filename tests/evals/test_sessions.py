"""Turns of a session depend on each other: they are one cluster, and own histories differ."""

import numpy as np
import pytest

from benchmarks.simulation.dependence import of_sessions
from evals.gate.clusters import clusters
from evals.gate.likeness import inside_pairs


def _pair(side, prompt: str, session: str | None = None, repeat: int = 0, **candidate):
    both = {"conversation_id": session}
    return {
        "prompt_id": prompt,
        "repeat": repeat,
        "baseline": side(**both),
        "candidate": side(**both, **candidate),
    }


def test_turns_of_a_session_and_repeats_are_one_cluster(evidence_of, side) -> None:
    """Rows of one prompt or one session belong together, in any order; others stay alone."""
    rows = [
        _pair(side, "a", "s"),
        _pair(side, "b", "t"),
        _pair(side, "c", "s"),
        _pair(side, "c", "s2", repeat=1),
        _pair(side, "d", "s2"),
        _pair(side, "e"),
        _pair(side, "f"),
    ]
    found = evidence_of(rows)
    a, b, c, again, d, e, f = found.prompts
    assert a == c == again == d
    assert len({a, b, e, f}) == 4
    assert clusters(found, np.ones(len(found), dtype=np.bool_)) == 4


def test_a_side_that_has_not_arrived_leaves_the_session_known(evidence_of, side) -> None:
    rows = [_pair(side, "a", "s"), {**_pair(side, "b", "s"), "baseline": None}]
    assert len(set(evidence_of(rows).prompts)) == 1


@pytest.mark.parametrize("own", [None, True])
def test_prompts_of_own_histories_may_have_other_lengths(evidence_of, side, own) -> None:
    """Otherwise another number of input tokens is a difference between the arms."""
    rows = [_pair(side, "a", "s", input_tokens=11, own_history=own)]
    assert bool(list(inside_pairs(evidence_of(rows)))) is (own is None)


def test_parity_is_not_owed_by_own_histories(evidence_of, side) -> None:
    """Each arm answers its own prompt, so that the texts promise nothing."""
    greedy = {"temperature": 0.0, "score_parity": 1.0}
    for own in (None, True):
        row = {
            "prompt_id": "a",
            "baseline": side(**greedy, own_history=own),
            "candidate": side(**greedy, own_history=own),
        }
        known, _ = evidence_of([row]).carried("parity")
        assert bool(known[0]) is (own is None)


@pytest.mark.slow
def test_the_level_holds_for_sessions() -> None:
    """At the margin at most .06 of rollouts of 80 sessions pass; ignoring sessions, .14 would."""
    rates = [rate for rate in of_sessions(150, 20261122, 80) if rate.what == "pass"]
    assert len(rates) == 3
    assert all(rate.rate <= rate.at_most for rate in rates)


def test_a_watch_lets_harm_last_a_session(evidence_of, side) -> None:
    """Of own histories a session is one pair, however many its turns."""
    turns = [_pair(side, f"p{n}", "s", turn=n) for n in (1, 2, 3)]
    assert evidence_of(turns).most_turns == 3
    assert evidence_of([_pair(side, "p", "s", turn=9, own_history=True)]).most_turns == 1
    assert evidence_of([_pair(side, "p")]).most_turns == 1
