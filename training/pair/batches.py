"""Examples as tensors."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from training.desk import Example
from training.pair.tokenizer import END, prompt_text

_POOL_BATCHES = 16


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of a prompt in the chat template, and of its answer with the end token."""

    prompt: list[int]
    answer: list[int]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids, (batch, length), and whether each belongs to an answer; padded on the right.

    Attention is causal, so no real token attends to padding and no attention mask is needed.
    """

    ids: torch.Tensor
    is_answer: torch.Tensor


def encode(example: Example, tokenizer: Any) -> Encoded:  # Any: transformers ships no types
    """Tokenise an example."""
    return Encoded(
        prompt=tokenizer(prompt_text(example.prompt)).input_ids,
        answer=tokenizer(example.answer + END).input_ids,
    )


def collate(encoded: Sequence[Encoded], pad_id: int) -> Batch:
    """Stack examples into one batch as long as the longest."""
    longest = max(map(len, encoded))
    ids = torch.full((len(encoded), longest), pad_id)
    is_answer = torch.zeros((len(encoded), longest), dtype=torch.bool)
    for row, one in enumerate(encoded):
        ids[row, : len(one)] = torch.tensor(one.prompt + one.answer)
        is_answer[row, len(one.prompt) : len(one)] = True
    return Batch(ids, is_answer)


def batches(
    examples: Iterable[Example],
    tokenizer: Any,  # Any: transformers ships no types
    size: int,
    seed: int,
) -> Iterator[Batch]:
    """Yield batches of `size` examples of similar length, with little padding.

    Examples are sorted by length within a pool of several batches, whose order is then shuffled by
    `seed`; an incomplete last pool is dropped.
    """
    shuffler = random.Random(seed)  # noqa: S311  # an order, not a secret
    source = iter(examples)
    while pool := [encode(one, tokenizer) for one in islice(source, size * _POOL_BATCHES)]:
        if len(pool) < size * _POOL_BATCHES:
            return
        pool.sort(key=len)
        starts = list(range(0, len(pool), size))
        shuffler.shuffle(starts)
        for start in starts:
            yield collate(pool[start : start + size], tokenizer.pad_token_id)
