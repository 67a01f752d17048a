"""Request bodies, read with a size limit."""

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from collector.api.codings import inflate, too_large
from collector.contract import from_document
from collector.contract.documents import DocumentError
from collector.contract.names import has_control
from collector.errors import MediaTypeError, RequestError

R = TypeVar("R")
_JSON = "application/json"
LONGEST_NAME = 2000
"""Longest name or reason, in characters."""
LONGEST_TEXT = 1 << 20
"""Longest policy, in characters."""


def described(schema: dict[str, Any]) -> dict[str, Any]:  # Any: OpenAPI
    """Return the description of a JSON body, for a route's `openapi_extra`."""
    return {"requestBody": {"required": True, "content": {_JSON: {"schema": schema}}}}


def schema_of(record: str) -> dict[str, Any]:  # Any: OpenAPI
    """Return the schema of a record."""
    return {"$ref": f"#/components/schemas/{record}"}


def list_of(record: str) -> dict[str, Any]:  # Any: OpenAPI
    """Return the description of a body that is a JSON list of records of a schema."""
    return described({"type": "array", "items": schema_of(record)})


def object_of(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:  # Any: OpenAPI
    """Return the description of a body that is a JSON object with these properties alone."""
    return described(
        {
            "type": "object",
            "required": [*required],
            "additionalProperties": False,
            "properties": properties,
        }
    )


def records(document: Any, kind: type[R], noun: str) -> Iterator[tuple[str, R]]:
    """Yield the records of a JSON list, each with its index as `[i]`; Any: JSON, as sent.

    Raises `RequestError` with the index and the key.
    """
    if not isinstance(document, list):
        raise RequestError(f"wanted a JSON list of {noun}")
    for i, item in enumerate(document):
        at = f"[{i}]"
        try:
            yield at, from_document(kind, item, at=at)
        except DocumentError as exc:
            raise RequestError(str(exc)) from exc


async def record(request: Request, kind: type[R], max_bytes: int) -> R:
    """Return the record in the body; raises `RequestError` with the key."""
    document = await read_json(request, max_bytes)
    try:
        return from_document(kind, document)
    except DocumentError as exc:
        raise RequestError(str(exc)) from exc


def require_names(*given: tuple[str, str]) -> None:
    """Raise `RequestError` unless each text of (parameter, text) can be stored as a name."""
    for name, text in given:
        if len(text) > LONGEST_NAME or has_control(text):
            raise RequestError(
                f"{name}: wanted at most {LONGEST_NAME} characters and no control character"
            )


def require_text(text: str) -> None:
    """Raise `RequestError` unless a policy's text is a JSON object of at most 1 MiB."""
    if len(text) > LONGEST_TEXT or not _is_object(text):
        raise RequestError(f"text: wanted a JSON object of at most {LONGEST_TEXT} characters")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def announced_bytes(request: Request, max_bytes: int) -> int:
    """Return the request's Content-Length, 0 without one.

    Raises `BodyTooLargeError` if it exceeds the limit.
    """
    announced = request.headers.get("content-length", "")
    size = int(announced) if announced.isdecimal() else 0
    if size > max_bytes:
        raise too_large(max_bytes)
    return size


async def read(request: Request, max_bytes: int) -> bytes:
    """Return the body as sent; raises `BodyTooLargeError` without reading beyond the limit."""
    announced_bytes(request, max_bytes)
    pieces: list[bytes] = []
    left = max_bytes
    async for piece in request.stream():
        left -= len(piece)
        if left < 0:
            raise too_large(max_bytes)
        pieces.append(piece)
    return b"".join(filter(None, pieces))


async def read_json(request: Request, max_bytes: int) -> Any:  # Any: a JSON value
    """Return the JSON body; raises `RequestError` if it is not JSON.

    Raises `MediaTypeError` unless its content type is JSON: a web page of any site may send other
    types without a preflight request.
    """
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != _JSON:
        raise MediaTypeError(f"Content-Type {content_type[:100]!r}: wanted {_JSON}")
    sent = await read(request, max_bytes)
    coding = request.headers.get("content-encoding", "")
    return await run_in_threadpool(_read_json, sent, coding, max_bytes)


def _read_json(sent: bytes, coding: str, max_bytes: int) -> Any:  # Any: a JSON value
    body = inflate(sent, coding, max_bytes)
    try:
        document = json.loads(body)
        # JSON can escape a lone surrogate, which no database can store as text.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as exc:
        reason = str(exc).encode(errors="replace").decode().splitlines() or ["nested too deeply"]
        raise RequestError(f"the body is not JSON: {reason[0]}") from exc
    return document
