"""Measurement of one cell of `gpu_generation`: generation with one batch, context and k."""

import statistics
import time
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.calibrated_pair import SAMPLING, CalibratedPair
from engine_adapter.engines.local import Drafter, DraftVerify, Ending, Fixed, Job, ModelDrafter
from engine_adapter.engines.local.records import BatchStep, Memory
from evals.advice.step_cost import StepCost, split
from evals.advice.survival import survival


class Cell(NamedTuple):
    """The configuration of a measurement; k = 0 is the baseline."""

    batch: int
    context: int
    k: int


class Measured(NamedTuple):
    """Medians over a cell's steps, and its totals."""

    cell: Cell
    tokens_per_s: float
    step_s: float
    draft_s: float
    verify_s: float
    overhead_s: float
    steps: int
    accepted_per_pos: tuple[int, ...]
    """Entry j counts the sequences' steps that accepted at least j + 1 tokens."""
    memory: Memory


def measure(pair: CalibratedPair, cell: Cell, steps: int) -> Measured:
    """Run a cell twice and time the second run: the first captures CUDA graphs.

    A run ends after `steps` steps, before any sequence ends, so that the batch is always full.
    """
    drafter: Drafter | None = ModelDrafter(pair.draft) if cell.k else None
    answer = (steps + 2) * (cell.k + 1)
    loop = DraftVerify(
        pair.target,
        drafter,
        Fixed(cell.k),
        batch=cell.batch,
        capacity=cell.context + answer,
    )
    for _ in range(2):
        with torch.inference_mode():
            run = list(islice(loop.steps(jobs(pair, cell, answer), SAMPLING), steps + 1))
    timed = run[1:]  # the first step begins during prefill
    tokens = sum(len(text.token_ids) for step in timed for text in step.texts)
    seconds = run[-1].at_s - run[0].at_s
    accepted = [text.accepted for step in timed for text in step.texts]
    return Measured(
        cell=cell,
        tokens_per_s=tokens / seconds,
        step_s=seconds / len(timed),
        draft_s=_median(timed, "draft_s"),
        verify_s=_median(timed, "verify_s"),
        overhead_s=_median(timed, "overhead_s"),
        steps=len(accepted),
        accepted_per_pos=tuple(sum(a > j for a in accepted) for j in range(cell.k)),
        memory=loop.memory,
    )


def needed_bytes(pair: CalibratedPair, cell: Cell, steps: int) -> int:
    """Return the bytes of a cell's KV caches, without the weights."""
    tokens = cell.batch * (cell.context + (steps + 3) * (cell.k + 1))
    models = [pair.target, pair.draft] if cell.k else [pair.target]
    return sum(tokens * cache_bytes_a_token(model) for model in models)


def cache_bytes_a_token(model: Any) -> int:  # Any: transformers ships no types
    """Return the bytes of one token's keys and values."""
    config = model.config
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = config.num_hidden_layers * config.num_key_value_heads
    return int(2 * heads * width * model.dtype.itemsize)


def bandwidth_bytes_per_s(device: torch.device, megabytes: int) -> float:
    """Return the bytes read and written per second by a copy, the best of ten."""
    source = torch.ones(megabytes * 2**20, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(10):
        wait(device)
        started_s = time.perf_counter()
        target.copy_(source)
        wait(device)
        best = min(best, time.perf_counter() - started_s)
    return 2 * source.nbytes / best


def limit_tokens_per_s(pair: CalibratedPair, cell: Cell, bandwidth: float) -> float:
    """Return the memory-bound rate: each step reads all weights once, and all KV caches."""
    weights = sum(p.nbytes for p in pair.target.parameters())
    weights -= pair.target.get_input_embeddings().weight.nbytes  # it reads only one row per token
    caches = cell.batch * cell.context * cache_bytes_a_token(pair.target)
    return float(cell.batch * bandwidth / (weights + caches))


def predicted_speedups(baseline: Measured, by_k: list[Measured]) -> dict[int, float]:
    """Return the speed model's predicted speedup for each k.

    E(k) = 1 + Σ S_j, from the largest k's steps, times the baseline's step time, divided by
    t_verify + k·t_draft, fitted to the step times of all k.
    """
    by_k = sorted(by_k, key=lambda one: one.cell.k)
    if not by_k:
        return {}
    longest = by_k[-1]
    k_max = longest.cell.k
    steps, accepted = np.zeros(k_max), np.zeros((k_max, k_max))
    steps[k_max - 1], accepted[k_max - 1] = longest.steps, longest.accepted_per_pos
    found = survival(steps, accepted)
    cost = _cost(by_k, k_max)
    if found is None:
        return {}
    return {
        one.cell.k: found.tokens_a_step(one.cell.k) * baseline.step_s / cost.step_s(one.cell.k)
        for one in by_k
    }


def _cost(by_k: list[Measured], k_max: int) -> StepCost:
    """Return the fit over all k; for a single k, its measured parts."""
    counts, seconds = np.zeros(k_max), np.zeros(k_max)
    for one in by_k:
        counts[one.cell.k - 1] = one.steps
        parts_s = one.draft_s + one.verify_s + one.overhead_s
        seconds[one.cell.k - 1] = parts_s
    fitted = split(counts, seconds)
    if fitted is not None:
        return fitted
    one = by_k[0]
    return StepCost(verify_s=one.verify_s + one.overhead_s, draft_s=one.draft_s / one.cell.k)


def theirs_tokens_per_s(pair: CalibratedPair, cell: Cell, tokens: int) -> float:
    """Return the rate of transformers' eager `generate`, assisted if k > 0, at batch 1."""
    (job,) = jobs(pair, Cell(1, cell.context, cell.k), tokens)
    ids = torch.tensor([job.prompt], device=pair.target.device)
    more: dict[str, Any] = {}
    if cell.k:
        config = pair.draft.generation_config
        config.num_assistant_tokens = cell.k
        config.num_assistant_tokens_schedule = "constant"
        config.assistant_confidence_threshold = 0.0
        more = {"assistant_model": pair.draft}

    def seconds(new: int) -> float:
        wait(ids.device)
        started_s = time.perf_counter()
        pair.target.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=new,
            do_sample=True, temperature=1.0, top_k=0, pad_token_id=0, **more,
        )  # fmt: skip
        wait(ids.device)
        return time.perf_counter() - started_s

    seconds(2)
    return (tokens - 2) / (seconds(tokens) - seconds(2))  # the prefill cancels out


def wait(device: torch.device) -> None:
    """Synchronize with the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _median(steps: list[BatchStep], part: str) -> float:
    return float(statistics.median(getattr(step.marks, part) for step in steps))


def jobs(pair: CalibratedPair, cell: Cell, answer: int) -> list[Job]:
    """Return jobs with prompts of random tokens and answers of this length."""
    drawn = torch.Generator().manual_seed(1)
    vocabulary = pair.target.config.vocab_size
    prompts = torch.randint(vocabulary, (cell.batch, cell.context), generator=drawn).tolist()
    return [
        Job(
            prompt=tuple(prompt),
            ending=Ending(max_tokens=answer, end_tokens=frozenset()),
            seed=seed,
        )
        for seed, prompt in enumerate(prompts)
    ]
