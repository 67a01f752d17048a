"""llama.cpp's own HTTP server in a process, which ends with its test."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.real import llamacpp_server

PROGRAM = Path(llamacpp_server.__file__)
DRAFT_TOKENS = 4
_MATCHING_TOKENS = 2  # the default, 12, finds nothing in short prompts


@contextmanager
def serving(
    model: Path, *, draft: Path | None = None, ngram: bool = False, slots: int = 1
) -> Iterator[str]:
    """Serve the GGUF file on a free port, so many requests at a time, and yield the URL."""
    command = [sys.executable, str(PROGRAM), str(model), "--slots", str(slots)]
    command += ["--draft", str(draft)] if draft else []
    command += ["--ngram", str(_MATCHING_TOKENS)] if ngram else []
    with (
        tempfile.TemporaryFile("w+") as log,  # a pipe that nobody empties would stop the server
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        address = process.stdout.readline().strip()
        if not address:
            process.communicate()
            log.seek(0)
            raise RuntimeError(f"llama.cpp did not start: {log.read()[-2000:]}")
        try:
            yield address
        finally:
            process.communicate()
