"""llama.cpp's drafts under a JSON schema: the share that is accepted, and the time of a step.

Run by the interpreter of an environment with `xllamacpp`: TARGET and DRAFT are GGUF files. The
target as its own draft proposes just what the target would say without a schema. Draftgate takes no
part.

    python llamacpp_grammar.py TARGET DRAFT
"""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

_SERVER = Path(__file__).parent.parent / "llamacpp_release.py"  # llama.cpp's own, over HTTP
_ASKED = ("Find the area of a circle with a radius of 10.", "Book a table for 4 in Malmo at 19.",
          "Find the prime factors of 123456.", "Translate 'good evening' to German.")  # fmt: skip
_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["name", "count"],
    "additionalProperties": False,
}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "call", "schema": _SCHEMA}}


def main() -> None:
    """Print a row for each draft, without the schema and with it."""
    target, draft = sys.argv[1:]
    print("| Draft | Schema | Accepted | ms a step | ms a token |\n|---|---|---|---|---|")
    for port, (name, file) in enumerate((("none", None), ("DRAFT", draft), ("TARGET", target))):
        command = [sys.executable, str(_SERVER), target, "--port", str(18310 + port)]
        command += [] if file is None else ["--draft", file]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
            assert server.stdout is not None
            server.stdout.readline()
            url = f"http://127.0.0.1:{18310 + port}/v1/chat/completions"
            _timings(url, {})  # the first request reads the model
            for more in ({}, {"response_format": _FORMAT}):
                print(f"| {name} | {'yes' if more else 'no'} | {_row(_timings(url, more))} |")
            server.terminate()


def _row(timings: list[dict[str, Any]]) -> str:
    drafted, accepted, tokens, ms = (
        sum(one.get(name, 0) for one in timings)
        for name in ("draft_n", "draft_n_accepted", "predicted_n", "predicted_ms")
    )
    rate = f"{accepted:.0f} of {drafted:.0f}" if drafted else "–"
    return f"{rate} | {ms / (tokens - accepted):.2f} | {ms / tokens:.2f}"


def _timings(url: str, more: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _answer(url, {"messages": [{"role": "user", "content": asked}]} | more)["timings"]
        for asked in _ASKED
    ]


def _answer(url: str, asked: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps(asked | {"temperature": 0, "max_tokens": 64}).encode()
    head = {"content-type": "application/json"}
    request = urllib.request.Request(url, body, head)  # noqa: S310  # our own server
    for _ in range(60):
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310
                found: dict[str, Any] = json.load(answer)
                return found
        except OSError:
            time.sleep(1)
    raise SystemExit("the server does not answer")


if __name__ == "__main__":
    main()
