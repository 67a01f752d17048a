"""OTLP bodies to protobuf messages.

OTLP's JSON mapping differs from protobuf's in one respect: trace and span ids are hexadecimal, not
base64. They are rewritten before the message is built.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from collector.errors import OtlpError

JsonObject = dict[str, Any]  # Any: JSON, as sent
M = TypeVar("M", bound=Message)
_FIELD = re.compile(r"Failed to parse (\w+) field: ")
_FIELDS = re.compile(f"(?:{_FIELD.pattern})*")


class Encoding(StrEnum):
    """The encoding of an OTLP body; the value is its media type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


def parse(
    body: bytes, encoding: Encoding, message: M, from_json: Callable[[JsonObject], None]
) -> M:
    """Fill the message from the body.

    `from_json` converts, in place, OTLP's JSON to protobuf's. Raises `OtlpError` if the body cannot
    be decoded at all.
    """
    if encoding is Encoding.JSON:
        _parse_json(body, message, from_json)
    else:
        _parse_protobuf(body, message)
    return message


def objects(parent: JsonObject, *keys: str) -> Iterator[JsonObject]:
    """Yield the objects in the lists nested under the keys; the parser refuses other values.

    Raises `OtlpError` for a key in protobuf's form.
    """
    for name in parent:
        check_name(name, keys[0])
    items = parent.get(keys[0])
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            if len(keys) == 1:
                yield item
            else:
                yield from objects(item, *keys[1:])


def check_name(name: str, key: str) -> None:
    """Raise `OtlpError` if the name is the key as protobuf has it, which OTLP's JSON must not use.

    It would be skipped, or read with ids in base64.
    """
    if "_" in name and name.replace("_", "") == key.lower():
        raise OtlpError(f"{name}: in OTLP's JSON, names are in lowerCamelCase: {key}")


def rewrite_hex(holder: JsonObject, *keys: str) -> None:
    """Rewrite ids from hexadecimal (OTLP's JSON) to base64 (protobuf's JSON)."""
    for key in keys:
        text = holder.get(key)
        if not isinstance(text, str):
            continue
        try:
            raw = binascii.unhexlify(text)
        except ValueError:
            raw = b"?"  # an invalid length, so that only this record is rejected
        holder[key] = base64.b64encode(raw).decode()


def _parse_protobuf(body: bytes, message: Message) -> None:
    try:
        message.ParseFromString(body)
    except DecodeError as exc:
        raise OtlpError(
            f"the body ({len(body)} bytes) is no {message.DESCRIPTOR.name} in protobuf: "
            "truncated, garbled, not UTF-8, or nested too deeply"
        ) from exc


def _parse_json(body: bytes, message: Message, from_json: Callable[[JsonObject], None]) -> None:
    try:
        document = json.loads(body)
        if not isinstance(document, dict):
            raise OtlpError(f"wanted a JSON object, got {type(document).__name__}")
        from_json(document)
        json_format.ParseDict(document, message, ignore_unknown_fields=True)
    except RecursionError as exc:
        raise OtlpError("the JSON body is nested too deeply") from exc
    except (ValueError, TypeError, AttributeError, json_format.ParseError) as exc:
        raise OtlpError(f"the body is no OTLP JSON: {_reason(exc)}") from exc


def _reason(exc: Exception) -> str:
    """Return where the error is, without the value, which may be a prompt."""
    if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError):
        return str(exc)
    path = _FIELDS.match(str(exc))
    fields = _FIELD.findall(path.group())[-3:] if path else []
    if "Message too deep" in str(exc):
        return "it is nested too deeply"
    return f"{'.'.join(fields) or 'a field'}: a value of the wrong type or form"
