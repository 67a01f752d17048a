"""Pydantic's complaints about a user's file, in one line that names the key and the remedy."""

import difflib

from pydantic import BaseModel, ValidationError

_KNOWN_BY = {"missing": "required key is missing", "extra_forbidden": "unknown key"}


def describe(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first complaint as `key.path: what was wrong (got …)`, with the nearest key."""
    first = error.errors()[0]
    path = ".".join(str(part) for part in first["loc"] if not _is_tag(part))
    message = _KNOWN_BY.get(first["type"], first["msg"].removeprefix("Value error, "))
    if first["type"] == "extra_forbidden":
        nearest = difflib.get_close_matches(str(first["loc"][-1]), _keys(model), n=1)
        message += f"; did you mean `{nearest[0]}`?" if nearest else ""
    elif first["type"] != "missing" and path:
        message += f" (got {first['input']!r:.60})"
    return f"{path}: {message}" if path else message


def _is_tag(part: int | str) -> bool:
    """Say whether a part of the path is a union's tag rather than a key of the file."""
    return isinstance(part, str) and (part.startswith(("function-", "union")) or part == "route")


def _keys(model: type[BaseModel]) -> list[str]:
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(field.alias or name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += _keys(field.annotation)
    return keys
