"""Choose the headers that the router passes on.

Of a request: those that OpenAI clients send and engines read, plus those that the settings name.
The client's key, cookies and address are not passed on. Of a response: all but hop-by-hop headers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from engine_adapter.router.transport import Header

_PASSED: Final = frozenset(
    (
        b"accept",
        b"accept-language",
        b"content-encoding",
        b"content-type",
        b"idempotency-key",
        b"openai-beta",
        b"openai-organization",
        b"openai-project",
        b"tracestate",
        b"user-agent",
        b"x-request-id",
    )
)
_PASSED_PREFIX: Final = b"x-stainless-"
_OWN: Final = frozenset((b"accept-encoding", b"host"))
"""Set by the router itself."""
_OF_ONE_CONNECTION: Final = frozenset(
    (
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)


class RequestHeaders:
    """Selects the request headers to pass on."""

    def __init__(self, besides: Iterable[str] = ()) -> None:
        """`besides`: names passed in addition to the usual ones; hop-by-hop ones are ignored."""
        named = {name.lower().encode() for name in besides}
        of_one_connection = {name.encode() for name in _OF_ONE_CONNECTION}
        self._passed = (_PASSED | named) - of_one_connection - _OWN

    def select(self, headers: Sequence[Header]) -> list[Header]:
        """Return the request headers to pass on."""
        kept = [
            header
            for header in headers
            if (low := header[0].lower()) in self._passed or low.startswith(_PASSED_PREFIX)
        ]
        options = [value for name, value in headers if name.lower() == b"connection"]
        if options:
            dropped = _connection_options(b",".join(options).decode("latin-1"))
            kept = [one for one in kept if one[0].decode("latin-1").lower() not in dropped]
        return kept


def response_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the response headers to pass on."""
    named = headers.get("Connection")
    dropped = _OF_ONE_CONNECTION | _connection_options(named) if named else _OF_ONE_CONNECTION
    return [(name, value) for name, value in headers.items() if name.lower() not in dropped]


def _connection_options(named: str) -> frozenset[str]:
    """Return the header names listed in `Connection`, which are hop-by-hop too."""
    return frozenset(name.strip().lower() for name in named.split(","))
