"""In 16 bits a greedy answer may leave the baseline's path at a tie, and nowhere else."""

import copy

import pytest
import torch
from tiny_models import END, METHODS, PROMPTS, READS, Pair, job, their_greedy

from engine_adapter.engines.local import DraftVerify, Fixed, generate
from evals.lossless.greedy import compare, confirm

TOKENS = 20


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("method", METHODS)
def test_the_first_divergence_is_a_tie(llama_pair: Pair, dtype: str, method: str) -> None:
    """Its gap under the baseline's own logits is that of rounding: 2 ulp, or a tenth of 1 %."""
    half = Pair(*(copy.deepcopy(model).to(getattr(torch, dtype)) for model in llama_pair))
    loop = DraftVerify(
        half.target,
        METHODS[method](half),
        Fixed(4),
        batch=len(PROMPTS),
        capacity=max(map(len, PROMPTS)) + TOKENS,
        end_tokens=(END,),
        captures=method != READS,
    )
    answers = generate(loop, [job(prompt, TOKENS) for prompt in PROMPTS])
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        theirs = their_greedy(half.target, prompt, TOKENS)
        found = compare(theirs, answer.token_ids)
        if found.position is None:
            continue
        assert found.candidate_token is not None
        ids = torch.tensor([[*prompt, *theirs[: found.position]]], device=half.target.device)
        with torch.inference_mode():
            logits = half.target(ids).logits[0, -1].double().cpu().numpy()
        noise = 0.001 * float(abs(logits).max())
        assert confirm(logits, found.candidate_token, dtype=dtype, noise=noise).benign
