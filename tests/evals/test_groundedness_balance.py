"""Training weighs exchanged words so that neither of the two looks wrong by its number."""

import numpy as np
import pytest

from evals.evaluators.groundedness.contrast import CONTRASTS

pytest.importorskip("sklearn", reason="training needs it")

from training.groundedness.fit import balance  # as above

AT = {(side, name): CONTRASTS.index(f"{side}_{name}_words")
      for side in ("here", "there") for name in ("possible", "certain")}  # fmt: skip


def pairs(wrong: str, right: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return both rows of each of several pairs, and whether each row is the wrong one."""
    rows = np.zeros((2 * number, len(CONTRASTS)))
    rows[::2, [AT["here", wrong], AT["there", right]]] = 1
    rows[1::2, [AT["here", right], AT["there", wrong]]] = 1
    return rows, np.tile([True, False], number)


def test_the_rarer_direction_weighs_more() -> None:
    """Half the way to equal weights; both rows of a pair have one factor."""
    often, rarely = pairs("certain", "possible", 90), pairs("possible", "certain", 10)
    rows, wrong = (np.concatenate(both) for both in zip(often, rarely, strict=True))
    factor = balance(rows, wrong, np.ones(len(rows)))
    assert np.allclose(factor[:180], factor[0])
    assert np.allclose(factor[180:], factor[-1])
    assert np.isclose(factor[-1] / factor[0], 3.0)


def test_pairs_without_weight_are_left_alone() -> None:
    """Those of harmless edits and of two models' answers; a class that one side never has, too."""
    rows, wrong = pairs("certain", "possible", 10)
    assert balance(rows, wrong, np.zeros(len(rows))).tolist() == [1.0] * 20
    assert balance(rows, wrong, np.ones(len(rows))).tolist() == [1.0] * 20
