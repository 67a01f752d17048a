"""A judge behind a real HTTP server in a process of its own."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evals.evaluators.judge.settings import JudgeSettings, TokenPrices

SERVER = Path(__file__).parent / "judge_server.py"
Log = Callable[[], list[dict[str, Any]]]


@contextlib.contextmanager
def judge_of(
    folder: Path, *script: dict[str, Any], **fields: Any
) -> Iterator[tuple[JudgeSettings, Log]]:
    """Run a server with a script; give its settings, and a function that reads its requests."""
    path = folder / "log"
    path.write_text("")
    server = subprocess.Popen(
        [sys.executable, str(SERVER), json.dumps(script), str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    plain = {"prices": TokenPrices(input_usd=1.0, output_usd=10.0), "api_key": "hush"}
    try:
        yield (
            JudgeSettings(url=url, model="judge-1", **(plain | fields)),
            lambda: [json.loads(line) for line in path.read_text().splitlines()],
        )
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
