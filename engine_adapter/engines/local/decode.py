"""The draft–verify loop; without draft tokens it is plain decoding.

The prefill reads all tokens of a prompt but the last. Each step then feeds the text's last token
and the draft tokens after it, and emits one token more than it accepts. So after each step, again,
all tokens but the last have been read.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine_adapter.engines.local.cached_model import CachedModel
from engine_adapter.engines.local.draft_length import DraftLength, Fixed
from engine_adapter.engines.local.draft_tree import DraftTree
from engine_adapter.engines.local.drafters import Drafter, NoDraft
from engine_adapter.engines.local.endings import Ending
from engine_adapter.engines.local.graphs import Direct, runner_for
from engine_adapter.engines.local.records import (
    BatchStep,
    Distributions,
    Generated,
    Memory,
    TextStep,
)
from engine_adapter.engines.local.sampling import Draft, SamplerChain, VerifyResult
from engine_adapter.engines.local.step_clock import Mark, StepMarks, mark
from engine_adapter.engines.local.texts import TokenTexts, among


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One prompt to continue."""

    prompt: tuple[int, ...]
    ending: Ending
    seed: int = 0


class DraftVerify:
    """A target and its drafter, for batches of up to `batch` texts of up to `capacity` tokens."""

    def __init__(
        self,
        model: Any,  # Any: transformers ships no types
        drafter: Drafter | None = None,
        length: DraftLength | None = None,
        *,
        batch: int = 1,
        capacity: int,
        end_tokens: Sequence[int] = (),
        captures: bool = True,
    ) -> None:
        """Allocate the caches.

        `capacity` counts prompt and answer; room for rejected tokens is added. `captures`: whether
        steps run as CUDA graphs on a GPU.
        """
        self._length = length or Fixed(0 if drafter is None else 4)
        k_max = self._length.k_max
        self._device = model.device
        self._target = CachedModel(model, batch, capacity + k_max + 1)
        self._none, self._drafter = NoDraft(), drafter or NoDraft()
        self._none.attach(self._target)
        held = self._drafter.attach(self._target)
        self._texts = TokenTexts(batch, capacity + k_max + 1, k_max, self._device)
        self._ends = torch.tensor(end_tokens, dtype=torch.long, device=self._device)
        self._trees: dict[tuple[int, ...], DraftTree] = {}
        self._runner = runner_for(self._device) if captures else Direct()
        self.memory = Memory(
            self._target.weight_bytes,
            held.weight_bytes,
            self._target.cache.nbytes,
            held.cache_bytes,
        )

    def step(
        self, k: int, sampling: SamplerChain
    ) -> tuple[Draft, VerifyResult, tuple[Mark, Mark, Mark]]:
        """Draft k tokens, verify them in one target pass, and extend the texts; k may be 0."""
        texts = self._texts
        texts.widen(k)
        key = (k, texts.window, sampling)
        begun = mark(self._device)
        draft = self._runner.run(("draft", *key), lambda: self._draft(k, sampling))
        drafted = mark(self._device)
        result = self._runner.run(("verify", *key), lambda: self._verify(draft, sampling))
        verified = mark(self._device)
        texts.extend(result.tokens, result.accepted + 1)
        return draft, result, (begun, drafted, verified)

    def _draft(self, k: int, sampling: SamplerChain) -> Draft:
        """Propose draft tokens; cut those after an end token or beyond the text's limit."""
        texts = self._texts
        draft = (self._drafter if k else self._none).propose(texts, k, sampling)
        room = (texts.limits - texts.lengths - 1).clamp(min=0)
        if draft.parents is not None:
            return draft._replace(lengths=draft.lengths.minimum(room))
        ends = among(draft.tokens, self._ends).long()
        ended_before = ends.cumsum(1) - ends > 0
        to_the_end = (~ended_before).long().cumprod(1).sum(1)
        return draft._replace(lengths=draft.lengths.minimum(to_the_end).minimum(room))

    def _verify(self, draft: Draft, sampling: SamplerChain) -> VerifyResult:
        """Run the target over the last token and the draft; return the tokens to keep."""
        texts, starts = self._texts, self._texts.lengths - 1
        fed, tree = torch.cat([texts.last, draft.tokens], 1), self._tree_of(draft)
        seen = self._target(fed, starts, texts.window, tree=tree)
        if tree is None:
            result = sampling.verify(seen.logits, draft, texts.noise)
        else:
            result, rows = tree.verify(sampling, seen.logits, draft, texts.noise)
            # move the kept path's cache entries to the text's consecutive slots
            to = starts[:, None] + texts.places[: rows.shape[1]]
            self._target.cache.move(starts[:, None] + rows, to)
            seen = seen.of(rows)
        self._drafter.observe(starts, seen)
        return result

    def _tree_of(self, draft: Draft) -> DraftTree | None:
        """Return the draft's tree, cached: a captured CUDA graph needs the same tensors."""
        if draft.parents is None:
            return None
        if draft.parents not in self._trees:
            self._trees[draft.parents] = DraftTree(draft.parents, self._device)
        return self._trees[draft.parents]

    def steps(
        self, jobs: Sequence[Job], sampling: SamplerChain, *, keep_distributions: bool = False
    ) -> Iterator[BatchStep]:
        """Yield each step until every job's ending has a reason; stop iterating to cancel all.

        To cancel one job, set its ending's reason between two steps.
        """
        texts = self._texts
        noise = _noise(jobs, texts.noise)
        self._length.begin(len(jobs))
        self._read(jobs)
        growing = [True] * len(jobs)
        for number in range(max(job.ending.max_tokens for job in jobs)):
            k = self._length.k()
            if not sampling.greedy:
                texts.noise[: len(jobs)] = noise[:, number]
            draft, result, marks = self.step(k, sampling)
            read, tree = _read_back(draft, result), self._tree_of(draft)
            at_s = time.perf_counter()
            done = tuple(
                _text_step(text, job.ending, tree, read[text], draft.tokens.shape[1])
                for text, job in enumerate(jobs)
                if job.ending.reason is None
            )
            if keep_distributions and result.distributions is not None:
                done = tuple(_with_distributions(one, draft, result.distributions) for one in done)
            self._length.after([one.verify_step for one in done])
            texts.grew(max((len(one.token_ids) for one in done), default=0))
            before, growing = growing, [job.ending.reason is None for job in jobs]
            if growing != before:
                texts.stop(growing + [False] * (texts.batch - len(jobs)))
            last = StepMarks(*marks, mark(self._device))
            yield BatchStep(k=k, at_s=at_s, marks=last, texts=done)
            if not any(growing):
                return

    def _read(self, jobs: Sequence[Job]) -> None:
        """Prefill: read all tokens of the prompts but the last."""
        texts = self._texts
        limits = [len(job.prompt) + job.ending.max_tokens for job in jobs]
        prompts = texts.begin([job.prompt for job in jobs], limits)
        start = torch.zeros_like(texts.lengths)
        for seen in self._target.read(prompts, texts.window):
            self._drafter.observe(start, seen)
            start = start + seen.hidden.shape[1]
        if self._length.k_max:
            self._drafter.begin(prompts, texts.window)


def generate(
    loop: DraftVerify, jobs: Sequence[Job], sampling: SamplerChain | None = None
) -> list[Generated]:
    """Return each job's answer."""
    begun_s = time.perf_counter()
    with torch.inference_mode():
        steps = list(loop.steps(jobs, sampling or SamplerChain()))
    answers = []
    for text, job in enumerate(jobs):
        own = [(step.at_s, one) for step in steps for one in step.texts if one.text == text]
        answers.append(
            Generated(
                token_ids=tuple(job.ending.token_ids),
                finish_reason=job.ending.reason or "length",
                steps=tuple(one for _, one in own),
                begun_s=begun_s,
                token_times_s=tuple(at_s for at_s, _ in own),
            )
        )
    return answers


def _noise(jobs: Sequence[Job], like: Tensor) -> Tensor:
    """Return uniform numbers, (jobs, steps, 2k + 1), which depend only on each job's seed."""
    steps = max(job.ending.max_tokens for job in jobs)
    rows = [
        torch.rand(
            (steps, like.shape[1]),
            generator=torch.Generator().manual_seed(job.seed),
            dtype=like.dtype,
        )
        for job in jobs
    ]
    return torch.stack(rows).to(like.device)


def _read_back(draft: Draft, result: VerifyResult) -> list[list[int]]:
    """Return a row per text: proposed, accepted, draft tokens, tokens. Synchronises only once."""
    columns = [draft.lengths[:, None], result.accepted[:, None], draft.tokens, result.tokens]
    rows: list[list[int]] = torch.cat(columns, 1).tolist()
    return rows


def _text_step(
    text: int, ending: Ending, tree: DraftTree | None, row: list[int], width: int
) -> TextStep:
    proposed, accepted, *rest = row
    draft_ids, tokens = rest[:width], rest[width:]
    kept = ending.keep(tokens[: accepted + 1])
    if tree is None:
        drafted, levels = draft_ids[:proposed], None
    else:
        levels = min(proposed, tree.depth)
        drafted = [
            i for i, level in zip(draft_ids, tree.level_of, strict=True) if level <= proposed
        ]
    return TextStep(
        text=text,
        draft_ids=tuple(drafted),
        accepted=min(accepted, len(kept)),
        token_ids=kept,
        levels=levels,
    )


def _with_distributions(step: TextStep, draft: Draft, p: Tensor) -> TextStep:
    """Add copies of the step's distributions: the next step overwrites the originals."""
    n = len(step.draft_ids) if step.levels is None else step.accepted
    q = None if draft.distributions is None else draft.distributions[step.text, :n].cpu().clone()
    return replace(step, distributions=Distributions(p[step.text, : n + 1].cpu().clone(), q))
