"""`draftgate evaluate k4` in processes, and the scores that they post."""

import os
import subprocess
import sys
from pathlib import Path

from waiting import until

from collector.client import Client
from collector.contract import Score

_ROOT = Path(__file__).resolve().parents[2]


def started(url: str, *options: str) -> "subprocess.Popen[str]":
    """Start the command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "draftgate", "evaluate", "k4", "--collector", url, *options],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def scores(url: str) -> set[Score]:
    """Return the stored scores."""
    with Client(url) as client:
        return set(client.scores("k4"))


def wait_for(url: str, count: int) -> None:
    """Wait for so many scores."""
    until(lambda: len(scores(url)) >= count, what=f"{count} scores")
