"""The sampled answers of a rollout, rescored under the baseline and audited."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from collector.client import Client
from collector.contract import Arm, Generation
from evals.evaluators.answers import answer_text
from evals.lossless.rescoring import TextRescorer
from evals.lossless.sampling_audit import Floats, SamplingAudit, observe

ENOUGH_TOKENS = 4000
"""Tokens by which the audit has seen each planted fault in most runs; fewer that are quiet say
little."""


class SequenceRescorer(TextRescorer, Protocol):
    """A rescorer that also judges a whole answer in one pass."""

    def answer_logits(self, prompt: list[int], answer: list[int]) -> Floats:
        """Return the logits at each of the answer's tokens, one row a token."""


CUT = "cut into other tokens than were sampled"
MOST_CUT = 0.05
"""The share of such answers beyond which the others are no sample of the baseline's either."""


@dataclass(frozen=True, slots=True)
class Audited:
    """What the audit saw of one arm."""

    answers: int
    tokens: int
    left_out: Mapping[str, int]
    """Answers that could not be used, by reason."""
    log_e: float
    alarmed: bool

    @property
    def selected(self) -> bool:
        """Say whether what is left is a choice among the answers, by what they say."""
        cut = self.left_out.get(CUT, 0)
        return cut > MOST_CUT * (cut + self.answers)


def audit(
    client: Client,
    rollout: str,
    rescorer: SequenceRescorer,
    *,
    arm: Arm,
    tolerance: float,
    seed: int,
) -> Audited:
    """Hold an arm's sampled tokens against the baseline's distribution, answer by answer.

    The evidence is the e-value after the last answer, or at the alarm. Answers that share a seed
    share their randomness, so that only the first of each seed counts.
    """
    state, rng = SamplingAudit.begin(tolerance), np.random.default_rng(seed)
    left_out, seeds = Counter[str](), set[int]()
    answers = tokens = 0
    for one in client.generations(rollout, arm=arm, content=True):
        usable = _usable(one, rescorer, seeds)
        if isinstance(usable, str):
            left_out[usable] += 1
            continue
        prompt, emitted = usable
        laws = law(
            rescorer.answer_logits(prompt, emitted), one.temperature or 1.0, one.top_p, one.top_k
        )
        state = state.after(observe(laws, np.array(emitted), None, rng))
        answers, tokens = answers + 1, tokens + len(emitted)
        if state.alarmed:
            break
    return Audited(answers, tokens, dict(left_out), state.log_e, state.alarmed)


def law(logits: Floats, temperature: float, top_p: float | None, top_k: int | None) -> Floats:
    """Return the distributions that the request asked for: temperature, then top-k, then top-p.

    Of top-p the most likely tokens are kept up to the one that reaches it.
    """
    scaled = logits / temperature
    if top_k is not None and 0 < top_k < scaled.shape[1]:
        least = np.partition(scaled, -top_k, axis=1)[:, [-top_k]]
        scaled = np.where(scaled < least, -np.inf, scaled)
    p = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    if top_p is not None and top_p < 1:
        order = np.argsort(-p, axis=1, kind="stable")
        ranked = np.take_along_axis(p, order, axis=1)
        kept = np.where(ranked.cumsum(axis=1) - ranked < top_p, ranked, 0.0)
        np.put_along_axis(p, order, kept, axis=1)
        p /= p.sum(axis=1, keepdims=True)
    return np.asarray(p)


def _usable(
    one: Generation, rescorer: SequenceRescorer, seeds: set[int]
) -> tuple[list[int], list[int]] | str:
    """Return prompt and answer as tokens, or why the answer is of no use."""
    if one.error_type is not None or not one.temperature:
        return "failed" if one.error_type is not None else "greedy, or of unknown temperature"
    text = answer_text(one)
    prompt = None if one.content is None else rescorer.prompt_tokens(one.content.input_messages)
    if text is None or prompt is None:
        return "without the texts"
    if one.seed is not None and one.seed in seeds:
        return "with the seed of an earlier answer"
    tokens = rescorer.tokens(text)
    if one.finish_reasons == ("stop",):
        tokens = [*tokens, rescorer.end_token]
    if not tokens or (one.output_tokens is not None and one.output_tokens != len(tokens)):
        return CUT
    if one.seed is not None:
        seeds.add(one.seed)
    return prompt, tokens
