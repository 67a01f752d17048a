"""Request bodies: read and inflated within a limit, so that none can fill the memory."""

import json
import zlib
from typing import Any

from fastapi import Request

from collector.api.problems import BodyTooLargeError, MediaTypeError
from collector.errors import RequestError

_GZIP = 16 + zlib.MAX_WBITS


async def read(request: Request, max_bytes: int) -> bytes:
    """Return the body as sent; raises `BodyTooLargeError` before more than the limit is held."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


def inflate(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Return the body without its content coding: gzip, identity or none.

    Raises `BodyTooLargeError` as soon as the limit is passed, `RequestError` for garbled data and
    `MediaTypeError` for any other coding.
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return body
    if coding != "gzip":
        raise MediaTypeError(f"Content-Encoding {coding!r}: wanted gzip or identity")
    parts: list[bytes] = []
    left = max_bytes
    while body:  # a gzip body may have several members, one after the other
        member = zlib.decompressobj(_GZIP)
        try:
            part = member.decompress(body, left + 1)
        except zlib.error as exc:
            raise RequestError("the gzip body is garbled; send it again") from exc
        if len(part) > left:
            raise _too_large(max_bytes)
        if not member.eof:
            raise RequestError("the gzip body is truncated; send it again")
        parts.append(part)
        left -= len(part)
        body = member.unused_data
    return b"".join(parts)


async def read_json(request: Request, max_bytes: int) -> Any:  # Any: a JSON value
    """Return the JSON body; raises `RequestError` where it is none."""
    body = inflate(
        await read(request, max_bytes), request.headers.get("content-encoding", ""), max_bytes
    )
    try:
        document = json.loads(body)
        # JSON can spell half of a surrogate pair, which no database can store as text.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as exc:
        reason = str(exc).encode(errors="replace").decode().splitlines() or ["nested too deeply"]
        raise RequestError(f"the body is no JSON: {reason[0]}") from exc
    return document


def _too_large(max_bytes: int) -> BodyTooLargeError:
    return BodyTooLargeError(
        f"the body is larger than {max_bytes} bytes; send smaller batches, "
        "or raise DRAFTGATE_MAX_BODY_BYTES"
    )
