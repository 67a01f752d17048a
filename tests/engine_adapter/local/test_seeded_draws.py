"""The loop's tokens, held against the draws of their seeds as the audit makes them again."""

import numpy as np
import pytest
import torch
from broken_samplers import ArgmaxDrafts, Cool, Generous, Narrow, ResidualIsP
from tiny_models import PROMPTS, Pair, job

from engine_adapter.engines.local import DraftVerify, Fixed, ModelDrafter
from engine_adapter.engines.local.sampling import SamplerChain
from evals.lossless.local_draws import MARGIN, Replay, uniforms
from evals.lossless.sampling_audit import ALARM, Floats
from evals.lossless.seeded_draws import counted
from evals.stats.bets import Bets

TOKENS = 60
ANSWERS = 24


def distances(
    pair: Pair, sampling: SamplerChain, k: int, *, asked: SamplerChain, claimed: int | None = None
) -> list[Floats]:
    """Answer with k drafts a step; return each answer's distances, replayed with `claimed`."""
    drafter = ModelDrafter(pair.draft) if k else None
    loop = DraftVerify(
        pair.target, drafter, Fixed(k), batch=ANSWERS, capacity=TOKENS + 20, end_tokens=()
    )
    jobs = [job(PROMPTS[i % len(PROMPTS)], TOKENS, seed=i, end=-1) for i in range(ANSWERS)]
    found = []
    with torch.inference_mode():
        list(loop.steps(jobs, sampling))
        for one in jobs:
            tokens = one.ending.token_ids
            ids = torch.tensor([[*one.prompt, *tokens]], device=pair.target.device)
            p, q = (
                asked.distribution(model(ids).logits[0, len(one.prompt) - 1 : -1]) for model in pair
            )
            noise = uniforms(one.seed, TOKENS, 2 * (k if claimed is None else claimed) + 1)
            laws = p.double().cpu().numpy(), q.double().cpu().numpy()
            found.append(Replay(*laws, np.array(tokens), noise, TOKENS).far())
    return found


def alarmed(found: list[Floats]) -> bool:
    """Return whether the misses of all answers are an alarm."""
    bets = Bets(0.005)
    for far in found:
        bets = bets.after(counted(far, MARGIN)[1])
    return bets.log_e >= np.log(ALARM)


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_the_numbers_are_torchs(seed: int) -> None:
    """Those that the loop draws for a job."""
    theirs = torch.rand((5, 9), generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    assert uniforms(seed, 5, 9).tolist() == theirs.tolist()


@pytest.mark.parametrize("k", [0, 1, 4])
@pytest.mark.parametrize(
    "asked",
    [SamplerChain(1.0), SamplerChain(0.7, top_p=0.8), SamplerChain(1.3, top_k=5)],
    ids=["temperature 1", "top-p .8", "top-k 5"],
)
def test_a_correct_sampler_misses_no_draw(llama_pair: Pair, asked: SamplerChain, k: int) -> None:
    """With and without drafts, up to the last token, which is never drafted."""
    found = distances(llama_pair, asked, k, asked=asked)
    assert max(far.max() for far in found) <= MARGIN


@pytest.mark.parametrize("bug", [ResidualIsP, ArgmaxDrafts, Generous, Cool, Narrow])
def test_a_planted_bug_is_an_alarm(llama_pair: Pair, bug: type[SamplerChain]) -> None:
    """Within 1,440 tokens."""
    assert alarmed(distances(llama_pair, bug(1.0), 4, asked=SamplerChain(1.0)))


@pytest.mark.parametrize(("k", "claimed"), [(4, 3), (4, 0), (0, 4)])
def test_another_k_than_the_evidence_names_is_an_alarm(
    llama_pair: Pair, k: int, claimed: int
) -> None:
    """The draws are then read at the wrong places."""
    asked = SamplerChain(1.0)
    assert alarmed(distances(llama_pair, asked, k, asked=asked, claimed=claimed))
