"""Run a collector in a separate process, as in production."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_READY_WITHIN_S = 60.0
_LISTENS = re.compile(r"(http://\S+)/v1/traces\n")


class CollectorStartError(Exception):
    """The collector did not start; the message ends with its output."""


@contextmanager
def running(database: Path, log: Path, *, port: int = 0) -> Iterator[str]:
    """Serve the database file on the port, 0 for a free one; yield the URL, then drain and stop."""
    command = [sys.executable, "-m", "draftgate", "serve", "--port", str(port), "--no-grpc"]
    command += ["--database", f"sqlite:///{database}", "--capture-content"]
    environment = os.environ | {"DRAFTGATE_REQUIRE_KEYS": "0"}  # only this machine reaches it
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603
            command, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            yield _address(process, log)
        finally:
            process.terminate()
            process.wait(timeout=30)


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Wait until the collector prints its URL; return it."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        found = _LISTENS.search(log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.1)
    said = log.read_text(errors="replace").strip().splitlines()[-1:]
    raise CollectorStartError(f"the collector did not start: {' '.join(said)}")
