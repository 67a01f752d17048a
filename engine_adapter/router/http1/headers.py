"""Which headers pass the router, and in which direction.

Of a request those pass that clients of the OpenAI API send and engines read, and those that the
settings name: a client's key, its cookies and its address stay here. Of an answer all pass but
those that belong to one connection.
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
"""Said by the router itself."""
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
    """What is sent on of a request's headers."""

    def __init__(self, besides: Iterable[str] = ()) -> None:
        """Pass some headers besides the usual ones; none that belongs to one connection."""
        named = {name.lower().encode() for name in besides}
        of_one_connection = {name.encode() for name in _OF_ONE_CONNECTION}
        self._passed = (_PASSED | named) - of_one_connection - _OWN

    def passed(self, headers: Sequence[Header]) -> list[Header]:
        """Return those headers of a request that pass."""
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


def of_answer(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return those headers of an answer that pass."""
    named = headers.get("Connection")
    dropped = _OF_ONE_CONNECTION | _connection_options(named) if named else _OF_ONE_CONNECTION
    return [(name, value) for name, value in headers.items() if name.lower() not in dropped]


def _connection_options(named: str) -> frozenset[str]:
    """Return the headers that `Connection` names, which end at the next hop."""
    return frozenset(name.strip().lower() for name in named.split(","))
