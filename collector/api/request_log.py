"""Request ids, request counters, and request logs, by route and without content."""

import logging
import random
import re
from http import HTTPStatus
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collector.api.access import grant_in
from collector.api.state import State
from collector.logs import FIELDS, request_id

_HEADER = "X-Request-Id"
_GIVEN = re.compile(r"[\w.-]{1,64}", re.ASCII)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REFUSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
_EXPORTS = "/v1/"
_log = logging.getLogger(__name__)


class RequestLogMiddleware:
    """The outermost middleware: assigns the request's id, counts it and logs it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(_HEADER, "")
        id_ = given if _GIVEN.fullmatch(given) else _new_id()
        token = request_id.set(id_)
        started_s = perf_counter()
        # The status of an error that propagates: it is answered outside of this middleware.
        status = int(HTTPStatus.INTERNAL_SERVER_ERROR)

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[_HEADER] = id_
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            _note(scope, status, perf_counter() - started_s)
            request_id.reset(token)


def _note(scope: Scope, status: int, duration_s: float) -> None:
    state: State = scope["app"].state.collector
    unrouted = "refused" if status in _REFUSED else "unmatched"
    route = getattr(scope.get("route"), "path", unrouted)
    method = scope["method"] if scope["method"] in _METHODS else "other"
    state.counters.requests[method, route, str(status)] += 1
    level = _level(status, route)
    if _log.isEnabledFor(level):
        fields = {
            "method": method,
            "route": route,
            "status": status,
            "duration_ms": round(1000 * duration_s, 1),
            "key": grant_in(scope).key_id,
        }
        _log.log(level, "request", extra={FIELDS: fields})


def _level(status: int, route: str) -> int:
    if status == HTTPStatus.SERVICE_UNAVAILABLE and route.startswith(_EXPORTS):
        return logging.DEBUG  # the cause is logged once, not per refused request
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return logging.WARNING
    return logging.INFO if status in _REFUSED else logging.DEBUG


def _new_id() -> str:
    """Return a random id; it is not a secret."""
    # Not from the system's randomness: that is a system call, after which the GIL may be busy.
    return f"{random.getrandbits(64):016x}"
