"""Measure the trained pair on held-out examples."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from training.desk import COHORTS, Cohort, Example
from training.pair.batches import Encoded, encode

# Any, throughout: transformers ships no types.


@dataclass(frozen=True, slots=True)
class CohortFigures:
    """Counts and shares over one cohort's held-out examples."""

    examples: int
    mean_answer_tokens: float
    target_exact: float
    draft_exact: float
    argmax_agreement: float
    """Share of answer positions at which draft and target have the same most likely token, given
    the reference before it."""


def measure(
    target: Any, draft: Any, tokenizer: Any, examples: Iterable[Example]
) -> dict[Cohort, CohortFigures]:
    """Compare both models' greedy choices along the reference answers, by cohort.

    If every token of an answer is the greedy choice after the tokens before it, greedy generation
    produces exactly this answer. So one pass per example measures exact match without generating.
    """
    encoded: dict[Cohort, list[Encoded]] = {cohort: [] for cohort in COHORTS}
    for example in examples:
        encoded[example.cohort].append(encode(example, tokenizer))
    return {cohort: _figures(target, draft, many) for cohort, many in encoded.items()}


def _figures(target: Any, draft: Any, encoded: list[Encoded]) -> CohortFigures:
    tokens = agreed = target_exact = draft_exact = 0
    for one in encoded:
        said, guessed = greedy_choices(target, one), greedy_choices(draft, one)
        tokens += len(one.answer)
        agreed += sum(a == b for a, b in zip(said, guessed, strict=True))
        target_exact += said == one.answer
        draft_exact += guessed == one.answer
    count = len(encoded)
    return CohortFigures(
        examples=count,
        mean_answer_tokens=round(tokens / count, 2),
        target_exact=round(target_exact / count, 4),
        draft_exact=round(draft_exact / count, 4),
        argmax_agreement=round(agreed / tokens, 4),
    )


@torch.no_grad()
def greedy_choices(model: Any, encoded: Encoded) -> list[int]:
    """Return the most likely token at each answer position, given the reference before it."""
    ids = torch.tensor([encoded.prompt + encoded.answer[:-1]])
    kept = len(encoded.answer)
    choices: list[int] = model(ids, logits_to_keep=kept).logits[0].argmax(-1).tolist()
    return choices
