"""Map failures between client and engine to stable names; the single place that does so.

`error_type` becomes the span's `error.type`; the reference lists them.
"""

import errno
import json
import ssl
from typing import Final

import aiohttp

from engine_adapter.errors import GenerationError

_BY_STATUS = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    408: "request_timeout",
    413: "request_too_large",
    422: "invalid_request",
    429: "rate_limited",
}
CONNECTION_RESET: Final = "connection_reset"
_ADVICE = {
    "unauthorized": "; put the key into the variable that `api_key_env` names",
    "forbidden": "; the key may not use this model",
    "not_found": "; is `url` the base of an OpenAI-compatible API (it often ends in /v1), and is "
    "`model` a name that its /models lists?",
}
_CONTEXT_WORDS = ("context length", "context size", "maximum context", "max_model_len")


_BY_EXCEPTION: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...]] = (
    (aiohttp.ClientConnectorDNSError, "dns_failure", "no such host; check `url`"),
    ((aiohttp.ClientSSLError, ssl.SSLError), "tls_failure", "TLS failed"),
    (aiohttp.ConnectionTimeoutError, "connect_timeout", "no connection within the timeout"),
    (aiohttp.ClientConnectorError, "connection_failed", "no connection"),
    (aiohttp.ClientPayloadError, "stream_truncated", "the answer broke off"),
    (
        (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, OSError),
        CONNECTION_RESET,
        "the connection was cut",
    ),
    (aiohttp.ClientResponseError, "not_http", "does not answer in HTTP"),
)


def of_connection(exc: Exception, url: str) -> GenerationError:
    """Return the failure for an exception of aiohttp or of the socket."""
    if isinstance(exc, aiohttp.ClientConnectorError) and _refused(exc.os_error):
        return GenerationError(
            "connection_refused", f"{url}: connection refused; is the engine running there?"
        )
    words = " ".join(str(exc).split()) or type(exc).__name__
    for kinds, error_type, message in _BY_EXCEPTION:
        if isinstance(exc, kinds):
            return GenerationError(error_type, f"{url}: {message} ({words})")
    return GenerationError("http_failure", f"{url}: {words}")


def of_body(exc: BaseException, url: str) -> GenerationError:
    """Return the failure that broke off an answer's body."""
    if isinstance(exc, aiohttp.ClientError | OSError):
        return of_connection(exc, url)
    return GenerationError("http_failure", f"{url}: the answer broke off ({exc!r:.200})")


def of_cut_body(url: str) -> GenerationError:
    """Return the failure of an answer whose connection closed without an exception on its body.

    This happens with aiohttp if a chunk is malformed, and if the client itself is closed.
    """
    return GenerationError("stream_truncated", f"{url}: the connection was closed in the answer")


def _refused(error: OSError) -> bool:
    """Return whether the connection was refused, at all of a name's addresses."""
    return isinstance(error, ConnectionRefusedError) or error.errno == errno.ECONNREFUSED


def of_status(status: int, body: bytes, url: str, retry_after: str | None) -> GenerationError:
    """Return the failure for a response with a status other than 2xx."""
    message = said(body)
    kind = _BY_STATUS.get(status) or ("server_error" if status >= 500 else f"http_{status}")
    if kind == "invalid_request" and any(words in message.lower() for words in _CONTEXT_WORDS):
        kind = "context_length_exceeded"
    if kind == "not_found" and "model" in message.lower():
        kind = "model_not_found"
    advice = _ADVICE.get(kind, _ADVICE["not_found"] if kind == "model_not_found" else "")
    after_s = _seconds(retry_after)
    if after_s is not None:
        advice += f"; it asks to wait for {after_s:g} s"
    return GenerationError(
        kind, f"{url}: answered {status}: {message}{advice}", status=status, retry_after_s=after_s
    )


def of_content_type(content_type: str, body: bytes, url: str) -> GenerationError:
    """Return the failure for a response that is not the requested stream or JSON."""
    if b"<html" in body[:1024].lower() or "html" in content_type:
        return GenerationError(
            "html_answer",
            f"{url}: answered with an HTML page ({said(body)}); a gateway or a login stands there",
        )
    return GenerationError(
        "unexpected_content_type",
        f"{url}: answered with {content_type or 'no content type'}: {said(body)}",
    )


def of_error_event(document: object, url: str) -> GenerationError:
    """Return the failure for an error event in a stream."""
    return GenerationError(
        "server_error_in_stream", f"{url}: failed in the middle: {_message(document)}"
    )


def said(body: bytes) -> str:
    """Return the message of an error's body, in one short line."""
    try:
        return _message(json.loads(body))
    except ValueError:
        text = " ".join(body.decode(errors="replace").split())
        return f"{text:.200}" if text else "nothing"


def _message(document: object) -> str:
    while isinstance(document, dict):
        inner = next(
            (document[key] for key in ("error", "message", "detail") if document.get(key)), None
        )
        if inner is None:
            break
        document = inner
    text = document if isinstance(document, str) else json.dumps(document)
    return f"{' '.join(text.split()):.300}"


def _seconds(retry_after: str | None) -> float | None:
    """Return a Retry-After in seconds; `None` for a date, which engines do not send."""
    try:
        return max(0.0, float(retry_after)) if retry_after else None
    except ValueError:
        return None
