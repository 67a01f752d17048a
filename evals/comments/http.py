"""Requests to a forge's REST API, with errors that say what to do."""

from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from evals.comments.sticky import TokenRefusedError, TransientError
from evals.errors import CommentError

_TIMEOUT_S = 30.0
_PAGES = 100
_LIMITED = 429


class Api:
    """A forge's API under one address, with one token."""

    def __init__(self, url: str, headers: Mapping[str, str], permission: str) -> None:
        """Ask at `url`; `permission` says what to give a token that is refused."""
        self._url = url.rstrip("/")
        self._permission = permission
        self._headers = dict(headers)

    def send(self, method: str, path: str, **options: Any) -> Any:  # Any: httpx's and JSON
        """Send a request, and return its answer's JSON, or `None` if it has none.

        Raises `TransientError`, `TokenRefusedError`, or any other `CommentError`.
        """
        try:
            answer = httpx.request(
                method,
                f"{self._url}{path}",
                headers=self._headers,
                timeout=_TIMEOUT_S,
                **options,
            )
        except httpx.TransportError as exc:
            raise TransientError(f"{self._url}: {exc or type(exc).__name__}") from exc
        except (httpx.InvalidURL, UnicodeError) as exc:
            raise CommentError(f"{self._url}: {exc}") from exc
        if not answer.is_success:
            raise self._refused(answer, f"{method} {path}")
        try:
            return answer.json() if answer.content else None
        except ValueError as exc:
            raise TransientError(f"{method} {path}: the answer is not JSON") from exc

    def pages(self, path: str, **query: str) -> Iterator[Mapping[str, Any]]:  # Any: JSON
        """Yield the objects of a list, page by page, a hundred each."""
        for page in range(1, _PAGES + 1):
            found = self.send("GET", path, params={**query, "per_page": "100", "page": str(page)})
            if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
                raise CommentError(f"GET {path}: wanted a list of comments")
            yield from found
            if len(found) < 100:
                return

    def _refused(self, answer: httpx.Response, what: str) -> CommentError:
        status = answer.status_code
        headers = answer.headers
        limited = status == _LIMITED or headers.get("x-ratelimit-remaining") == "0"
        limited = limited or "retry-after" in headers
        if limited or status >= 500:
            return TransientError(f"{what}: {status} {answer.reason_phrase}")
        if status in (401, 403, 404):
            return TokenRefusedError(f"{what}: {status} {answer.reason_phrase}; {self._permission}")
        return CommentError(f"{what}: {status} {answer.reason_phrase}")
