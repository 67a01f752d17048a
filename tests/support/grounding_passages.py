"""Passages that the tests of groundedness hold answers against."""

from evals.evaluators.groundedness.features import read
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.sentences import sentences_of

PASSAGES = (
    "Order #KD-48: Ada Berg bought the Lumen kettle on 12 May for EUR 48.",
    "Parcel #ZL-17 left Bonn with Arrow on 3 June and is due in Ghent on 9 June.",
)
FACTS = (
    (
        "The city library was founded in 1882 by Clara Hale and moved to Mill Street in 1954. "
        "It holds 1,200,000 books and lends about 25% of them each year. Members can borrow "
        "twelve books at a time, but the library does not lend reference works. The reading "
        "room opens at 9 and closes at 20 on weekdays, and entry is free for residents."
    ),
)


def unexplained_numbers(answer: str, context: tuple[str, ...], question: str = "") -> list[str]:
    """Return the answer's numbers that neither passages nor question explain, as written."""
    readings = read(
        answer, sentences_of(answer), indexed(context), shipped().rarity, question=question
    )
    return [answer[t.start : t.end] for reading in readings for t in reading.unexplained]
