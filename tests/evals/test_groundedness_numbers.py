"""Numbers that no passage holds: which count as errors, and which claim nothing."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from grounding_passages import FACTS
from grounding_passages import unexplained_numbers as numbers

from collector.content import Redactor
from collector.content import shipped as shipped_patterns
from collector.contract import Generation
from evals.evaluators import Groundedness
from evals.evaluators.answers import prompt_text

GenerationOf = Callable[..., Generation]
COOKING = ("Preheat the oven to 350°F. Bake the bread, founded on a recipe of 1931, for an hour.",)


def asked(generation: Generation, *messages: tuple[str, str]) -> Generation:
    """Return the generation with other input messages, of role and text."""
    assert generation.content is not None
    sent = [{"role": r, "parts": [{"type": "text", "content": text}]} for r, text in messages]
    content = replace(generation.content, input_messages=json.dumps(sent))
    return replace(generation, content=content)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("Step 7: Bake the bread.", []),
        ("Repeat steps 5 and 6 until the bread is brown.", []),
        ("Follow steps 1-4 again.", []),
        ("(Fact 5) The oven is at 350°F.", []),
        ("There are two ways to bake bread, and the two differ.", []),
        ("There are seven ways to bake bread.", ["seven"]),
        ("The passage describes seven different topics.", []),
        ("The passage describes seven breads and 9 topics.", ["seven", "9"]),
        ("It mentions seven people.", ["seven"]),
        ("Bake it for 1/2 to 3/4 of an hour.", []),
        ("The bakery is open 24/7.", []),
        ("The recipe is of 5/12/2014.", ["5/12/2014", "5/12/2014"]),
        ("It costs 48/month, or 7/8/9.", ["48", "7", "8", "9"]),
        ("The recipe dates from the early 20th century.", []),
        ("The recipe dates from the early 19th century.", ["19"]),
        ("The recipe dates from the 1930s.", []),
        ("The recipe dates from the 1940s.", ["1940s"]),
        ("Preheat the oven to 400°F.", ["400"]),
        ("Preheat the oven to 350°F (177°C).", ["177"]),
        ("The steps take 7 minutes.", ["7"]),
    ],
)
def test_some_numbers_claim_nothing(answer, left) -> None:
    """Labels of the answer's own, spelled pairs, fractions, and centuries of a year that is there.

    What is converted stays: the passages do not say it, and people marked most of it as invented.
    """
    assert numbers(answer, COOKING) == left


SPELLED = """Add 1/2 cup of sugar and one and a half cups of milk. It is open until 5 p.m. at 50
cents. It was built in World War II, in the 1940s, for at least 20 guests. Its garden has 30 m².
It was shut in 1999-2001, 2007 -- 08 and 2011/12."""


@pytest.mark.parametrize(
    "answer",
    [
        "Add 0.5 cups of sugar.",
        "Add ½ cup of sugar.",
        "Add 1.5 cups of milk.",
        "It is open until 17:00 at $0.50.",
        "It was built in World War 2, in the '40s, for ≥ 20 guests.",
        "It was built in the forties.",
        "Its garden has 30 square meters.",
        "It was shut in 1999–01, from 2007 to 2008 and in 2011-2012.",
    ],
)
def test_a_value_of_the_passages_in_other_spelling_is_no_invention(answer, generation_of) -> None:
    """The spelling changes nothing; another value counts as an invention."""
    score = Groundedness().score(generation_of(answer=answer, context=(SPELLED,)))
    assert score is not None
    assert score.label == "supported"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Add 0.25 cups of sugar.", "0.25 not in"),
        ("Add 2.5 cups of milk.", "2.5 not in"),
        ("It is open until 18:00.", "18:00 not in"),
        ("It costs $0.60.", "$0.60 not in"),
        ("It was built in the '50s.", "'50s not in"),
        ("It was built in World War III.", "III not in"),
        ("Its garden has 30 m.", "30 m where the passages have square meter"),
        ("Its garden has 30 cubic meters.", "30 cubic meters where the passages have square meter"),
        ("It was shut in 2007-10.", "10 not in"),
        ("It was built for ≤ 20 guests.", "≤ 20 where the passages have at least"),
    ],
)
def test_another_value_is_an_invention(answer, reason, generation_of) -> None:
    """Named as it is written."""
    score = Groundedness().score(generation_of(answer=answer, context=(SPELLED,)))
    assert score is not None
    assert score.label == "unsupported"
    assert reason in (score.explanation or "")


def test_a_number_of_the_question_is_no_invention(generation_of) -> None:
    """The last thing that the user said explains it; what was said before, and by others, not."""
    evaluator = Groundedness()
    answer = "It cannot run on Windows 11. Bake the bread for 11 minutes."
    alone = generation_of(answer=answer, context=COOKING)
    told = asked(alone, ("system", "Be brief."), ("user", "Does the oven run Windows 11?"))
    before = asked(alone, ("user", "Windows 11?"), ("assistant", "11"), ("user", "And 12?"))
    found = {
        name: score.explanation or ""
        for name, generation in {"alone": alone, "told": told, "before": before}.items()
        if (score := evaluator.score(generation))
    }
    assert "11 not in the passages" in found["alone"]
    assert "11 not in the passages" in found["before"]
    assert "11 not in the passages" not in found["told"]


def test_both_answers_of_a_pair_have_the_question(generation_of) -> None:
    """Judged beside each other, too."""
    question = ("user", "Does the oven of 2019 bake bread?")
    context = COOKING
    one, other = (
        asked(generation_of(answer=answer, context=context), question)
        for answer in (
            "Bake the bread for an hour. The oven of 2019 bakes bread.",
            "Bake the bread for an hour. The oven of 2019 bakes it.",
        )
    )
    score = Groundedness().score_beside(one, other)
    assert score is not None
    assert "2019 not in" not in (score.explanation or "")


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        (None, None),
        ("not JSON", None),
        ("{}", None),
        ('[{"role": "system", "parts": [{"type": "text", "content": "a"}]}]', None),
        ('[{"role": "user", "parts": [{"type": "text", "content": "a"}]}]', "a"),
        ('[{"role": "user", "parts": 3}]', None),
        ('[{"role": "user", "parts": [{"type": "image"}]}]', ""),
    ],
)
def test_what_the_user_asked_is_read_or_absent(generation_of, messages, text) -> None:
    """In whatever shape it was recorded."""
    generation = generation_of(answer="a", context=FACTS)
    assert generation.content is not None
    content = replace(generation.content, input_messages=messages)
    assert prompt_text(replace(generation, content=content)) == text


def test_a_changed_number_is_seen_through_redaction(generation_of) -> None:
    """The right one in other spelling counts as supported, another one as unsupported."""
    redact = Redactor(shipped_patterns(), b"k" * 32).text
    passage = "Call +1 415 555 2671 or write to desk@clinic.example to make an appointment."
    scores = []
    for contact in ("call (415) 555-2671", "write to Desk@clinic.example",
                    "call (415) 555-2672", "write to desk@clinics.example"):  # fmt: skip
        answer = redact(f"You can {contact} to make an appointment.")
        score = Groundedness().score(generation_of(answer=answer, context=(redact(passage),)))
        assert score is not None
        assert score.value is not None
        scores.append(score.value)
    assert min(scores[:2]) > 0.5 > max(scores[2:])
