"""A judge in a separate process that answers from a script: faults first, then replies.

    python judge_server.py SCRIPT LOG

SCRIPT is a JSON list of replies, sent in turn, the last one repeatedly: `{"status", "headers",
"body"}`, or `{"text"}` for a chat completion, or `{"better_text"}` to prefer the answer that holds
it. Requests are appended to LOG, one JSON object a line. The port is printed first.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

SCRIPT: list[dict[str, Any]] = json.loads(sys.argv[1])
LOG = Path(sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    """Gives the next reply of the script."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Log the request and reply."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOG.open("a") as log:
            key = self.headers.get("Authorization")
            log.write(json.dumps({"path": self.path, "key": key, "body": body}) + "\n")
        reply = SCRIPT.pop(0) if len(SCRIPT) > 1 else SCRIPT[0]
        if "better_text" in reply:
            prompt = body["messages"][0]["content"]
            first, second = prompt.index("<<<first"), prompt.index("<<<second")
            at = prompt.index(reply["better_text"], first)
            reply = {"text": json.dumps({"better": "first" if at < second else "second"})}
        if "text" in reply:
            message = {"role": "assistant", "content": reply["text"]}
            usage = {"prompt_tokens": 1000, "completion_tokens": 100}
            reply = {"body": json.dumps({"choices": [{"message": message}], "usage": usage})}
        sent = reply.get("body", "").encode()
        self.send_response(reply.get("status", 200))
        for name, value in reply.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(reply.get("length", len(sent))))
        self.end_headers()
        self.wfile.write(sent)


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
