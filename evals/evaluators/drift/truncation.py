"""Detect an answer that was cut off."""

import json
import re
from collections.abc import Sequence

_FENCE = re.compile(r"^\s*```", re.MULTILINE)
_OPEN_END = re.compile(
    r"(?:[,(\[{]|\b(?:the|an|and|or|of|to|in|on|for|with|that|which|is|are|was|from|by|as|at))\s*\Z"
)


def truncated(text: str, finish_reasons: Sequence[str]) -> str | None:
    """Return the sign that an answer was cut off, `None` if there is no sign.

    Signs: the finish reason `length`, an open code fence, an open JSON value, or a last word or
    character that needs more text. An answer cut where a sentence could end is not found.
    """
    if "length" in finish_reasons:
        return "cut at its token limit"
    if len(_FENCE.findall(text)) % 2:
        return "a code fence stays open"
    stripped = text.strip()
    if stripped[:1] in "{[" and stripped and _is_open_json(stripped):
        return "its JSON stays open"
    if match := _OPEN_END.search(stripped):
        return f"ends with {match.group().strip()!r}"
    return None


def _is_open_json(text: str) -> bool:
    """Return whether the text is JSON that ends too early."""
    try:
        json.loads(text)
    except json.JSONDecodeError as exc:
        at_end = exc.pos >= len(text.rstrip()) or exc.msg.startswith("Unterminated string")
        return at_end and not exc.msg.startswith("Extra data")
    except (ValueError, RecursionError):
        return False
    return False
