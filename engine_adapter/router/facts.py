"""Read the facts that rules test from a request's path, headers and JSON body.

Any object gives facts; a field that is missing or not as in the OpenAI API is `None`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine_adapter.engines.json_fields import number
from engine_adapter.router.decision import RequestFacts

_MAX_TOKENS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_TEXTS: Final = ("instructions", "system", "prompt", "input", "messages")
_JSON_KEYS: Final = (
    "guided_json",
    "guided_grammar",
    "structured_outputs",
    "json_schema",
    "grammar",
)
_OBJECT: Final = (dict, Mapping)
"""`dict` first: testing against the abstract class takes ten times as long."""
_LOOKED_AT: Final = 16_000
"""Characters at the end of the prompt that are searched for code or passages."""

# No `\s*` at a line's start: it would match line ends, and take quadratic time on blank lines.
_CODE: Final = re.compile(
    r"```|^[ \t]{0,16}(?:def \w|class \w|import \w|from [\w.]+ import |#include |func \w|fn \w|"
    r"function \w|public \w|private \w|const \w|SELECT |package \w)",
    re.MULTILINE,
)
# Both begin with a literal character, which is found much faster than a line's start.
_PASSAGE_TAG: Final = re.compile(
    r"<(?:context|documents?|passages?|sources?|search_results?)\b", re.IGNORECASE
)
_PASSAGE_TITLE: Final = re.compile(
    r"\n[ \t]{0,16}[#*]{0,4}[ \t]?(?:context|documents?|passages?|sources?|excerpts?|"
    r"search results)[ \t]?\d{0,4}[ \t]?\*{0,2}:",
    re.IGNORECASE,
)


def facts_of(
    path: str,
    document: Mapping[str, Any],  # Any: foreign JSON
    headers: Mapping[str, str],
    concurrency: int,
) -> RequestFacts:
    """Return a request's facts."""
    texts = list(_texts(document))
    seen = _last(texts)
    get = document.get
    return RequestFacts(
        path=path,
        model=_text(get("model")),
        stream=get("stream") is True,
        max_tokens=_max_tokens(document),
        input_characters=sum(map(len, texts)) if texts else None,
        temperature=number(document, "temperature"),
        tools=bool(get("tools")) or bool(get("functions")),
        json_mode=_wants_json(document),
        code=_CODE.search(seen) is not None,
        passages=_shows_passages(seen),
        user=_text(get("safety_identifier")) or _text(get("user")),
        headers={name.lower(): value for name, value in headers.items()},
        concurrency=concurrency,
    )


def _texts(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield every text of the request in order, without images and token ids."""
    for key in _TEXTS:
        given = document.get(key)
        if given is None:
            continue
        for part in given if isinstance(given, list) else (given,):
            if isinstance(part, str):
                yield part
            elif isinstance(part, _OBJECT):
                yield from _texts_of_message(part)


def _texts_of_message(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, _OBJECT) and isinstance(part.get("text"), str):
                yield part["text"]


def _last(texts: list[str]) -> str:
    """Return the last `_LOOKED_AT` characters of the texts."""
    kept: list[str] = []
    left = _LOOKED_AT
    for text in reversed(texts):
        kept.append(text[-left:])
        left -= len(text)
        if left <= 0:
            break
    return "\n".join(reversed(kept))


def _shows_passages(text: str) -> bool:
    found = _PASSAGE_TAG.search(text) or _PASSAGE_TITLE.search(f"\n{text}")
    return found is not None


def _wants_json(document: Mapping[str, Any]) -> bool:
    text = document.get("text")
    return (
        _is_json(document.get("response_format"))
        or (isinstance(text, _OBJECT) and _is_json(text.get("format")))
        or any(map(document.get, _JSON_KEYS))
    )


def _is_json(form: object) -> bool:
    return isinstance(form, _OBJECT) and form.get("type") in ("json_object", "json_schema")


def _max_tokens(document: Mapping[str, Any]) -> int | None:
    for key in _MAX_TOKENS:
        found = _count(document.get(key))
        if found is not None:
            return found
    return None


def _text(given: object) -> str | None:
    return given if isinstance(given, str) and given else None


def _count(given: object) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) else None
