"""Conversion of a workload's prompt, with a rollout's sampling, into a request."""

from engine_adapter.engines import Request
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.workload import Prompt

_TYPED = ("max_tokens", "temperature", "top_p", "top_k", "seed")


def request_of(prompt: Prompt, sampling: Sampling, seed: int | None) -> Request:
    """Return the request; the prompt's own parameters override the sampling's."""
    own, common = prompt.own, sampling.api
    parameters = common | own
    if "seed" in own:
        own["seed"] = seed
    return Request(
        messages=prompt.chat,
        max_tokens=parameters["max_tokens"],
        temperature=parameters["temperature"],
        top_p=parameters.get("top_p"),
        top_k=parameters.get("top_k"),
        seed=seed,
        more={name: value for name, value in common.items() if name not in _TYPED},
        own=own,
    )
