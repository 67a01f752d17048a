"""A prompt of the workload, under a rollout's sampling, as a request."""

from engine_adapter.engines import Request
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.workload import Prompt

_TYPED = ("max_tokens", "temperature", "top_p", "top_k", "seed")


def request_of(prompt: Prompt, sampling: Sampling, seed: int | None) -> Request:
    """Return the request; the prompt's own parameters win, the seed is for both arms."""
    own, common = prompt.own, sampling.api
    asked = common | own
    if "seed" in own:
        own["seed"] = seed
    return Request(
        messages=prompt.chat,
        max_tokens=asked["max_tokens"],
        temperature=asked["temperature"],
        top_p=asked.get("top_p"),
        top_k=asked.get("top_k"),
        seed=seed,
        more={name: value for name, value in common.items() if name not in _TYPED},
        own=own,
    )
