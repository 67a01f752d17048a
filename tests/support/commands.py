"""Commands of tests: `draftgate`, and what builds the environments."""

import subprocess
import sys
from pathlib import Path


def run(*command: str, cwd: Path | None = None) -> str:
    """Return a command's output; raises `RuntimeError` with all its output if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    return done.stdout


def command_of(*arguments: str) -> list[str]:
    """Return a command line of `draftgate`."""
    return [sys.executable, "-m", "draftgate", *arguments]
