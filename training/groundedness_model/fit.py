"""Train the upper layers, with checkpoints, and judge answers by them."""

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logit
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the field's name for it
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from training.groundedness_model.network import Upper
from training.groundedness_model.texts import Batch, Example, batch, batches

SEED = 20261121
_WEIGHT_OF_PIECES = 0.5
_WARM_UP_STEPS = 30
_SAVED_EVERY_STEPS = 20


@dataclass(frozen=True, slots=True)
class Schedule:
    """The length and the learning rates of a training."""

    epochs: int = 1
    pieces: int = 1600
    """Wordpieces of answers per step, including padding."""
    rate: float = 1.4e-4
    rate_of_new: float = 7e-4
    memory: float = 0.98
    """Decay of the exponential moving average of the layers, per step."""


def train(
    upper: Upper,
    examples: Sequence[Example],
    claims: Sequence[Example],
    schedule: Schedule,
    checkpoint: Path | None = None,
) -> Upper:
    """Fit the layers to answers and claims; return the moving average of their weights.

    The average over all steps is less noisy than the last step. The words' marks are scaled by the
    answers alone. More claims are wrong than sentences of answers; so that the layers do not learn
    how often, their log-odds are compared with a claim's label after the difference was added.
    Continues from a checkpoint of the same run.
    """
    _scale(upper, examples)
    optimizer = _optimizer(upper, schedule)
    rates = [group["lr"] for group in optimizer.param_groups]
    rng = random.Random(SEED)  # noqa: S311 - a seeded draw, no secret
    prior = _log_odds_of_wrong(claims) - _log_odds_of_wrong(examples) if claims else 0.0
    every = [*examples, *(replace(claim, prior=prior) for claim in claims)]
    steps = [b for _ in range(schedule.epochs) for b in batches(every, schedule.pieces, rng)]
    moving = get_ema_multi_avg_fn(schedule.memory)  # type: ignore[no-untyped-call]
    mean = AveragedModel(upper, multi_avg_fn=moving)
    run = _Run(upper, mean, optimizer)
    done = run.restore(checkpoint)
    started, loss = time.monotonic(), 0.0
    upper.train()
    for step in range(done, len(steps)):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * min((step + 1) / _WARM_UP_STEPS, 1.0)
        found = _loss(upper, batch(steps[step]))
        optimizer.zero_grad(set_to_none=True)
        found.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(upper.parameters(), 1.0)
        optimizer.step()
        mean.update_parameters(upper)
        loss += (found.item() - loss) * 0.05 if step > done else found.item()
        if checkpoint and ((step + 1) % _SAVED_EVERY_STEPS == 0 or step + 1 == len(steps)):
            run.save(checkpoint, step + 1)
            spent = round(time.monotonic() - started)
            progress = {"step": step + 1, "of": len(steps), "loss": round(loss, 4), "s": spent}
            print(json.dumps(progress), flush=True)  # noqa: T201 - the command's progress
    averaged = mean.module
    assert isinstance(averaged, Upper)  # noqa: S101 - a copy of `upper`
    return averaged


@torch.inference_mode()
def log_odds(upper: Upper, examples: Sequence[Example]) -> dict[int, list[float]]:
    """Return the log-odds of each answer's sentences, by the answer's number."""
    upper.eval()
    found: dict[int, list[tuple[int, float]]] = {}
    for some in batches(examples, 2500, random.Random(0)):  # noqa: S311 - an order, no secret
        one = batch(some)
        _, sentences = upper(one.states, one.marks, one.sentences, one.memory, one.seen)
        for row, example in enumerate(some):
            values = sentences[row, : example.part.count].tolist()
            numbered = enumerate(values, example.part.first)
            found.setdefault(example.answer, []).extend(numbered)
    return {answer: [v for _, v in sorted(values)] for answer, values in found.items()}


def _loss(upper: Upper, one: Batch) -> Tensor:
    pieces, sentences = upper(one.states, one.marks, one.sentences, one.memory, one.seen)
    prior, present = one.prior[:, None], one.sentences.amax(-1)
    of_pieces = F.binary_cross_entropy_with_logits(
        pieces + prior, one.wrong_pieces, reduction="none"
    )
    of_sentences = F.binary_cross_entropy_with_logits(
        sentences + prior, one.wrong_sentences, reduction="none"
    )
    return (of_sentences * present).sum() / present.sum() + _WEIGHT_OF_PIECES * (
        of_pieces * one.inside
    ).sum() / one.inside.sum()


def _log_odds_of_wrong(examples: Sequence[Example]) -> float:
    return float(logit(np.concatenate([e.wrong_sentences for e in examples]).mean()))


def _scale(upper: Upper, examples: Sequence[Example]) -> None:
    rows: NDArray[np.float32] = np.concatenate(
        [e.part.marks[e.part.sentence >= 0] for e in examples]
    )
    upper.mean.copy_(torch.from_numpy(rows.mean(0)))
    upper.scale.copy_(torch.from_numpy(1 / np.maximum(rows.std(0), 1e-2)))


def _optimizer(upper: Upper, schedule: Schedule) -> torch.optim.AdamW:
    old = list(upper.layers.parameters())
    known = {id(p) for p in old}
    new = [p for p in upper.parameters() if id(p) not in known]
    groups = [
        {"params": old, "lr": schedule.rate},
        {"params": new, "lr": schedule.rate_of_new},
    ]
    return torch.optim.AdamW(groups, weight_decay=0.01)


@dataclass(frozen=True, slots=True)
class _Run:
    """The state from which a stopped training continues."""

    upper: Upper
    mean: AveragedModel
    optimizer: torch.optim.AdamW

    def restore(self, checkpoint: Path | None) -> int:
        """Restore the state; return the number of steps already done."""
        if checkpoint is None or not checkpoint.exists():
            return 0
        state = torch.load(checkpoint, weights_only=True)
        self.upper.load_state_dict(state["upper"])
        self.mean.load_state_dict(state["mean"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        return int(state["step"])

    def save(self, checkpoint: Path, step: int) -> None:
        state = {
            "upper": self.upper.state_dict(),
            "mean": self.mean.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "step": step,
        }
        temporary = checkpoint.with_suffix(".new")
        torch.save(state, temporary)
        temporary.replace(checkpoint)
