"""Read a policy's YAML, and describe its first mistake with the path of the key."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Strict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from collector.config_file import parse_yaml
from evals.errors import PolicyError


def load_yaml(text: str, source: str) -> object:
    """Parse YAML; raises `PolicyError` with line and column if it is invalid."""
    try:
        return parse_yaml(text)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        line = mark.line + 1 if mark else None
        raise PolicyError(f"{source}: {where}{exc.problem}", line=line) from exc
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as exc:
        first = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise PolicyError(f"{source}: wanted YAML, got {first}") from exc


STRICT: Final = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
"""For each section of a policy: an unknown key, an infinity and a NaN are errors."""

Number = Annotated[float, Strict()]
Integer = Annotated[int, Strict()]

SectionT = TypeVar("SectionT", bound="PolicySection")

_WANTED = {
    "dataclass_type": "a mapping of keys",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping of keys",
    "string_type": "text",
    "tuple_type": "a list",
}


class PolicySection(BaseModel):
    """A part of a policy file whose keys are not those of the policy."""

    model_config = STRICT


def within(wanted: str, holds: Callable[[Any], bool]) -> AfterValidator:  # Any: the field's type
    """Return the validator of a bounded value; `wanted` describes the bounds."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(f"wanted {wanted}, got {shown(value)}")
        return value

    return AfterValidator(check)


Text = Annotated[str, within("text", lambda text: bool(text.strip()))]


def one_of(options: Collection[str]) -> BeforeValidator:
    """Return the validator of a word; the message suggests the nearest option."""

    def check(value: object) -> object:
        if not isinstance(value, str) or value not in options:
            raise ValueError(choice(options, value))
        return value

    return BeforeValidator(check, json_schema_input_type=Literal[tuple(options)])


def word_for_none(word: str, wanted: str, holds: Callable[[float], bool]) -> BeforeValidator:
    """Return the validator of a bounded number, or of `word`, which is read as `None`."""

    def check(value: object) -> object:
        if value == word:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not holds(value):
            raise ValueError(f"wanted {word} or {wanted}, got {shown(value)}")
        return value

    return BeforeValidator(check, json_schema_input_type=float | str)


def choice(options: Collection[str], given: object) -> str:
    """Return the message for a word that is none of the options."""
    return f"wanted one of {', '.join(options)}, got {shown(given)}{_nearest(given, options)}"


def wrong(message: str, *keys: str) -> PydanticCustomError:
    """Return the error to raise for a key, or a path of keys, below the validated section."""
    return PydanticCustomError("wrong", "{message}", {"message": message, "keys": keys})


def shown(value: object) -> str:
    """Return the value, shortened, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def validated(document: object, source: str, model: type[SectionT]) -> SectionT:
    """Return the validated document; raises `PolicyError` for an unknown key or the first error."""
    _refuse_nothing(document, source, ())
    try:
        return model.model_validate(document)
    except ValidationError as exc:
        first = min(exc.errors(), key=lambda one: not _is_unknown(one))
        path = (*first["loc"], *first.get("ctx", {}).get("keys", ()))
        if _is_unknown(first):
            path = (*path[:-1], str(path[-1]))
        raise error(_message(first, model), source, path) from exc


def error(message: str, source: str, path: Iterable[object]) -> PolicyError:
    """Return an exception that names file, path and problem."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    key = "".join(parts).removeprefix(".")
    return PolicyError(": ".join(part for part in (source, key, message) if part), key=key)


def _refuse_nothing(value: object, source: str, path: tuple[object, ...]) -> None:
    """Raise for a key without a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            if item is None:
                message = "wanted a value, got nothing; give one or leave the key out"
                raise error(message, source, (*path, key))
            _refuse_nothing(item, source, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_nothing(item, source, (*path, index))


def _is_unknown(found: ErrorDetails) -> bool:
    return found["type"] in ("extra_forbidden", "unexpected_keyword_argument", "invalid_key")


def _message(found: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given = found["type"], found["input"]
    if _is_unknown(found):
        *above, key = found["loc"]
        keys = _keys(model, above)
        wanted = f"; wanted one of {', '.join(keys)}"
        return f"unknown key{_nearest(key, keys) or wanted}"
    if kind == "missing":
        return "missing key"
    if kind == "literal_error":
        return choice(re.findall(r"'([^']*)'", found["ctx"]["expected"]), given)
    if kind in _WANTED:
        return f"wanted {_WANTED[kind]}, got {shown(given)}"
    return found["msg"].removeprefix("Value error, ")


def _nearest(given: object, options: Collection[str]) -> str:
    near = difflib.get_close_matches(str(given), options, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _keys(section: type, path: Iterable[int | str]) -> list[str]:
    """Return the keys of the section at a path below another one."""
    for part in path:
        if isinstance(part, str):
            kind = _fields(section)[part]
            section = next(one for one in (kind, *get_args(kind)) if _is_section(one))
    return list(_fields(section))


def _fields(section: type) -> dict[str, Any]:  # Any: annotations
    if issubclass(section, BaseModel):
        return {one.alias or key: one.annotation for key, one in section.model_fields.items()}
    return {one.name: one.type for one in fields(cast("Any", section))}


def _is_section(kind: Any) -> bool:  # Any: an annotation
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel))
