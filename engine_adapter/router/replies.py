"""The router's own responses, in the error format of the OpenAI API."""

import json
import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine_adapter.errors import GenerationError, RefusedRequestError

_KINDS: Final = {
    401: "authentication_error",
    404: "not_found_error",
    413: "invalid_request_error",
    400: "invalid_request_error",
    431: "invalid_request_error",
}
_TIMEOUTS: Final = frozenset(("connect_timeout", "first_byte_timeout", "total_timeout"))


class RouterReply(NamedTuple):
    """A complete response of the router itself."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def ok_reply(text: bytes, content_type: str) -> RouterReply:
    """Return a 200 response."""
    return RouterReply(200, (("Content-Type", content_type),), text)


def refusal(refused: RefusedRequestError) -> RouterReply:
    """Return the response to a refused request."""
    headers = {}
    if refused.retry_after_s is not None:
        headers["Retry-After"] = str(math.ceil(refused.retry_after_s))
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return _error(refused.status, refused.code, str(refused), headers)


def upstream_failure(failure: GenerationError) -> RouterReply:
    """Return the response if no engine gave one; it does not reveal the engine's address."""
    status = 504 if failure.error_type in _TIMEOUTS else 502
    words = failure.error_type.replace("_", " ")
    return _error(status, failure.error_type, f"no answer from the model's server: {words}", {})


def _error(status: int, code: str, message: str, headers: Mapping[str, str]) -> RouterReply:
    kind = _KINDS.get(status, "server_error")
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    named = (("Content-Type", "application/json"), *headers.items())
    return RouterReply(status, named, json.dumps(body).encode())
