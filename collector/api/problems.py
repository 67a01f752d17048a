"""Errors as RFC 9457 problem details."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from collector.errors import (
    RETRY_AFTER_S,
    AccessError,
    BodyTooLargeError,
    CollectorError,
    ConflictError,
    ForbiddenError,
    MediaTypeError,
    NotFoundError,
    QueueFullError,
    RateLimitError,
    RequestError,
    StoreError,
    UnauthenticatedError,
    message_for_sender,
)

MEDIA_TYPE = "application/problem+json"

_ACCESS_STATUSES: dict[type[AccessError], HTTPStatus] = {
    UnauthenticatedError: HTTPStatus.UNAUTHORIZED,
    ForbiddenError: HTTPStatus.FORBIDDEN,
    RateLimitError: HTTPStatus.TOO_MANY_REQUESTS,
}
_REQUEST_STATUSES: dict[type[RequestError], HTTPStatus] = {
    NotFoundError: HTTPStatus.NOT_FOUND,
    ConflictError: HTTPStatus.CONFLICT,
    BodyTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    MediaTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
}
_log = logging.getLogger(__name__)


class Problem(BaseModel):
    """An error as an RFC 9457 problem."""

    type: str = Field(default="about:blank", description="Always about:blank: see the status.")
    title: str = Field(description="The HTTP status in words.")
    status: int
    detail: str = Field(description="What was seen, what was wanted, and what to do.")


def status_of(error: CollectorError) -> HTTPStatus:
    """Return the HTTP status for an error."""
    if isinstance(error, RequestError):
        return _REQUEST_STATUSES.get(type(error), HTTPStatus.BAD_REQUEST)
    if isinstance(error, AccessError):
        return _ACCESS_STATUSES[type(error)]
    if isinstance(error, QueueFullError | StoreError):
        return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.BAD_REQUEST


def retry_headers(status: int) -> dict[str, str]:
    """Return Retry-After for a 503, else no headers."""
    return {"Retry-After": str(RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}


def error_headers(error: CollectorError) -> dict[str, str]:
    """Return the response headers for an error; RFC 6750 defines those for keys."""
    if isinstance(error, UnauthenticatedError):
        return {"WWW-Authenticate": 'Bearer realm="draftgate"'}
    if isinstance(error, ForbiddenError):
        challenge = f'Bearer error="insufficient_scope", scope="{error.lacking}"'
        return {"WWW-Authenticate": challenge}
    if isinstance(error, RateLimitError):
        return {"Retry-After": str(error.retry_after_s)}
    return retry_headers(status_of(error))


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return a problem as a response."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail)
    return JSONResponse(
        body.model_dump(),
        status,
        headers=retry_headers(status) | (headers or {}),
        media_type=MEDIA_TYPE,
    )


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of a route's problem responses."""
    schema = Problem.model_json_schema()
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
        for status in statuses
    }


READS = responses(401, 403, 404, 422, 429, 503)
"""Of a route that reads."""
LISTS = responses(400, 401, 403, 404, 422, 429, 503)
"""Of a route whose parameters are also checked against each other, or against the data."""


def install(app: FastAPI) -> None:
    """Install handlers that answer every error of the app with a problem."""

    async def on_collector_error(_: Request, exc: Exception) -> JSONResponse:
        assert isinstance(exc, CollectorError)  # noqa: S101  # registered for this type alone
        return problem(status_of(exc), message_for_sender(exc), error_headers(exc))

    async def on_http_error(_: Request, exc: Exception) -> JSONResponse:
        assert isinstance(exc, HTTPException)  # noqa: S101  # registered for this type alone
        return problem(exc.status_code, str(exc.detail), dict(exc.headers or {}))

    async def on_invalid(_: Request, exc: Exception) -> JSONResponse:
        assert isinstance(exc, RequestValidationError)  # noqa: S101  # registered for this type
        found = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in exc.errors())
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(found))

    async def on_bug(_: Request, exc: Exception) -> JSONResponse:
        _log.error("unexpected error", exc_info=exc)
        return problem(
            HTTPStatus.INTERNAL_SERVER_ERROR, "an error in the collector; its log says which"
        )

    app.add_exception_handler(CollectorError, on_collector_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(Exception, on_bug)
