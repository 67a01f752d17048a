"""The text of an answer, and the JSON in it."""

import json
import math
import re

from collector.contract import Generation

NOT_RECORDED = "the answer's text was not recorded"

_FENCE = re.compile(r"\A\s*```[\w+-]*[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)


class NotJsonError(ValueError):
    """An answer is not one JSON value."""


def answer_text(generation: Generation) -> str | None:
    """Return the joined text parts of the output messages; `None` if no text was recorded.

    Reads `gen_ai.output.messages`. Messages of any other shape count as not recorded, not as an
    empty answer.
    """
    if generation.content is None:
        return None
    texts = [_text_of(message) for message in json_list(generation.content.output_messages)]
    readable = [text for text in texts if text is not None]
    if not readable or len(readable) < len(texts):
        return None
    return "\n".join(text for text in readable if text)


def prompt_text(generation: Generation) -> str | None:
    """Return the text of the user's last message; `None` if it was not recorded."""
    if generation.content is None:
        return None
    from_user = [m for m in json_list(generation.content.input_messages) if _is_user(m)]
    return _text_of(from_user[-1]) if from_user else None


def unfenced(text: str) -> str:
    """Strip a Markdown code fence that encloses the whole text; return other text unchanged."""
    match = _FENCE.match(text)
    return match.group(1) if match else text


def json_value(text: str) -> object:
    """Parse a text that is one JSON value, fenced or bare; raises `NotJsonError`."""
    try:
        value: object = json.loads(
            unfenced(text), parse_constant=_refuse, parse_float=_finite, parse_int=_integer
        )
    except RecursionError as exc:
        raise NotJsonError("nested too deeply") from exc
    except ValueError as exc:
        raise NotJsonError(str(exc)) from exc
    return value


def json_list(recorded: str | None) -> list[object]:
    """Return the items of an attribute's JSON list; empty if the value is no JSON list."""
    try:
        messages = None if recorded is None else json.loads(recorded)
    except (ValueError, RecursionError):
        return []
    return messages if isinstance(messages, list) else []


def _is_user(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"


def _text_of(message: object) -> str | None:
    if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
        return None
    parts = [p for p in message["parts"] if isinstance(p, dict) and p.get("type") == "text"]
    texts = [part.get("content") for part in parts]
    return "".join(t for t in texts if t) if all(isinstance(t, str) for t in texts) else None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is out of range")
    return value


def _integer(text: str) -> int:
    if len(text) > 4000:
        raise ValueError("a number of more than 4000 digits")
    return int(text)
