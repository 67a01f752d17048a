"""Run the commands that build the tests' environments."""

import subprocess
from pathlib import Path


def run(*command: str, cwd: Path | None = None) -> str:
    """Return a command's output; raises `RuntimeError` with all its output if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    return done.stdout
