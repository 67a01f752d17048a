"""Protection against cross-site requests and DNS rebinding.

A web page can post forms and text to any address that its visitor can reach, and an attacker's host
name can resolve to 127.0.0.1. So requests that change something must not come from another site's
page, and a collector on a loopback address only accepts host names of this machine.
"""

from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.api.problems import problem

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class BrowserGuard:
    """ASGI middleware in front of the application."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] | None) -> None:
        """Accept these host names and those of this machine; None accepts any."""
        self._app = app
        self._hosts = None if hosts is None else _LOOPBACK | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        reason = self._reason(scope) if scope["type"] == "http" else None
        if reason is None:
            await self._app(scope, receive, send)
        else:
            await problem(HTTPStatus.FORBIDDEN, reason)(scope, receive, send)

    def _reason(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            return "Host: wanted one; others could read another of them"
        host = hosts[0] if hosts else ""
        if self._hosts is not None and _name(host) not in self._hosts:
            return (
                f"Host {host[:100]!r}: this collector answers to localhost alone; "
                "name others in DRAFTGATE_ALLOWED_HOSTS, separated by commas"
            )
        if scope["method"] in _SAFE:
            return None
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "Sec-Fetch-Site: a page of another site must not change anything here"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return (
                f"Origin {origin[:100]!r}: a page of another origin must not change anything here"
            )
        return None


def _name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
