"""A proxy before an engine that poisons a prefix: after one prompt, all that share it suffer.

It stands for a server whose prefix cache was spoilt: the fault lasts until the proxy ends.
"""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def running(upstream: str, *, trigger: str, prefix: str) -> Iterator[str]:
    """Serve on a free port; `upstream` and the yielded URL are without the path.

    After a prompt that is `trigger`, prompts that begin with `prefix` reach the engine without it.
    """

    class Handler(BaseHTTPRequestHandler):
        poisoned = False

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            """Pass on."""
            self._pass(None)

        def do_POST(self) -> None:
            """Pass on, or spoil."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._pass(json.dumps(self._spoilt(body)).encode())

        def _spoilt(self, body: dict[str, Any]) -> dict[str, Any]:
            last = body["messages"][-1]
            text, state = last["content"], type(self)
            if state.poisoned and text.startswith(prefix):
                last["content"] = text.removeprefix(prefix)
            state.poisoned |= text == trigger
            return body

        def _pass(self, body: bytes | None) -> None:
            asked = urllib.request.Request(f"{upstream}{self.path}", body)  # noqa: S310
            asked.add_header("Content-Type", "application/json")
            with urllib.request.urlopen(asked) as answer:  # noqa: S310
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.end_headers()
                while piece := answer.read1():
                    self.wfile.write(piece)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
