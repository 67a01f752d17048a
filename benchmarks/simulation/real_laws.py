"""SmolLM2's distributions at the places of its own sampled answers, and those of a worse copy."""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.simulation.laws import Floats
from benchmarks.simulation.speculative_sampler import Laws
from demo.real.story import WORKLOAD

_PROMPTS: Final = 32
_ANSWER_TOKENS: Final = 48
_KEPT: Final = 255
"""Tokens that stay themselves at a place, the likeliest; all others are one more token."""


def laws(target: Path, draft: Path, temperature: float, kept_in: Path) -> Laws:
    """Return the distributions after a temperature, made the first time: minutes on one core.

    `target` and `draft`: folders of models with one tokenizer. `kept_in`: folder of the result.
    """
    file = kept_in / f"laws-{temperature:g}.npz"
    if not file.exists():
        made = _made(target, draft, temperature)
        np.savez(file, p=made.p, q=made.q)
    with np.load(file) as stored:
        return Laws(stored["p"], stored["q"])


def _made(target: Path, draft: Path, temperature: float) -> Laws:
    models: list[Any] = [AutoModelForCausalLM.from_pretrained(one) for one in (target, draft)]
    tokenizer: Any = AutoTokenizer.from_pretrained(target)  # Any: transformers is untyped here
    torch.manual_seed(7)
    rows = []
    for line in WORKLOAD.read_text().splitlines()[:_PROMPTS]:
        given = tokenizer.apply_chat_template(
            json.loads(line)["messages"],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )
        answer = models[0].generate(
            **given, max_new_tokens=_ANSWER_TOKENS, do_sample=True, temperature=temperature, top_k=0
        )
        start = given["input_ids"].shape[1]
        rows.append(_lumped(*(_softmax(one, answer, start, temperature) for one in models)))
    return Laws(*(np.concatenate(columns) for columns in zip(*rows, strict=True)))


def _softmax(model: Any, answer: Any, start: int, temperature: float) -> Floats:  # Any: untyped
    with torch.inference_mode():
        logits = model(answer).logits[0, start - 1 : -1].to(torch.float64)
    return np.asarray(torch.softmax(logits / temperature, dim=-1).numpy())


def _lumped(p: Floats, q: Floats) -> Laws:
    likeliest = np.argpartition(-np.maximum(p, q), _KEPT, axis=1)[:, :_KEPT]
    found = []
    for law in (p, q):
        kept = np.take_along_axis(law, likeliest, axis=1)
        rest = np.maximum(1 - kept.sum(axis=1, keepdims=True), 0.0)
        found.append(np.concatenate((kept, rest), axis=1))
    return Laws(*found)
