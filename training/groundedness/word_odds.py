"""Fit how usual words are at their places in sentences."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F  # noqa: N812 - the field's name for it

from evals.evaluators.groundedness.token import Token
from evals.evaluators.groundedness.tokens import tokens_of
from evals.evaluators.groundedness.word_odds import (
    DO,
    NO_WORD,
    VOCABULARY,
    WordOdds,
    choice_of,
    rounded,
    terms,
)

_PART = re.compile(r"(?<=[.!?])\s+|\n+")
_SHARE_OF_OTHERS = 0.15
"""Share of the words outside the vocabulary that are used."""
_SHARE_OF_GAPS = 0.15
_SEED = 20261121
_LEAST_COUNT = 12
"""Terms in fewer documents are left out."""
_RANK = 48
_SPREAD = 0.02
"""Standard deviation of the vectors at first."""
_EPOCHS = 6
_BATCH = 512
_RATE = 0.05


@dataclass(frozen=True, slots=True)
class Places:
    """Places of a text: each one's terms, by number, and what fills it."""

    terms: NDArray[np.int32]
    """The terms of all places, one place after the other."""
    counts: NDArray[np.int64]
    """Each place's number of terms."""
    choices: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Learner:
    """Finds places in texts, numbers their terms, and fits the regression on them."""

    numbers: dict[str, int] = field(default_factory=dict)

    def places(self, text: str) -> Places:
        """Return the places of a text that hold words of the vocabulary, and some others."""
        rng = random.Random(f"{_SEED} {text}")  # noqa: S311 - a seeded draw, no secret
        found, counts, choices = list[int](), list[int](), list[int]()
        for before, behind, choice in _places(text, rng):
            size = len(found)
            found += (self.numbers.setdefault(t, len(self.numbers)) for t in terms(before, behind))
            counts.append(len(found) - size)
            choices.append(choice)
        return Places(
            np.array(found, np.int32), np.array(counts, np.int64), np.array(choices, np.int64)
        )

    def fitted(self, documents: Sequence[Sequence[Places]]) -> WordOdds:
        """Fit the regression; the number of documents tells how common a term is."""
        counts = np.zeros(len(self.numbers), dtype=np.int64)
        for document in documents:
            counts[np.unique(np.concatenate([one.terms for one in document]))] += 1
        is_known = counts >= _LEAST_COUNT
        number = np.where(is_known, np.cumsum(is_known) - 1, -1)
        every = [one for document in documents for one in document]
        flat = number[np.concatenate([one.terms for one in every])]
        sizes = np.concatenate([one.counts for one in every])
        place = np.repeat(np.arange(len(sizes)), sizes)[flat >= 0]
        choices = np.concatenate([one.choices for one in every])
        names = np.array(list(self.numbers), dtype=object)[is_known].tolist()
        return _fitted(names, flat[flat >= 0], place, choices)


def _places(
    text: str, rng: random.Random
) -> Iterator[tuple[Sequence[Token], Sequence[Token], int]]:
    for part in _PART.split(text):
        tokens = tokens_of(part)
        for at, token in enumerate(tokens):
            if rng.random() < _SHARE_OF_GAPS:
                yield tokens[:at], tokens[at:], NO_WORD
            choice = choice_of(token)
            is_word = VOCABULARY[choice] == token.form.stem
            if is_word or rng.random() < _SHARE_OF_OTHERS:
                yield tokens[:at], tokens[at + 1 :], choice
                if token.form.is_negator and at and tokens[at - 1].form.stem in DO:
                    yield tokens[: at - 1], tokens[at + 1 :], choice


def _fitted(
    names: Sequence[str],
    term: NDArray[np.int64],
    place: NDArray[np.int64],
    choices: NDArray[np.int64],
) -> WordOdds:
    """Fit the vectors of the terms with these names; `term` holds each place's terms, by place."""
    torch.manual_seed(_SEED)
    torch.set_num_threads(1)
    vectors = torch.nn.EmbeddingBag(len(names), _RANK, mode="sum")
    torch.nn.init.normal_(vectors.weight, std=_SPREAD)
    readout = torch.nn.Linear(_RANK, len(VOCABULARY))
    optimizer = torch.optim.Adagrad([*vectors.parameters(), *readout.parameters()], lr=_RATE)
    start = np.searchsorted(place, np.arange(len(choices) + 1))
    for _ in range(_EPOCHS):
        order = torch.randperm(len(choices)).numpy()
        for some in np.array_split(order, max(len(order) // _BATCH, 1)):
            size = start[some + 1] - start[some]
            offset = np.cumsum(size) - size
            inputs = term[np.arange(size.sum()) + np.repeat(start[some] - offset, size)]
            found = readout(vectors(torch.from_numpy(inputs), torch.from_numpy(offset)))
            loss = F.cross_entropy(found, torch.from_numpy(choices[some]))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return WordOdds(
        {name: number for number, name in enumerate(names)},
        rounded(vectors.weight.detach().numpy()),
        readout.weight.detach().numpy().T.copy(),
        readout.bias.detach().numpy(),
    )
