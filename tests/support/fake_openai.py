"""A server that speaks the OpenAI API and always answers that Paris it is.

Run as a program it serves at the port that it is given, until it is stopped. Given a path, too, it
answers two requests, and others once the path exists.
"""

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from waiting import until

ANSWER = ("Paris", " it", " is")
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 4},
}


class Handler(BaseHTTPRequestHandler):
    """Answers chat completions, whole or as a stream; the model `missing` is not there."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer one request."""
        self.body = body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["model"] == "missing":
            self.answer(404, {"error": {"message": "no such model", "type": "NotFoundError"}})
        elif body.get("stream"):
            self.stream()
        else:
            message = {"role": "assistant", "content": "".join(ANSWER)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.answer(200, completion("chat.completion", [choice]) | {"usage": USAGE})

    def answer(self, status: int, document: dict[str, Any]) -> None:
        """Send a JSON document."""
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self) -> None:
        """Send the answer as server-sent events, its usage last."""
        self.say(ANSWER)

    def say(self, answer: Sequence[str]) -> None:
        """Send these tokens as server-sent events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": token} for token in answer]
        choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        choices.append([{"index": 0, "delta": {}, "finish_reason": "stop"}])
        events = [completion("chat.completion.chunk", choice) for choice in choices]
        events.append(completion("chat.completion.chunk", []) | {"usage": USAGE})
        for event in events:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")


def held(released: Path, answered: int) -> type[Handler]:
    """Answer so many requests, and others once the path exists, if somebody still waits."""
    numbers = count(1)

    class Held(Handler):
        def do_POST(self) -> None:
            if next(numbers) > answered:
                until(released.exists)
            with suppress(ConnectionError):
                super().do_POST()

    return Held


def completion(kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a completion or a chunk of one."""
    return {
        "id": "chatcmpl-1",
        "created": 1,
        "model": "tiny-served",
        "object": kind,
        "choices": choices,
    }


@contextmanager
def running(handler: type[Handler] = Handler) -> Iterator[str]:
    """Serve on a free port and yield the server's URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    chosen = held(Path(sys.argv[2]), 2) if sys.argv[2:] else Handler
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), chosen).serve_forever()
