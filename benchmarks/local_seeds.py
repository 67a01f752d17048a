"""How far the tokens of Draftgate's own loop lie from the draws of their seeds.

The loop answers chat prompts, sampled: with a correct sampler in 32 and 16 bits, and with planted
bugs in 32 bits. Each answer is rescored in the dtype of the models' files. Per sampler: the share
of tokens that miss their draws, the largest distance of a draw, and the median tokens until the
audits of the distribution (with the draft model) and of the seeds alarm, over 20 orders of the
answers.

    python -m benchmarks.local_seeds [--answers 32] [--temperature 1]
        [--smollm2 build/engine_audit/models/smollm2]
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np
import torch
from transformers import AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from demo.real.story import WORKLOAD as REAL_WORKLOAD
from demo.story import DRAFT, TARGET, WORKLOAD
from engine_adapter.engines.local import DraftVerify, Ending, Fixed, Job, ModelDrafter
from engine_adapter.engines.local.decode import generate
from engine_adapter.engines.local.sampling import SamplerChain
from evals.lossless.local_draws import MARGIN, Replay, uniforms
from evals.lossless.rescoring import TransformersRescorer
from evals.lossless.sampler_law import law
from evals.lossless.sampling_audit import (
    ALARM,
    Drafts,
    Floats,
    Ints,
    Rescored,
    log_e_after_each,
    observe,
)
from evals.lossless.seeded_draws import counted
from evals.stats.bets import log_e_path
from tests.support.broken_samplers import ArgmaxDrafts, Cool, Generous, Narrow, ResidualIsP

TOLERANCE: Final = 0.005
_TOKENS, _BATCH, _K, _ORDERS = 48, 8, 4, 20


class Cell(NamedTuple):
    """A sampler at work."""

    words: str
    sampler: type[SamplerChain] = SamplerChain
    dtype: str = "float32"
    k: int = _K


CELLS: Final = (
    Cell("correct, without drafts", k=0),
    Cell("correct"),
    Cell("resample from p instead of the residual", ResidualIsP),
    Cell("acceptance × 1.2", Generous),
    Cell("correct, in bfloat16", dtype="bfloat16"),
    Cell("argmax drafts treated as sampled", ArgmaxDrafts),
    Cell("temperature .9", Cool),
    Cell("top-p .95 instead of 1", Narrow),
    Cell("correct, in float16", dtype="float16"),
    Cell("correct, in bfloat16, without drafts", dtype="bfloat16", k=0),
    Cell("correct, in float16, without drafts", dtype="float16", k=0),
)


class Seen(NamedTuple):
    """One answer, as both audits see it."""

    rescored: Rescored
    far: Floats
    uncertain: float


def answered(cell: Cell, folders: Sequence[Path], jobs: Sequence[Job], temperature: float) -> None:
    """Continue the jobs' texts with the cell's sampler."""
    kind = getattr(torch, cell.dtype)
    target, draft = (AutoModelForCausalLM.from_pretrained(one, dtype=kind) for one in folders)
    loop = DraftVerify(
        target,
        ModelDrafter(draft) if cell.k else None,
        Fixed(cell.k),
        batch=_BATCH,
        capacity=max(len(job.prompt) for job in jobs) + _TOKENS,
        end_tokens=tuple(jobs[0].ending.end_tokens),
    )
    for at in range(0, len(jobs), _BATCH):
        generate(loop, jobs[at : at + _BATCH], cell.sampler(temperature))


def seen(cell: Cell, models: Sequence[TransformersRescorer], job: Job, temperature: float) -> Seen:
    """Rescore an answer."""
    prompt, tokens = list(job.prompt), np.array(job.ending.token_ids)
    steps = (("temperature", temperature),)
    laws = [law(one.answer_logits(prompt, tokens.tolist()), steps) for one in models]
    p, q = laws[0], laws[-1]
    drafts = Drafts(q) if cell.k else None
    rescored = observe(p, tokens, drafts, np.random.default_rng(job.seed))
    noise = uniforms(job.seed, len(tokens), 2 * cell.k + 1)
    far = Replay(p, q, tokens, noise, _TOKENS).far()
    return Seen(rescored, far, float((1 - p.max(axis=1)).sum()))


def row(cell: Cell, answers: Sequence[Seen]) -> dict[str, object]:
    """Return the shares of misses, and the tokens to both alarms."""
    rng, by_law, by_seeds = np.random.default_rng(1), list[float](), list[float]()
    for _ in range(_ORDERS):
        order = [answers[i] for i in rng.permutation(len(answers))]
        columns = zip(*(one.rescored for one in order), strict=True)
        joined = Rescored._make(map(np.concatenate, columns))
        missed = [counted(one.far, MARGIN)[1] for one in order]
        ends = np.cumsum([len(one.far) for one in order])
        by_law.append(_alarm(log_e_after_each(joined, TOLERANCE), ends, ends))
        path = log_e_path(np.concatenate(missed), TOLERANCE)
        by_seeds.append(_alarm(path, np.cumsum([len(one) for one in missed]), ends))
    far = np.concatenate([one.far for one in answers])
    return {
        "sampler": cell.words,
        "tokens": len(far),
        "uncertain": round(sum(one.uncertain for one in answers), 1),
        "missed": float((far > MARGIN).mean()),
        "largest": float(far.max()),
        "law": _middle(by_law),
        "seeds": _middle(by_seeds),
    }


def _alarm(path: Floats, ends: Ints, tokens: Ints) -> float:
    """Return the tokens up to the answer after which the e-value was an alarm, or infinity."""
    highest = np.maximum.accumulate(path)[ends - 1]
    reached = np.flatnonzero(highest >= math.log(ALARM))
    return float(tokens[reached[0]]) if len(reached) else math.inf


def _middle(tokens: Sequence[float]) -> float | None:
    found = median(tokens)
    return None if math.isinf(found) else found


def jobs(rescorer: TransformersRescorer, workload: Path, answers: int) -> Iterator[Job]:
    """Yield a job for each answer, with a seed of its own; prompts may come again."""
    records = map(json.loads, workload.read_text().splitlines())
    asked = [one["messages"] for one in records if one["cohort"] == "chat"]
    for seed in range(answers):
        shaped = [
            {"role": one["role"], "parts": [{"content": one["content"]}]}
            for one in asked[seed % len(asked)]
        ]
        prompt = rescorer.prompt_tokens(json.dumps(shaped)) or []
        ending = Ending(max_tokens=_TOKENS, end_tokens=frozenset({rescorer.end_token}))
        yield Job(prompt=tuple(prompt), ending=ending, seed=seed)


def main() -> int:
    """Print a row per sampler, then one JSON document; exit 1 for a miss of a correct sampler."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--answers", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--smollm2", type=Path, help="folder with the audit's SmolLM2 models")
    given = parser.parse_args()
    started, rows = time.process_time(), []
    real = given.smollm2
    folders = (TARGET, DRAFT) if real is None else (real / "target", real / "draft")
    target = TransformersRescorer(folders[0])
    models = (target, target.draft(folders[1]))
    print("| Sampler | Tokens | Missed | Farthest | Distribution | Seeds |")
    print("|---|---|---|---|---|---|")
    for cell in CELLS:
        made = list(jobs(target, WORKLOAD if real is None else REAL_WORKLOAD, given.answers))
        answered(cell, folders, made, given.temperature)
        used = models if cell.k else models[:1]
        rows.append(row(cell, [seen(cell, used, job, given.temperature) for job in made]))
        _print(rows[-1])
    document = {
        "benchmark": "local_seeds",
        "model": "demo" if real is None else "SmolLM2",
        "temperature": given.temperature,
        "tolerance": TOLERANCE,
        "cpu_seconds": round(time.process_time() - started, 1),
        "rows": rows,
    }
    print(json.dumps(document))
    return int(any(one["missed"] for one in rows[:2]))


def _print(row: dict[str, object]) -> None:
    shares = f"{row['missed']:.2%} | {row['largest']:.2g}"
    alarms = f"{row['law'] or '–'} | {row['seeds'] or '–'}"
    print(f"| {row['sampler']} | {row['tokens']:,} | {shares} | {alarms} |", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
