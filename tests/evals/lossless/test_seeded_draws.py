"""Tokens that a seed gives."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from collector.contract import Generation
from evals.lossless.sampling_audit import Floats
from evals.lossless.seeded_draws import RescoredAnswer, counted, distances, draws, misses

LAW = np.array([[0.1, 0.6, 0.3]])
STEPS = (("top_k", 40.0), ("temperature", 1.0))


def generation(**fields: Any) -> Generation:
    """Return an answer of llama.cpp with a seed and a sampler."""
    plain = Generation(
        trace_id="1" * 32, span_id="1" * 16, start_unix_ns=1, end_unix_ns=2,
        provider="llama_cpp", seed=7, sampler="top_k=40 temperature=1",
    )  # fmt: skip
    return replace(plain, **fields)


def rescored(laws: Floats, tokens: list[int]) -> RescoredAnswer:
    """Return tokens under these distributions."""
    return RescoredAnswer(STEPS, laws, np.array(tokens), None, frozenset({"float32"}))


@pytest.mark.parametrize(
    ("seed", "first"),
    [
        (1, [0.99718480823026556, 0.93255736136816547, 0.128124447772306]),
        (4294967290, [0.045806110439207424, 0.15830733309834588, 0.63979993964744519]),
    ],
)
def test_the_draws_are_those_of_libstdcxx(seed: int, first: list[float]) -> None:
    """Printed by a C++ program with `std::mt19937` and `std::uniform_real_distribution`."""
    assert draws(seed, 3).tolist() == first


@pytest.mark.parametrize(
    ("token", "drawn", "ranked", "wanted"),
    [
        (1, 0.59, True, 0.0),
        (1, 0.65, True, 0.05),
        (2, 0.59, True, 0.01),
        (0, 0.95, True, 0.0),
        (0, 0.05, False, 0.0),
        (1, 0.05, False, 0.05),
        (2, 0.65, False, 0.05),
    ],
)
def test_distance_from_a_token_s_interval(
    token: int, drawn: float, ranked: bool, wanted: float
) -> None:
    """By rank the likeliest token comes first, by id the one with the lowest id."""
    found = distances(LAW, np.array([token]), np.array([drawn]), ranked=ranked)
    assert found.tolist() == pytest.approx([wanted])


def test_near_ties_may_be_ranked_either_way() -> None:
    """Rounding may swap them, so each may have the other's interval."""
    law = np.repeat(np.array([[0.401, 0.4, 0.199]]), 2, axis=0)
    for token in (0, 1):
        found = distances(law, np.full(2, token), np.array([0.1, 0.7]), ranked=True)
        assert found.tolist() == [0.0, 0.0]


def test_each_token_is_held_against_its_draw() -> None:
    """All that the draws give are hits; another one is a miss."""
    laws = np.repeat(LAW, 6, axis=0)
    right = [1 if drawn < 0.6 else 2 if drawn < 0.9 else 0 for drawn in draws(7, 6)]
    given = misses(generation(), rescored(laws, right))
    assert isinstance(given, np.ndarray)
    assert given.tolist() == [0.0] * 6
    wrong = [*right[:2], *((token + 1) % 3 for token in right[2:])]
    missed = misses(generation(), rescored(laws, wrong))
    assert isinstance(missed, np.ndarray)
    assert missed.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("far", "places", "missed"),
    [
        ([0, 0, 0], [0, 1, 2], [0, 0, 0]),
        ([0, 1, 1, 1, 1], [0, 1], [0, 1]),
        ([1, 0, 0, 0, 1, 0], [0, 4], [1, 1]),
        ([1, 0, 0, 1, 0, 0, 0, 0], [0, 7], [1, 0]),
        ([], [], []),
    ],
)
def test_after_a_miss_three_hits_are_waited_for(
    far: list[float], places: list[int], missed: list[float]
) -> None:
    """What follows a miss may only be moved by it, and says nothing until it fits again."""
    kept, values = counted(np.array(far, dtype=np.float64))
    assert (kept.tolist(), values.tolist()) == (places, missed)


@pytest.mark.parametrize(
    "fields",
    [{"provider": "vllm"}, {"seed": None}, {"seed": 2**32 - 1}, {"seed": -1}, {"sampler": None}],
)
def test_what_cannot_be_reproduced_is_not_judged(fields: dict[str, Any]) -> None:
    """Other engines, no seed or one that llama.cpp replaces, an unknown sampler."""
    assert misses(generation(**fields), rescored(LAW, [1])) is None
