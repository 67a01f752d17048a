"""A forge on this machine: comments by the REST APIs of GitHub and GitLab, with faults."""

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

GITHUB = re.compile(r"/repos/acme/app/issues/(?:7/comments|comments/(?P<id>\d+))")
GITLAB = re.compile(r"/projects/(?:42|acme%2Fapp)/merge_requests/7/notes(?:/(?P<id>\d+))?")
MOST_CHARACTERS = 65_536


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    token: str | None


class Forge:
    """The comments of one request, and what goes wrong."""

    def __init__(self) -> None:
        self.url = ""
        self.comments: dict[int, dict[str, Any]] = {}
        self.asked: list[Asked] = []
        self.owned: set[int] = set()
        """Ids that the token may change."""
        self.fault: Callable[[str, int], int | None] = lambda _method, _number: None
        """Gives the status with which to answer a request by method and number, if any."""
        self.fault_after = False
        """Whether a faulty answer comes after the deed, as a gateway's may."""
        self.headers: dict[str, str] = {}
        """Headers of a faulty answer."""

    def write(self, body: str, *, own: bool = False) -> int:
        """Add a comment, by somebody else unless `own`."""
        id_ = max(self.comments, default=1000) + 1
        self.comments[id_] = {"id": id_, "body": body}
        if own:
            self.owned.add(id_)
        return id_

    def bodies(self) -> list[str]:
        """Return all comments' texts, oldest first."""
        return [self.comments[id_]["body"] for id_ in sorted(self.comments)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, forge: Forge) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.forge = forge


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        forge, address = self.server.forge, urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        sent = json.loads(self.rfile.read(length)) if length else {}
        token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN")
        forge.asked.append(Asked(self.command, address.path, token))
        fault = forge.fault(self.command, len(forge.asked) - 1)
        if fault is not None and not forge.fault_after:
            self._reply(fault, {"message": "no"}, forge.headers)
            return
        status, document = _done(forge, self.command, address.path, address.query, sent)
        self._reply(status if fault is None else fault, document)

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815  # names that the base calls

    def _reply(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _done(forge: Forge, method: str, path: str, query: str, sent: Any) -> tuple[int, Any]:
    """Handle the request; return status and document."""
    found = GITHUB.fullmatch(path) or GITLAB.fullmatch(path)
    if found is None:
        return 404, {"message": "Not Found"}
    if method == "GET":
        return 200, _page(forge, parse_qs(query))
    if method == "POST":
        if len(sent["body"]) > MOST_CHARACTERS:
            return 422, {"message": "body is too long"}
        return 201, forge.comments[forge.write(sent["body"], own=True)]
    return _changed(forge, method, int(found["id"]), sent)


def _page(forge: Forge, query: dict[str, list[str]]) -> list[Any]:
    size = min(int(query.get("per_page", ["30"])[0]), 100)
    first = (int(query.get("page", ["1"])[0]) - 1) * size
    return [forge.comments[id_] for id_ in sorted(forge.comments)][first : first + size]


def _changed(forge: Forge, method: str, id_: int, sent: Any) -> tuple[int, Any]:
    if id_ not in forge.owned:
        return 403, {"message": "Forbidden"}
    if method == "DELETE":
        del forge.comments[id_]
        return 204, None
    forge.comments[id_]["body"] = sent["body"]
    return 200, forge.comments[id_]


@contextlib.contextmanager
def forge_running() -> Iterator[Forge]:
    """Run a forge."""
    forge = Forge()
    server = _Server(forge)
    forge.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
