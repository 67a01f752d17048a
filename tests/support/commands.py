"""Commands of tests: `draftgate`, and what builds the environments."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run(*command: str, cwd: Path | None = None) -> str:
    """Return a command's output; raises `RuntimeError` with all its output if it fails."""
    ended = run_to_end(command, cwd=cwd)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {ended.stdout}{ended.stderr}")
    return ended.stdout


def run_to_end(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever its exit code, and return its output as text."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def command_of(*arguments: str) -> list[str]:
    """Return a command line of `draftgate`."""
    return [sys.executable, "-m", "draftgate", *arguments]
