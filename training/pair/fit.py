"""The training loop."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from training.pair.batches import Batch
from training.pair.muon import Muon

_WARMUP_STEPS = 50
_DECAY_FROM = 0.5
_FINAL_RATE = 0.05
_SMOOTHING = 0.95
_REPORT_EVERY = 50


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of steps and the learning rates."""

    steps: int
    matrix_lr: float
    """Learning rate of Muon, for the layers' weight matrices."""
    other_lr: float
    """Learning rate of AdamW, for embeddings, head and norms."""


class Fitted(NamedTuple):
    """The result of a training run; loss and accuracy are running means over answer tokens."""

    steps: int
    seconds: float
    loss: float
    token_accuracy: float


def fit(
    model: Any,  # Any: transformers ships no types
    batches: Iterator[Batch],
    plan: Plan,
    tell: Callable[[str], None],
) -> Fitted:
    """Train on answer tokens only; raises `ValueError` if the batches run out."""
    model.train()
    muon, adam = _optimizers(model, plan)
    started_s = time.monotonic()
    fitted = Fitted(0, 0.0, 0.0, 0.0)
    for step, batch in enumerate(islice(batches, plan.steps)):
        rate = _rate(step, plan.steps)
        muon.lr = plan.matrix_lr * rate
        for group in adam.param_groups:
            group["lr"] = plan.other_lr * rate
        loss, accuracy = answer_loss(model, batch)
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        muon.step()
        adam.step()
        fitted = _advance(fitted, loss.item(), accuracy, time.monotonic() - started_s)
        if fitted.steps % _REPORT_EVERY == 0:
            tell(
                f"step {fitted.steps}/{plan.steps}  {fitted.seconds:.0f} s  "
                f"loss {fitted.loss:.4f}  token accuracy {fitted.token_accuracy:.4f}"
            )
    if fitted.steps < plan.steps:
        raise ValueError(f"the batches ran out after {fitted.steps} of {plan.steps} steps")
    return fitted


def answer_loss(
    model: Any,  # Any: transformers ships no types
    batch: Batch,
) -> tuple[torch.Tensor, float]:
    """Return the mean cross-entropy over answer tokens, and the share predicted correctly."""
    hidden = model.model(input_ids=batch.ids[:, :-1], use_cache=False).last_hidden_state
    wanted = batch.is_answer[:, 1:]
    targets = batch.ids[:, 1:][wanted]
    # The head is a tenth of the work, so it is applied only to answer positions.
    logits = model.lm_head(hidden[wanted])
    accuracy = (logits.argmax(-1) == targets).float().mean().item()
    return functional.cross_entropy(logits, targets), accuracy


def _optimizers(
    model: Any,  # Any: transformers ships no types
    plan: Plan,
) -> tuple[Muon, torch.optim.AdamW]:
    """Give the layers' matrices to Muon, and embeddings, head and norms to AdamW."""
    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    taken = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in taken]
    adam = torch.optim.AdamW(others, lr=plan.other_lr, betas=(0.9, 0.95), weight_decay=0.01)
    return Muon(matrices, plan.matrix_lr), adam


def _rate(step: int, steps: int) -> float:
    """Return the learning-rate factor: warm-up, constant, then linear decay."""
    done = step / steps
    fall = (1 - done) / (1 - _DECAY_FROM)
    decay = 1.0 if done < _DECAY_FROM else _FINAL_RATE + (1 - _FINAL_RATE) * fall
    return min(1.0, (step + 1) / _WARMUP_STEPS) * decay


def _advance(last: Fitted, loss: float, accuracy: float, seconds: float) -> Fitted:
    keep = _SMOOTHING if last.steps else 0.0
    return Fitted(
        last.steps + 1,
        seconds,
        keep * last.loss + (1 - keep) * loss,
        keep * last.token_accuracy + (1 - keep) * accuracy,
    )
