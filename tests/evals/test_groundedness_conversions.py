"""Quantities in other units, calculations and counts: which say the same, and which are wrong."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import Score
from evals.evaluators import Groundedness
from evals.evaluators.groundedness.arithmetic import equations
from evals.evaluators.groundedness.conversions import KnownAmounts, amounts_of, as_known
from evals.evaluators.groundedness.quantities import quantities
from evals.evaluators.groundedness.tokens import tokens_of

PASSAGES = (
    """Preheat the oven to 375 degrees F and bake the bread for 90 minutes on the lower rack. The
trail is 10 miles long and climbs 1,200 feet. A hiker should carry 2 pounds of food. The limit is 60
miles per hour.""",
    """The salary is $50,000 before the raise of 4 percent. The rent is $1,000 a month, and the
water bill is $40 a month. The contract lasts 24 months. Take a tablet every 6 hours for 14 days. A
sheet is 8 inches wide. The tank holds 20 liters. A bus takes an hour. The floor has 200 square
feet. Rides cost 50 cents.""",
)
ScorePair = Callable[[str, str], tuple[Score, Score]]


@pytest.fixture
def scores(scores_beside) -> ScorePair:
    """Give a function that scores two answers beside each other."""
    return lambda one, other: scores_beside(one, other, PASSAGES)


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        ("Preheat the oven to 375°F.", "Preheat the oven to 375°F (190°C)."),
        ("Preheat the oven to 375°F.", "Preheat the oven to 190°C."),
        ("Preheat the oven to 375°F.", "Preheat the oven to 375°F / 190 °C."),
        ("Preheat the oven to 375°F.", "Preheat the oven to 375°F (about 190 degrees Celsius)."),
        ("Bake the bread for 90 minutes.", "Bake the bread for 1.5 hours."),
        ("Bake the bread for 90 minutes.", "Bake the bread for one and a half hours."),
        ("Bake the bread for 90 minutes.", "Bake the bread for 1 hour and 30 minutes."),
        ("The trail is 10 miles long.", "The trail is 10 miles (16 km) long."),
        ("The trail is 10 miles long.", "The trail is 16.1 kilometers long."),
        ("The trail climbs 1,200 feet.", "The trail climbs 1,200 ft (366 m)."),
        ("A hiker should carry 2 pounds of food.", "A hiker should carry 2 lb (0.9 kg) of food."),
        ("A hiker should carry 2 pounds of food.", "A hiker should carry 32 ounces of food."),
        ("The limit is 60 mph.", "The limit is 60 mph (97 km/h)."),
        ("The limit is 60 mph.", "The limit is 60 miles an hour."),
        ("The contract lasts 24 months.", "The contract lasts two years."),
        ("Take it every 6 hours for 14 days.", "Take it every 6 hours for 2 weeks."),
        ("A sheet is 8 inches wide.", "A sheet is 8 in. (203 mm) wide."),
        ("The tank holds 20 liters.", "The tank holds 20 litres (about 5 gallons)."),
        ("A bus takes an hour.", "A bus takes 1 hour."),
        ("A bus takes an hour.", "A bus takes 60 minutes."),
        ("The floor has 200 square feet.", "The floor has 200 sq. ft. (18.6 m²)."),
        ("Rides cost 50 cents.", "Rides cost $0.50."),
    ],
)
def test_a_quantity_in_another_unit_says_the_same(scores, answer, same) -> None:
    """Instead of the passages' unit, or beside it."""
    one, other = scores(f"{answer} The rent is $1,000.", f"{same} The rent is $1,000.")
    assert one.value == pytest.approx(other.value, abs=1e-9)
    assert one.value > 0.9


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("Preheat the oven to 375°F.", "Preheat the oven to 230°C."),
        ("Preheat the oven to 375°F.", "Preheat the oven to 375°F (230°C)."),
        ("Bake the bread for 90 minutes.", "Bake the bread for 2.5 hours."),
        ("Bake the bread for 90 minutes.", "Bake the bread for 1 hour and 50 minutes."),
        ("The trail is 10 miles long.", "The trail is 10 km long."),
        ("The trail is 10 miles long.", "The trail is 10 miles (26 km) long."),
        ("A hiker should carry 2 pounds of food.", "A hiker should carry 2 kg of food."),
        ("The contract lasts 24 months.", "The contract lasts three years."),
        ("The contract lasts 24 months.", "The contract lasts 24 months (3 years)."),
        ("The tank holds 20 liters.", "The tank holds 20 gallons."),
    ],
)
def test_another_quantity_is_wrong(scores, answer, wrong) -> None:
    """In whatever unit."""
    good, bad = scores(f"{answer} The rent is $1,000.", f"{wrong} The rent is $1,000.")
    assert good.value > 0.9
    assert bad.value < 0.2


def test_a_quantity_that_no_passage_has_is_compared_with_the_other_answer(scores) -> None:
    """Both say it, each in its unit."""
    one, other = scores(
        "Cool it to 40°F. The rent is $1,000.", "Cool it to 4°C. The rent is $1,000."
    )
    assert one.value == pytest.approx(other.value, abs=1e-9)


def test_one_answer_may_be_far_longer_than_the_other(scores) -> None:
    """A shared sentence keeps its place in each of them."""
    shared = "The trail is 10 miles (16 km) long."
    one, other = scores(f"{'The rent is $1,000. ' * 9}{shared}", shared)
    assert min(one.value, other.value) > 0.5


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("375°F", [(375.0,)]),
        ("55-75°F", [(55.0, 75.0)]),
        ("5 °C to 10 °C", [(5.0, 10.0)]),
        ("between 5 and 10 miles", [(5.0, 10.0)]),
        ("in 1990 and 5 miles", [(5.0,)]),
        ("1 1/2 cups, ½ cup, half a cup", [(1.5,), (0.5,), (0.5,)]),
        ("two and a half hours", [(2.5,)]),
        ("6 feet 2 inches", [(6 + 2 / 12,)]),
        ("-4 °C (25 °F)", [(-4.0,), (25.0,)]),
        ("lasts an hour, twice a day", [(1.0,)]),
        ("the 1st day, the third week", []),
        ("miles and inches", []),
    ],
)
def test_quantities_are_found(text, found) -> None:
    """With one number, or two of a range."""
    every = quantities(tokens_of(f"it is {text}"), f"it is {text}")
    assert [tuple(number.value for number in one.numbers) for one in every] == [
        pytest.approx(numbers) for numbers in found
    ]


@pytest.mark.parametrize(
    ("text", "value", "is_right", "is_wrong"),
    [
        ("$50,000 x 4% = $2,000", 2000, True, False),
        ("4% - 1.6% = 2.4%", 2.4, True, False),
        ("$4,000 (sales) - $3,000 (cost) = $1,000", 1000, True, False),
        ("2 + 3 × 4 = 14", 14, True, False),
        ("$100 + 8% = $108", 108, True, False),
        ("2/3 ≈ 0.67", 2 / 3, True, False),
        ("370 miles x 0.8571 = 308.35 miles", 317.127, False, True),
        ("314 / 10 = 32", 31.4, False, False),
        ("30 minutes x 4 = 2 hours", 120, False, False),
    ],
)
def test_an_equation_is_right_wrong_or_rounded(text, value, is_right, is_wrong) -> None:
    """One whose units would have to be converted is not called wrong."""
    (found,) = equations(tokens_of(text), text)
    assert found.value == pytest.approx(value)
    assert (found.is_right, found.is_wrong) == (is_right, is_wrong)


@pytest.mark.parametrize(
    "text",
    [
        "x = 5", "from 2010-2014 = 4", "(2 + 3) × 4 = 20", "1 / 0 = 5", "E = mc2 = 3", "5 = 5",
        "half (6-day week) x 10 = 480)", "It has 5. Then 6 x = 7",
    ],
)  # fmt: skip
def test_what_is_no_sum_of_numbers_is_no_equation(text) -> None:
    """Nor one whose parentheses would have to be read."""
    assert list(equations(tokens_of(text), text)) == []


def test_a_right_result_is_no_invention(scores, generation_of) -> None:
    """Alone neither; a wrong one is named, and costs beside the right one."""
    plain, right, wrong = (
        f"The salary is $50,000, and the raise is 4%. {sum_of} Thus it is {result}."
        for sum_of, result in (
            ("It is paid.", "paid"),
            ("$50,000 × 0.04 = $2,000.", "$2,000"),
            ("$50,000 × 0.04 = $3,000.", "$3,000"),
        )
    )
    assert Groundedness().score(generation_of(1, right, context=PASSAGES)).label == "supported"
    assert scores(plain, right)[1].value > 0.8
    found = scores(right, wrong)[1]
    assert found.value < 0.2
    assert "$50,000 × 0.04 = $3,000 is miscalculated" in found.explanation


def test_a_wrong_conversion_is_named(generation_of) -> None:
    """Both of its numbers are quoted."""
    found = Groundedness().score(generation_of(1, "Use 375°F (90°C).", context=PASSAGES))
    assert "375°F (90°C is miscalculated" in found.explanation


@pytest.mark.parametrize(("count", "label"), [("three", "supported"), ("five", "unsupported")])
def test_an_answer_may_count_its_own_list(generation_of, count, label) -> None:
    """A number of items that it does not have is an invention."""
    items = "1. The trail is 10 miles long.\n2. A bus takes an hour.\n3. The tank holds 20 liters."
    answer = f"Here are {count} facts:\n{items}"
    assert Groundedness().score(generation_of(1, answer, context=PASSAGES)).label == label


@given(st.lists(st.sampled_from([
    "5", "one", "half", "a", "and", "1/2", "-", "(", ")", "=", "x", "to", "feet", "°F", "inches",
    "kg", "per", "hour", "%", "$", "2.5", "minus", "square", "mph", "and a half",
]), max_size=12).map(" ".join))  # fmt: skip
def test_any_words_can_be_read(text) -> None:
    """Every token of the result has its place in the text."""
    tokens = tokens_of(text)
    list(equations(tokens, text))
    for token in as_known(tokens, text, KnownAmounts(amounts_of(tokens, text))):
        assert 0 <= token.start <= token.end <= len(text)
