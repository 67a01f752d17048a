"""Which headers pass the router, and in which direction.

Of a request those pass that clients of the OpenAI API send and engines read, and those that the
settings name: a client's key, its cookies and its address stay here. Of an answer all pass but
those that belong to one connection.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from multidict import CIMultiDict

_PASSED: Final = frozenset(
    (
        "accept",
        "accept-language",
        "content-encoding",
        "content-type",
        "idempotency-key",
        "openai-beta",
        "openai-organization",
        "openai-project",
        "tracestate",
        "user-agent",
        "x-request-id",
    )
)
_PASSED_PREFIX: Final = "x-stainless-"
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
        named = {name.lower() for name in besides}
        self._passed = (_PASSED | named) - _OF_ONE_CONNECTION - {"host"}

    def passed(self, headers: Mapping[str, str]) -> CIMultiDict[str]:
        """Return those headers of a request that pass."""
        dropped = _connection_options(headers)
        kept = CIMultiDict(
            (name, value)
            for name, value in headers.items()
            if ((low := name.lower()) in self._passed or low.startswith(_PASSED_PREFIX))
            and low not in dropped
        )
        kept["Accept-Encoding"] = "identity"
        return kept


def of_answer(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Return those headers of an answer that pass."""
    dropped = _OF_ONE_CONNECTION | _connection_options(headers)
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in dropped
    )


def _connection_options(headers: Mapping[str, str]) -> frozenset[str]:
    """Return the headers that `Connection` names, which end at the next hop."""
    named = headers.get("Connection", "")
    return frozenset(name.strip().lower() for name in named.split(",")) if named else frozenset()
