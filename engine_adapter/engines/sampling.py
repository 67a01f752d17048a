"""The sampler that answers a request, from its body and the server's defaults."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from collector.contract import write_sampler
from engine_adapter.engines.base import Request
from engine_adapter.engines.json_fields import JsonObject, number, text, within

USUAL: Final = (
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
)
"""The order of vLLM, SGLang and transformers, under the names of their parameters."""

NEUTRAL: Final[Mapping[str, float]] = {
    "repetition_penalty": 1, "repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0,
    "dry_multiplier": 0, "top_n_sigma": -1, "top_k": 0, "typical_p": 1, "top_p": 1, "min_p": 0,
    "xtc_probability": 0, "dynatemp_range": 0, "mirostat": 0, "adaptive_target": -1,
}  # fmt: skip
"""Values with which a step has no effect."""

_GRAMMARS = (
    "grammar", "json_schema", "structured_outputs", "guided_json", "guided_regex",
    "guided_choice", "guided_grammar", "structural_tag", "regex", "ebnf",
)  # fmt: skip


def written(
    body: JsonObject, defaults: Mapping[str, float] | None = None, order: Sequence[str] = USUAL
) -> str | None:
    """Return the steps that sample a chat-completions body's answer; `None` if it is greedy.

    `order` has the engine's parameters in the order of its steps; `defaults`, values that the
    server fills in. Steps without effect are left out.
    """
    if not number(body, "temperature"):
        return None
    return write_sampler((*_constraints(body), *_steps(body, defaults or {}, order)))


def of_request(request: Request) -> str | None:
    """Return the steps of an engine that samples by temperature, top-k and top-p alone."""
    return written({name: getattr(request, name) for name in ("temperature", "top_k", "top_p")})


def _steps(
    body: JsonObject, defaults: Mapping[str, float], order: Sequence[str]
) -> Iterator[tuple[str, float]]:
    for name in order:
        value = number(body, name)
        value = defaults.get(name) if value is None else value
        if value is not None and has_effect(name, value):
            yield name, value


def has_effect(name: str, value: float) -> bool:
    """Return whether a step with this value changes the distribution."""
    if name == "top_k":
        return value > 0  # 0 and -1 keep all tokens
    return name not in NEUTRAL or abs(value - NEUTRAL[name]) > 1e-6  # of float32


def _constraints(body: JsonObject) -> Iterator[tuple[str, float]]:
    """Yield a step for each way in which the request excludes or favours tokens."""
    if within(body, "logit_bias"):
        yield "logit_bias", 1
    formatted = text(body, "response_format", "type") not in (None, "text")
    choice = within(body, "tool_choice")
    called = choice == "required" or isinstance(choice, Mapping)
    if formatted or called or any(within(body, name) for name in _GRAMMARS):
        yield "grammar", 1
