"""Request bodies: read within a limit, so that none can fill the memory."""

import json
from typing import Any

from fastapi import Request

from collector.codings import inflate, too_large
from collector.errors import RequestError


async def read(request: Request, max_bytes: int) -> bytes:
    """Return the body as sent; raises `BodyTooLargeError` before more than the limit is held."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max_bytes:
        raise too_large(max_bytes)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise too_large(max_bytes)
    return bytes(body)


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
