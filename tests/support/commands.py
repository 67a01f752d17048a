"""Commands that make what the tests stand on."""

import subprocess
from pathlib import Path


def run(*command: str, cwd: Path | None = None) -> str:
    """Return what a command says; raises `RuntimeError` with all that it said where it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    return done.stdout
