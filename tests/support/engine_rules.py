"""Counts of the draft–verify loop under the rules of vLLM and llama.cpp.

The loop drafts before the first token, cuts a draft after an end token, and counts the tokens that
the text kept. vLLM and llama.cpp emit the first token before they draft, and do not cut a draft at
an end token. vLLM goes on accepting after an end token; llama.cpp stops verifying at it, so that it
is the step's own token, unless it was the draft's last, after which there is nothing to verify.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from twenty_prompts import MAX_TOKENS, MODELS, requests

from collector.contract import Speculation
from engine_adapter.engines import acceptance_counts
from engine_adapter.engines.acceptance_counts import SpeculationCounts, VerifyStep
from engine_adapter.engines.local import (
    Draft,
    Drafter,
    DrafterMemory,
    DraftVerify,
    Job,
    SamplerChain,
)
from engine_adapter.engines.local.cached_model import CachedModel, Pass
from engine_adapter.engines.local.drafters import ModelDrafter
from engine_adapter.engines.local.endings import Ending
from engine_adapter.engines.local.prompt_lookup import PromptLookup
from engine_adapter.engines.local.texts import TokenTexts
from engine_adapter.engines.model_folder import LoadedModel, ModelKey, ModelShelf, encode_chat

_CAPACITY = 512


class Counted(NamedTuple):
    """One prompt's answer, counted as each engine does."""

    text: str
    vllm: SpeculationCounts
    llamacpp: SpeculationCounts


class AfterFirstToken:
    """k from the second step on: the first says a token without a draft, as a prefill does."""

    def __init__(self, k: int) -> None:
        self.k_max = k
        self._begun = False

    def begin(self, texts: int) -> None:
        del texts
        self._begun = False

    def k(self) -> int:
        return self.k_max if self._begun else 0

    def after(self, steps: Sequence[VerifyStep]) -> None:
        del steps
        self._begun = True


class LatestPair:
    """llama.cpp's `ngram-simple`: what followed the last two tokens where they last stood before.

    A draft is whole or none. The pair before it ends two tokens before the text does, or earlier,
    and does not begin the text.
    """

    method = "prompt_lookup"

    def attach(self, target: CachedModel) -> DrafterMemory:
        del target
        return DrafterMemory(0, 0)

    def begin(self, prompts: Tensor, window: int) -> None:
        pass

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        del sampling
        (length,) = texts.lengths.tolist()
        text = texts.tokens[0, :length].tolist()
        found = range(length - k - 3, 0, -1)
        at = next((i for i in found if text[i : i + 2] == text[-2:]), None)
        drafted = [0] * k if at is None else text[at + 2 : at + 2 + k]
        return Draft(torch.tensor([drafted]), torch.tensor([0 if at is None else k]))

    def observe(self, starts: Tensor, seen: Pass) -> None:
        pass


def by_draft_model(shelf: ModelShelf) -> Drafter:
    """Return the demo's draft."""
    return ModelDrafter(_load(shelf, "draft").model)


def by_earliest_match(shelf: ModelShelf) -> Drafter:
    """Return a lookup that proposes end tokens, too: vLLM's `ngram` from 1 to 2 tokens."""
    del shelf
    return PromptLookup(torch.tensor([], dtype=torch.long))


def by_latest_pair(shelf: ModelShelf) -> Drafter:
    """Return llama.cpp's `ngram-simple` of 2 tokens."""
    del shelf
    return LatestPair()


def counted(drafting: Callable[[ModelShelf], Drafter], k: int) -> list[Counted]:
    """Answer the twenty prompts, greedy and in 32 bits."""
    shelf = ModelShelf()
    target = _load(shelf, "target")
    loop = DraftVerify(target.model, drafting(shelf), AfterFirstToken(k), capacity=_CAPACITY)
    with torch.inference_mode():
        prompts = [tuple(encode_chat(target, one)[0].tolist()) for one in requests()]
        return [_answer(loop, target, prompt, k) for prompt in prompts]


def differing(said: Speculation | None, ours: SpeculationCounts) -> dict[str, tuple[Any, Any]]:
    """Return the counts that are not the same, theirs and ours, by name.

    An engine that drafted nothing for an answer says nothing of it, and a list may be as long as
    the draft that it could have made.
    """
    if said is None or said.draft_tokens is None:
        return {} if ours.draft_tokens == 0 else {"draft_tokens": (None, ours.draft_tokens)}
    pairs = {name: (getattr(said, name), count) for name, count in ours._asdict().items()}
    return {name: pair for name, pair in pairs.items() if _trimmed(pair[0]) != _trimmed(pair[1])}


def _trimmed(count: Any) -> Any:  # Any: a count, or one by position
    if not isinstance(count, tuple):
        return count
    return count[: max((i + 1 for i, n in enumerate(count) if n), default=0)]


def _answer(loop: DraftVerify, target: LoadedModel, prompt: tuple[int, ...], k: int) -> Counted:
    """Let the loop run on behind the text's end, and end the text here."""
    endless = Ending(max_tokens=MAX_TOKENS + k + 1, end_tokens=frozenset())
    end = target.model.generation_config.eos_token_id
    ending = Ending(max_tokens=MAX_TOKENS, end_tokens=frozenset([end]))
    steps, stopped = list[VerifyStep](), list[VerifyStep]()
    for step in loop.steps([Job(prompt=prompt, ending=endless)], SamplerChain()):
        (one,) = step.texts
        verified, grown = one.verify_step, len(ending.keep(one.token_ids))
        steps.append(verified)
        ended_inside = ending.reason == "stop" and grown < verified.proposed
        stopped.append(verified._replace(accepted=min(verified.accepted, grown - ended_inside)))
        if ending.reason is not None:
            break
    text: str = target.tokenizer.decode(ending.token_ids, skip_special_tokens=True)
    return Counted(text, acceptance_counts.count(steps), acceptance_counts.count(stopped))


def _load(shelf: ModelShelf, name: str) -> LoadedModel:
    return shelf.load(ModelKey(str(MODELS / name), "cpu", "float32"))
