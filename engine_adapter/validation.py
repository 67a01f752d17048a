"""Read a user's YAML, and turn Pydantic's errors about it into one line with the key."""

import difflib
import re
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from collector.config_file import parse_yaml

_KNOWN_BY = {
    "missing": "required key is missing",
    "extra_forbidden": "unknown key",
    "tuple_type": "wanted a list",
    "model_type": "wanted an object",
}


def read_yaml(
    path: Path, wanted: str, failure: type[Exception]
) -> dict[str, Any]:  # Any: what a user wrote
    """Return a YAML file's mapping; raises `failure` that names the `wanted` keys."""
    try:
        document = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise failure(f"{path}: cannot be read: {exc.strerror}") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        reason = " ".join(str(exc).split())
        raise failure(f"{path}: is not YAML: {reason}") from exc
    if not isinstance(document, dict):
        raise failure(f"{path}: wanted keys such as {wanted}")
    return document


def describe(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first error as `key.path: problem (got …)`, with a similar key if unknown."""
    first = error.errors()[0]
    path = ".".join(str(part) for part in first["loc"] if not _is_tag(part, model))
    message = _KNOWN_BY.get(first["type"], first["msg"].removeprefix("Value error, "))
    if first["type"].startswith("union_tag"):
        return _tag_complaint(path, first)
    if first["type"] == "extra_forbidden":
        nearest = difflib.get_close_matches(str(first["loc"][-1]), _keys(model), n=1)
        message += f"; did you mean `{nearest[0]}`?" if nearest else ""
    elif first["type"] != "missing" and path:
        message += f" (got {first['input']!r:.60})"
    return f"{path}: {message}" if path else message


def _tag_complaint(path: str, error: ErrorDetails) -> str:
    """Describe the accepted values of a union's discriminator."""
    context = error.get("ctx", {})
    key = str(context.get("discriminator", "")).strip("'")
    if error["type"] == "union_tag_not_found":
        return f"{path}.{key}: required key is missing"
    tag = str(context.get("tag"))
    known = re.findall(r"'([^']*)'", str(context.get("expected_tags", "")))
    nearest = difflib.get_close_matches(tag, known, n=1)
    hint = f"; did you mean `{nearest[0]}`?" if nearest else ""
    return f"{path}.{key}: wanted one of {', '.join(sorted(known))}{hint} (got {tag!r:.60})"


def _is_tag(part: int | str, model: type[BaseModel]) -> bool:
    """Return whether a part of the path is a union's tag rather than a key of the file."""
    return isinstance(part, str) and (
        part.startswith(("function-", "union")) or part == "route" or part in _tags(model)
    )


def _tags(model: type[BaseModel]) -> set[str]:
    """Return the discriminator values of the model's unions."""
    found: set[str] = set()
    for field in model.model_fields.values():
        if field.discriminator is not None:
            for member in get_args(field.annotation):
                tag = member.model_fields[str(field.discriminator)].annotation
                found.update(map(str, get_args(tag)))
    return found


def _keys(model: type[BaseModel]) -> list[str]:
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(field.alias or name)
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                keys += _keys(part)
    return keys
