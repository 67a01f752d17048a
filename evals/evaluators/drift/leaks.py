"""Detect chat template tokens, stop sequences and broken characters in an answer."""

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
    """Return a special token in the answer, or a turn label such as `User:` that it opens.

    A token or label that the prompt contains too is the conversation's subject or format.
    """
    for pattern in (_TEMPLATE, _NEXT_TURN):
        for match in pattern.finditer(text):
            if match.group().strip() not in prompt:
                return f"{match.group().strip()!r} at character {match.start()}"
    return None


def stop_sequence(text: str, stops: Sequence[str]) -> str | None:
    """Return a stop sequence of the request that the answer contains nevertheless."""
    found = next((stop for stop in stops if stop and stop in text), None)
    return None if found is None else f"{found!r} at character {text.index(found)}"


def broken_characters(text: str, prompt: str) -> str | None:
    """Return a replacement character or lone surrogate: part of a character was lost."""
    for at, character in enumerate(text):
        if (character == "\ufffd" and character not in prompt) or "\ud800" <= character <= "\udfff":
            return f"half a character at {at}"
    return None
