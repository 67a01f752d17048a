"""Shares of a whole: `25 percent`, `a quarter of` and `one in four` say the same."""

from collections.abc import Callable

import pytest

from evals.evaluators.groundedness.shares import share_at
from evals.evaluators.groundedness.tokens import tokens_of

SAYS = "Doctors say that {} More research is needed, and 3 of the 12 clinics will report in 2024."
OTHER = "The nurses of the ward drink two cups of coffee and rest for 4 hours."
ADULTS = "About 25 percent of adults sleep badly."
CHILDREN = "One in five children snores."
WORKERS = "Half of the workers are tired."
NURSES = "Two thirds of the nurses are tired."
DRIVERS = "Three out of four drivers stop."


@pytest.fixture
def fall(scores_beside) -> Callable[[str, str], float]:
    """Give a function that returns how far a score falls from the first answer to the second.

    The passages say what the first does.
    """

    def between(one: str, other: str) -> float:
        said = SAYS.format(one[0].lower() + one[1:])
        first, second = scores_beside(one, other, (said, OTHER))
        return first.value - second.value

    return between


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        (ADULTS, "About 25 per cent of adults sleep badly."),
        (ADULTS, "About 25 per-cent of adults sleep badly."),
        (ADULTS, "About a quarter of adults sleep badly."),
        (ADULTS, "About one-fourth of adults sleep badly."),
        (ADULTS, "About one in four adults sleep badly."),
        (ADULTS, "About 1/4 of adults sleep badly."),
        (ADULTS, "About ¼ of adults sleep badly."),
        (CHILDREN, "20% of children snore."),
        (CHILDREN, "A fifth of children snore."),
        (CHILDREN, "One out of every five children snores."),
        (WORKERS, "50% of the workers are tired."),
        (WORKERS, "One in two workers are tired."),
        (WORKERS, "Half the workers are tired."),
        (NURSES, "67% of the nurses are tired."),
        (NURSES, "Two in three nurses are tired."),
        (NURSES, "2/3 of the nurses are tired."),
        (DRIVERS, "75% of drivers stop."),
        (DRIVERS, "Three quarters of drivers stop."),
    ],
)
def test_equal_shares_cost_nothing(
    answer: str, same: str, fall: Callable[[str, str], float]
) -> None:
    assert abs(fall(answer, same)) <= 0.02


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (ADULTS, "About a third of adults sleep badly."),
        (ADULTS, "About one in five adults sleep badly."),
        (ADULTS, "About half of adults sleep badly."),
        (ADULTS, "About three quarters of adults sleep badly."),
        (CHILDREN, "One in six children snores."),
        (CHILDREN, "50% of children snore."),
        (WORKERS, "A third of the workers are tired."),
        (WORKERS, "One in four workers are tired."),
        (NURSES, "One third of the nurses are tired."),
        (NURSES, "75% of the nurses are tired."),
        (DRIVERS, "Half of drivers stop."),
        (DRIVERS, "Three in ten drivers stop."),
    ],
)
def test_another_share_costs_much(
    answer: str, wrong: str, fall: Callable[[str, str], float]
) -> None:
    assert fall(answer, wrong) >= 0.5


@pytest.mark.parametrize("part", ["quarter", "half"])
def test_which_part_is_meant_is_no_share(part: str, fall: Callable[[str, str], float]) -> None:
    """Also beside a share that the passages have."""
    says = f"Sales rose by 20% in the first {part} of the year."
    assert abs(fall(says, says.replace("first", "1st"))) <= 0.02


def test_a_share_in_minutes(fall: Callable[[str, str], float]) -> None:
    """`three quarters of an hour` is 45 minutes."""
    lesson = "The lesson takes three quarters of an hour."
    assert fall(lesson, "The lesson takes 45 minutes.") <= 0.02
    assert fall(lesson, "The lesson takes 35 minutes.") >= 0.5


@pytest.mark.parametrize(
    ("text", "percents"),
    [
        ("a third of the votes, two-thirds, 3/4 or half", [100 / 3, 200 / 3, 75.0, 50.0]),
        ("one in every ten, 3 out of 5 and 1 in 10,000", [10.0, 60.0, 0.01]),
        ("the 1st quarter of the year, the second half of it, the last third", []),
        ("the third quarter of 2006, May 12 in 2019, (Passage 1)\n* In 1985, 5/3, 0/2", []),
        ("two quarts, 4 in 3, the fifth, in 4", []),
    ],
)
def test_which_words_are_a_share(text: str, percents: list[float]) -> None:
    tokens = tokens_of(text)
    found = (share_at(at, tokens, text) for at in range(len(tokens)))
    assert [share.percent for share in found if share is not None] == pytest.approx(percents)
