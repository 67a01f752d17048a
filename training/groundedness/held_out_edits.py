"""Pair supported answers with copies edited by rules that no training used."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from training.groundedness.data import Labelled
from training.groundedness.edits import harmful, harmless
from training.groundedness.edits.places import Rule, Source
from training.groundedness.examples import beside_strangers
from training.groundedness.twin_examples import Duel

HARMLESS, HARMFUL = "harmless", "harmful"
RULES: Mapping[tuple[str, str], Rule] = {
    **{(HARMLESS, kind): rule for kind, rule in harmless.HELD_OUT.items()},
    **{(HARMFUL, kind): rule for kind, rule in harmful.HELD_OUT.items()},
}
"""Rules by effect and kind."""


def edited_pairs(answers: Sequence[Labelled], seed: int) -> list[Duel]:
    """Return each supported answer paired with one edited copy of every kind that applies."""
    found = list[Duel]()
    for number, ((effect, kind), rule) in enumerate(RULES.items()):
        rng = random.Random(seed + number)  # noqa: S311 - a seeded draw, no secret
        for item, other in beside_strangers(answers, rng):
            edit = rule(Source(item.context, item.answer, other.answer), rng)
            if edit is not None and edit.answer != item.answer:
                copy = replace(item, answer=edit.answer, kind=kind)
                found.append(Duel(item, copy, f"{effect}: {kind}"))
    return found
