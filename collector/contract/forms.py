"""Readers of attribute values, one per form."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from collector.contract.names import is_name
from collector.contract.records import Arm, AttributeValue
from collector.contract.wire_field import Form


class UnreadableError(Exception):
    """An attribute's value does not have the type that the contract requires, or is no name."""


def _string(value: AttributeValue) -> str:
    if not isinstance(value, str):
        raise UnreadableError
    return value


def _name(value: AttributeValue) -> str:
    text = _string(value)
    if not is_name(text):
        raise UnreadableError
    return text


_WHOLE: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DECIMAL: Final = re.compile(
    r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?", re.ASCII
)


def _integer(value: AttributeValue) -> int:
    """Read an integer, or a string with one: environments and baggage have only strings."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    # isinstance would accept booleans.
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise UnreadableError
    return value


def _number(value: AttributeValue) -> float:
    """Read a number, or a string with one."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if type(value) not in (float, int) or not math.isfinite(cast("float", value)):
        raise UnreadableError
    return float(cast("float", value))


def _boolean(value: AttributeValue) -> bool:
    if not isinstance(value, bool):
        raise UnreadableError
    return value


def _strings(value: AttributeValue) -> tuple[str, ...]:
    if not isinstance(value, tuple) or not {str}.issuperset(map(type, value)):
        raise UnreadableError
    return cast("tuple[str, ...]", value)


def _integers(value: AttributeValue) -> tuple[int, ...]:
    if not isinstance(value, tuple) or not {int}.issuperset(map(type, value)):
        raise UnreadableError
    numbers = cast("tuple[int, ...]", value)
    if numbers and not -(2**63) <= min(numbers) <= max(numbers) < 2**63:
        raise UnreadableError
    return numbers


def _arm(value: AttributeValue) -> Arm:
    try:
        return Arm(_string(value))
    except ValueError as exc:
        raise UnreadableError from exc


def _passages(value: AttributeValue) -> tuple[str, ...]:
    """Read `draftgate.context`: a JSON list in a string, or a plain string array."""
    if isinstance(value, str):
        try:
            loaded = json.loads(value)
        except (ValueError, RecursionError) as exc:
            raise UnreadableError from exc
        value = tuple(loaded) if isinstance(loaded, list) else None
    return _strings(value)


def _messages(value: AttributeValue) -> str:
    """Read messages: a string with JSON, or the list itself, which the convention allows too."""
    if isinstance(value, tuple):
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as exc:
            raise UnreadableError from exc
    return _string(value)


Reader = Callable[[AttributeValue], Any]  # Any: the field's own type
READERS: Final[Mapping[Form, Reader]] = {
    Form.STRING: _string,
    Form.NAME: _name,
    Form.INTEGER: _integer,
    Form.NUMBER: _number,
    Form.BOOLEAN: _boolean,
    Form.STRINGS: _strings,
    Form.INTEGERS: _integers,
    Form.ARM: _arm,
    Form.PASSAGES: _passages,
    Form.MESSAGES: _messages,
}
