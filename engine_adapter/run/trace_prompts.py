"""Prompts filled to the lengths in a trace, which publishes no text."""

import random

from engine_adapter.messages import Message
from engine_adapter.run.traces import Arrival
from engine_adapter.workload import Prompt

_CHARACTERS_A_TOKEN = 4.5
"""For the words below, with common tokenizers; the span holds the count of the engine."""
_BLOCK_TOKENS = 512
_WORDS = """
order account river station window market garden letter winter answer reason number paper island
corner morning picture village engine harbour teacher evening question road
"""


def shaped(prompt: Prompt, arrival: Arrival, lengths: str) -> Prompt:
    """Return the prompt with the trace's `max_tokens` and, for `both`, the trace's input length.

    Filler text goes before the first message's content. Requests that share leading blocks in the
    trace share the beginning of the filler, so that a prefix cache hits as often as in the trace.
    """
    update: dict[str, object] = {}
    if lengths != "none" and arrival.output_tokens:
        update["max_tokens"] = arrival.output_tokens
    if lengths == "both" and arrival.input_tokens:
        first, *rest = prompt.chat
        missing = arrival.input_tokens - sum(_tokens(m.text) for m in prompt.chat)
        filling = _filling(arrival, missing)
        if filling:
            first = _before(filling, first)
        update |= {"prompt": None, "messages": (first, *rest)}
    return prompt.model_copy(update=update)


def _before(filling: str, first: Message) -> Message:
    """Return the message with the filler before its content."""
    if isinstance(first.content, tuple):
        parts = ({"type": "text", "text": f"{filling}\n\n"}, *first.content)
        return first.model_copy(update={"content": parts})
    return first.model_copy(update={"content": f"{filling}\n\n{first.text}"})


def _tokens(text: str) -> int:
    return round(len(text) / _CHARACTERS_A_TOKEN)


def _filling(arrival: Arrival, tokens: int) -> str:
    if tokens <= 0:
        return ""
    size = round(tokens * _CHARACTERS_A_TOKEN)
    blocks = arrival.block_ids or (round(arrival.at_s * 1e6),)
    text = ""
    for number in range(-(-tokens // _BLOCK_TOKENS)):
        place = min(number, len(blocks) - 1)
        text += _block(f"{blocks[place]}/{number - place}")
    return text[:size]


def _block(name: str) -> str:
    drawn = random.Random(name)  # noqa: S311  # text to fill a prompt, not a secret
    size = round(_BLOCK_TOKENS * _CHARACTERS_A_TOKEN)
    words = drawn.choices(_WORDS.split(), k=size)
    return " ".join(words)[:size]
