"""Pieces of a chat template, stop sequences and broken characters in an answer."""

import re
from collections.abc import Sequence

_TEMPLATE = re.compile(
    r"<\|(?!\d)[\w.-]{2,40}\|>|</?s>|<(?:unk|pad|bos|eos)>|\[/?INST\]|<</?SYS>>"
    r"|<(?:start|end)_of_turn>|<｜[^｜<>]{2,40}｜>"
)
_NEXT_TURN = re.compile(
    r"\n\s*(?:###\s*(?:Instruction|Human|User|Assistant)\s*:|(?:Human|User|Assistant)\s*:\s)"
)


def template(text: str, prompt: str) -> str | None:
    """Name a special token, or a turn that the answer opens by itself.

    What the prompt writes too is the conversation's subject, or its form.
    """
    for pattern in (_TEMPLATE, _NEXT_TURN):
        for match in pattern.finditer(text):
            if match.group().strip() not in prompt:
                return f"{match.group().strip()!r} at character {match.start()}"
    return None


def stop_sequence(text: str, stops: Sequence[str]) -> str | None:
    """Name a stop sequence of the request that the answer holds all the same."""
    found = next((stop for stop in stops if stop and stop in text), None)
    return None if found is None else f"{found!r} at character {text.index(found)}"


def broken_characters(text: str, prompt: str) -> str | None:
    """Name a replacement or lone surrogate: half of a character was lost."""
    for at, character in enumerate(text):
        if (character == "\ufffd" and character not in prompt) or "\ud800" <= character <= "\udfff":
            return f"half a character at {at}"
    return None
