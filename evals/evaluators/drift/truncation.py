"""An answer that ends before it is whole."""

import json
import re
from collections.abc import Sequence

_FENCE = re.compile(r"^\s*```", re.MULTILINE)
_OPEN_END = re.compile(
    r"(?:[,(\[{]|\b(?:the|an|and|or|of|to|in|on|for|with|that|which|is|are|was|from|by|as|at))\s*\Z"
)


def truncated(text: str, finish_reasons: Sequence[str]) -> str | None:
    """Say how an answer that is cut off shows it.

    The engine says so; or a code fence or a JSON value stays open, or the last word leads on. An
    answer that is cut where a sentence might end is not found.
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
    """Say whether the text is JSON up to its end, which comes too early."""
    try:
        json.loads(text)
    except json.JSONDecodeError as exc:
        at_end = exc.pos >= len(text.rstrip()) or exc.msg.startswith("Unterminated string")
        return at_end and not exc.msg.startswith("Extra data")
    except (ValueError, RecursionError):
        return False
    return False
