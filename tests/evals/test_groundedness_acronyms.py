"""Names and their acronyms: which say the same, and which are not each other's."""

from collections.abc import Callable

import pytest

from evals.evaluators.groundedness.acronyms import acronyms_of, as_held, as_put
from evals.evaluators.groundedness.tokens import tokens_of

PASSAGES = (
    """The World Health Organization (WHO) recommends that adults sleep for 7 to 9 hours. A limited
liability company pays no corporate tax. The Dearness Allowance (DA) is paid to public servants.""",
    """The Department of Energy (DOE) tests lamps. Follicle-stimulating hormone (FSH) is measured
on day 3. The European Medicines Agency approves drugs.""",
)
WHO = "The World Health Organization (WHO) recommends that adults sleep for 7 to 9 hours."
DOE = "The Department of Energy (DOE) tests lamps."
FSH = "Follicle-stimulating hormone (FSH) is measured on day 3."
LLC = "A limited liability company (LLC) pays no corporate tax."


@pytest.fixture
def fall(scores_beside) -> Callable[[str, str], float]:
    """Give a function that returns how far a score falls from the first answer to the second."""

    def between(one: str, other: str) -> float:
        first, second = scores_beside(one, other, PASSAGES)
        return first.value - second.value

    return between


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        (WHO, WHO.replace("World Health Organization (WHO)", "WHO")),
        (WHO, WHO.replace(" (WHO)", "")),
        (WHO, WHO.replace("World Health Organization (WHO)", "WHO (World Health Organization)")),
        (DOE, "The DOE tests lamps."),
        (DOE, "The Department of Energy tests lamps."),
        (DOE, "The DOE (Department of Energy) tests lamps."),
        (FSH, "FSH is measured on day 3."),
        (FSH, "FSH (follicle-stimulating hormone) is measured on day 3."),
        (LLC, "A limited liability company pays no corporate tax."),
    ],
)
def test_a_name_and_its_acronym_are_one(
    answer: str, same: str, fall: Callable[[str, str], float]
) -> None:
    assert abs(fall(answer, same)) <= 0.02


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (WHO, WHO.replace("World Health Organization (WHO)", "DOE")),
        (WHO, WHO.replace("Health", "Heart")),
        (WHO, WHO.replace("World Health Organization (WHO)", "World Food Programme (WFP)")),
        (DOE, "The Department of Education (DOE) tests lamps."),
        (DOE, "The EPA tests lamps."),
        (FSH, "LH is measured on day 3."),
    ],
)
def test_another_name_costs_much(
    answer: str, wrong: str, fall: Callable[[str, str], float]
) -> None:
    assert fall(answer, wrong) >= 0.5


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Registered Nurses (RNs) and the Department of Energy (DOE)", {"RN", "DOE"}),
        ("DOE (Department of Energy), DNA (see below), the EU (Brussels)", {"DOE"}),
        ("information technology (IT), a list (ABC), day (D), Mary (Mother of Jesus)", {"IT"}),
        ("Dearness Allowance (DA", set()),
        ("Dearness, Allowance (DA), Allowance. (DA) Dearness", set()),
        ("(DA) DA (", set()),
    ],
)
def test_which_acronyms_a_text_defines(text: str, names: set[str]) -> None:
    assert acronyms_of(tokens_of(text), text).keys() == names


def test_one_of_acronym_and_name_is_put() -> None:
    """A beginning of a name is left as it is, and so is an acronym with two names."""
    told = "The Dearness Fund (DF), the World Health Group (WHG), the WHO (World Health Org)"
    known = acronyms_of(tokens_of(told), told)
    held = as_held([known], {"df", "dear", "fund", "world", "health", "group", "who", "org"})
    for text, words in (
        ("the Dearness Fund pays", "the df pay"),
        ("the DF (Dearness Fund) pays", "the df pay"),
        ("the Dearness", "the dear"),
        ("the WHG pays", "the world health group pay"),
        ("the World Health Group (WHG) pays", "the world health group pay"),
        ("the WHO pays", "the world health org pay"),
        ("who pays", "who pay"),
    ):
        found = as_put(tokens_of(text), text, held)
        assert [token.form.stem for token in found] == words.split()
    assert as_held([known], {"health", "group"}) == {}
    other = acronyms_of(tokens_of(told := "Disaster Fund (DF)"), told)
    assert as_held([known, other], {"df"}) == {}
