"""Access control over HTTP: the scope that a request needs, its key, and refusal responses."""

import re
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.access.authority import OPEN, Authority, Grant
from collector.access.credentials import key_text
from collector.api.problems import error_headers, problem, status_of
from collector.api.state import State
from collector.api_key import Scope as KeyScope
from collector.errors import (
    AccessError,
    CollectorError,
    ForbiddenError,
    RateLimitError,
    StoreError,
    UnauthenticatedError,
    message_for_sender,
)

_GRANT = "draftgate.grant"
_OPEN_PATHS = frozenset({"/healthz", "/readyz", "/docs", "/redoc", "/openapi.json"})
_JUDGE_POSTS = re.compile(
    r"/api/v1/(scores|verdicts|leases(/.*)?|rollouts/.*/(policies|watches))", re.DOTALL
)
_DECISIONS = re.compile(r"/api/v1/rollouts/.*/decision", re.DOTALL)
_LEASES = re.compile(r"/api/v1/leases/.*", re.DOTALL)
_GRPC_CODES = {
    HTTPStatus.UNAUTHORIZED: 16,  # UNAUTHENTICATED
    HTTPStatus.FORBIDDEN: 7,  # PERMISSION_DENIED
    HTTPStatus.TOO_MANY_REQUESTS: 8,  # RESOURCE_EXHAUSTED
    HTTPStatus.SERVICE_UNAVAILABLE: 14,  # UNAVAILABLE
}
_PROTOBUF = "application/x-protobuf"


def needed_scope(method: str, path: str) -> KeyScope | None:
    """Return the scope that a request needs; None if it needs no key.

    A route that is not listed here needs `admin`, so that new routes are closed by default.
    """
    if path in _OPEN_PATHS:
        return None
    if path.startswith("/v1/") or (method == "POST" and path == "/api/v1/feedback"):
        return KeyScope.INGEST
    if method == "POST" and _JUDGE_POSTS.fullmatch(path):
        return KeyScope.JUDGE  # a lease also needs `read`, which its route checks
    if method == "DELETE" and _LEASES.fullmatch(path):
        return KeyScope.JUDGE
    asks = method == "POST" and _DECISIONS.fullmatch(path)  # webhooks can only POST
    reads = method in ("GET", "HEAD") and (path.startswith("/api/") or path == "/metrics")
    if asks or reads:
        return KeyScope.READ
    return KeyScope.ADMIN


def grant_in(scope: Scope) -> Grant:
    """Return the rights of the request with this ASGI scope."""
    grant: Grant = scope.get(_GRANT, OPEN)
    return grant


def may_read_content(request: Request) -> bool:
    """Return whether the request may read text."""
    return KeyScope.CONTENT in grant_in(request.scope).scopes


def require(request: Request, scope: KeyScope) -> None:
    """Raise `ForbiddenError` unless the request's key has this additional scope."""
    grant = grant_in(request.scope)
    if scope not in grant.scopes:
        raise ForbiddenError(
            f"the API key {grant.key_id} lacks the scope {scope}; "
            f"use one made with --scope {scope} too",
            lacking=scope,
        )


def require_content(request: Request) -> None:
    """Raise `ForbiddenError` unless the request may read text."""
    if not may_read_content(request):
        raise ForbiddenError(
            f"the API key {grant_in(request.scope).key_id} lacks the scope content, without which "
            "no text is given; ask without content=true, or use a key made with --scope content",
            lacking=KeyScope.CONTENT,
        )


class AccessMiddleware:
    """Checks a request's key before its body is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        needed = needed_scope(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if needed is None:
            await self._app(scope, receive, send)
            return
        collector: State = scope["app"].state.collector
        headers = Headers(scope=scope)
        try:
            scope[_GRANT] = await authorize(collector.authority, key_text(headers), needed)
        except (AccessError, StoreError) as exc:
            status = status_of(exc)
            collector.counters.refusals[_REASONS.get(type(exc), "store")] += 1
            await _refusal(exc, status, scope["path"], headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)


_REASONS: Mapping[type[CollectorError], str] = {
    UnauthenticatedError: "unauthenticated",
    ForbiddenError: "scope",
    RateLimitError: "rate",
}


async def authorize(authority: Authority, text: str | None, needed: KeyScope) -> Grant:
    """Return the rights of the key with this text, as `Authority.authorize`."""
    if authority.is_quick(text):
        return authority.authorize(text, needed)
    return await run_in_threadpool(authority.authorize, text, needed)


def _refusal(exc: CollectorError, status: HTTPStatus, path: str, headers: Headers) -> Response:
    extra = error_headers(exc)
    if not path.startswith("/v1/"):
        return problem(status, message_for_sender(exc), extra)
    message = Status(code=_GRPC_CODES[status], message=message_for_sender(exc))
    if headers.get("content-type", "").partition(";")[0].strip().lower() == _PROTOBUF:
        return Response(message.SerializeToString(), status, extra, _PROTOBUF)
    return Response(json_format.MessageToJson(message), status, extra, "application/json")
