"""Sampled text is the target's: the audit is quiet on the loop, and alarmed by five planted bugs.

The audit computes every distribution afresh, with transformers, from the text.
"""

import numpy as np
import pytest
import torch
from broken_samplers import ArgmaxDrafts, Cool, Generous, Narrow, ResidualIsP
from numpy.typing import NDArray
from tiny_heads import branching
from tiny_models import END, METHODS, PROMPTS, Pair, job

from engine_adapter.engines.local import Drafter, DraftVerify, Fixed, ModelDrafter
from engine_adapter.engines.local.records import TextStep
from engine_adapter.engines.local.sampling import SamplerChain
from evals.lossless.sampling_audit import Drafts, SamplingAudit, observe

TOKENS = 120
BATCH = 48
TOLERANCE = 0.005
"""The product's own allowance for numerics."""


def audited(
    pair: Pair, sampling: SamplerChain, drafter: Drafter, asked: SamplerChain, rounds: int = 1
) -> SamplingAudit:
    """Sample texts and return the audit of them all."""
    loop = DraftVerify(
        pair.target, drafter, Fixed(4), batch=BATCH, capacity=TOKENS + 20, end_tokens=()
    )
    audit = SamplingAudit.begin(TOLERANCE)
    rng = np.random.default_rng(5)
    has_law = isinstance(drafter, ModelDrafter)
    with torch.inference_mode():
        for turn in range(rounds):
            jobs = [
                job(PROMPTS[i % len(PROMPTS)], TOKENS, seed=1000 * turn + i, end=-1)
                for i in range(BATCH)
            ]
            steps = [one for step in loop.steps(jobs, sampling) for one in step.texts]
            for text, asked_for in enumerate(jobs):
                ids = torch.tensor(
                    [[*asked_for.prompt, *asked_for.ending.token_ids]], device=pair.target.device
                )
                at = slice(len(asked_for.prompt) - 1, -1)
                p = asked.distribution(pair.target(ids).logits[0, at]).double().cpu().numpy()
                q = asked.distribution(pair.draft(ids).logits[0, at]).double().cpu().numpy()
                own = [step for step in steps if step.text == text]
                token = np.array(asked_for.ending.token_ids)
                audit = audit.after(observe(p, token, drafts(own, q, certain=not has_law), rng))
    return audit


def drafts(steps: list[TextStep], q: NDArray[np.float64], *, certain: bool) -> Drafts:
    """Return the draft at each emitted token's position; NaN if there was none."""
    distributions, tokens, accepted = q.copy(), [], []
    for step in steps:
        for place in range(len(step.token_ids)):
            # of a tree every token is the target's own draw, beside the drafts and not by them
            known = step.levels is None and place < len(step.draft_ids)
            tokens.append(step.draft_ids[place] if known else 0)
            accepted.append(place < step.accepted)
            if not known:
                distributions[len(tokens) - 1] = np.nan
            elif certain:
                distributions[len(tokens) - 1] = 0.0
                distributions[len(tokens) - 1, step.draft_ids[place]] = 1.0
    return Drafts(distributions, np.array(tokens), np.array(accepted))


@pytest.mark.parametrize(
    "asked",
    [SamplerChain(1.0), SamplerChain(0.7, top_p=0.8), SamplerChain(1.3, top_k=5)],
    ids=["temperature 1", "top-p .8", "top-k 5"],
)
@pytest.mark.parametrize("method", ["draft_model", "prompt_lookup", "tree"])
def test_the_audit_is_quiet_on_lossless_sampling(
    llama_pair: Pair, asked: SamplerChain, method: str
) -> None:
    """Some 5,800 tokens a case, each judged against the target's own distribution for it."""
    drafter = METHODS[method](llama_pair)
    if method == "tree":
        drafter = branching(llama_pair.target)
    assert not audited(llama_pair, asked, drafter, asked).alarmed


@pytest.mark.slow
@pytest.mark.parametrize("bug", [ResidualIsP, ArgmaxDrafts, Generous, Cool, Narrow])
def test_the_audit_is_alarmed_by_each_planted_bug(
    llama_pair: Pair, bug: type[SamplerChain]
) -> None:
    """The five of the gate's design, planted in the loop itself."""
    audit = audited(
        llama_pair, bug(1.0), ModelDrafter(llama_pair.draft), SamplerChain(1.0), rounds=2
    )
    assert audit.alarmed, audit.log_e


def test_a_seed_gives_the_same_text_with_and_without_neighbours(llama_pair: Pair) -> None:
    """A text's noise is its own."""
    texts = []
    for batch in (1, 3):
        loop = DraftVerify(
            llama_pair.target, ModelDrafter(llama_pair.draft), Fixed(3), batch=batch, capacity=40
        )
        jobs = [job(PROMPTS[1], 20, seed=seed) for seed in range(1, batch + 1)]
        with torch.inference_mode():
            list(loop.steps(jobs, SamplerChain(1.0)))
        texts.append(jobs[0].ending.token_ids)
    assert texts[0] == texts[1]


def test_laws_are_recorded_as_they_were_used(llama_pair: Pair) -> None:
    """On request p and q of each step, equal to those of the models read afresh."""
    loop = DraftVerify(
        llama_pair.target, ModelDrafter(llama_pair.draft), Fixed(3), capacity=40, end_tokens=(END,)
    )
    asked, sampling = job(PROMPTS[4], 16), SamplerChain(0.9, top_k=7)
    text = list(asked.prompt)
    with torch.inference_mode():
        for step in loop.steps([asked], sampling, keep_distributions=True):
            (one,) = step.texts
            assert one.distributions.q is not None
            ids = torch.tensor([[*text, *one.draft_ids]], device=llama_pair.target.device)
            n = len(one.draft_ids)
            p = sampling.distribution(llama_pair.target(ids).logits[0, len(text) - 1 :])
            q = sampling.distribution(
                llama_pair.draft(ids).logits[0, len(text) - 1 : len(text) - 1 + n]
            )
            torch.testing.assert_close(
                one.distributions.p, p, rtol=1e-4, atol=1e-6, check_device=False
            )
            torch.testing.assert_close(
                one.distributions.q, q, rtol=1e-4, atol=1e-6, check_device=False
            )
            text += one.token_ids
