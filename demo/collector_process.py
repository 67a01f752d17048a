"""A collector in a process of its own, as a team would run one."""

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
    """The collector did not come up; the message ends with what it printed."""


@contextmanager
def running(database: Path, log: Path) -> Iterator[str]:
    """Serve the database file on a free port; yield the URL, and drain and stop at the end."""
    command = [sys.executable, "-m", "draftgate", "serve", "--port", "0", "--no-grpc"]
    command += ["--database", f"sqlite:///{database}", "--capture-content"]
    environment = os.environ | {"DRAFTGATE_REQUIRE_KEYS": "0"}  # nobody else reaches this one
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
    """Wait until the collector prints where it listens, and return its URL."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        found = _LISTENS.search(log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.1)
    said = log.read_text(errors="replace").strip().splitlines()[-1:]
    raise CollectorStartError(f"the collector did not start: {' '.join(said)}")
