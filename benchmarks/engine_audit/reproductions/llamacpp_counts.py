"""llama.cpp's server in `xllamacpp` 2026.4 counts output tokens of drafts that it drops.

Run by the interpreter of an environment with `xllamacpp`: TARGET and DRAFT are GGUF files. The
servers answer greedy requests. Draftgate takes no part.

    python llamacpp_counts.py TARGET DRAFT
"""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

_SERVER = Path(__file__).parent.parent / "llamacpp_release.py"  # llama.cpp's own, over HTTP
_PROMPT = (
    "How much is the Harbor kettle, and how fast is it? Answer from these notes.\n"
    "The Harbor kettle costs EUR 68, ships with Falcon within 8 days and can be returned for 17 "
    "days.\nThe Malmo shop at Mill Road 24 opens at 9, closes at 20, rests on Saturday."
)
_LIMITS = (64, 20, 15)
"""`max_tokens`: the answer ends by itself, or is cut."""


def main() -> None:
    """Print count and text of the answers without drafts, and with those of each kind."""
    target, draft = sys.argv[1:]
    kinds = {"no drafts": [], "draft model": ["--draft", draft], "n-grams": ["--ngram", "2"]}
    for port, (kind, more) in enumerate(kinds.items(), start=18301):
        command = [sys.executable, str(_SERVER), target, "--port", str(port), *more]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
            assert server.stdout is not None
            server.stdout.readline()
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            answers = [_answer(url, limit) for limit in _LIMITS]
            server.terminate()
        for limit, answer in zip(_LIMITS, answers, strict=True):
            text, count = answer["choices"][0]["message"]["content"], answer["usage"]
            print(f"{kind}, max_tokens {limit}: {count['completion_tokens']} tokens: {text!r}")


def _answer(url: str, limit: int) -> dict[str, Any]:
    body = json.dumps(
        {"messages": [{"role": "user", "content": _PROMPT}], "temperature": 0, "max_tokens": limit}
    ).encode()
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
