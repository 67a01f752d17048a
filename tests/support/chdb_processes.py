"""Scripts that write to chdb in processes of their own, and may die there."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def run_steps(
    script: str, folder: Path, steps: Iterable[str]
) -> "list[subprocess.CompletedProcess[str]]":
    """Run a script once for each step, one after the other, on the same two databases.

    Its arguments are their URLs, SQLite's and chdb's, and the step.
    """
    urls = (
        f"sqlite:///{folder / 'draftgate.db'}",
        f"clickhousedb:///draftgate?interface=chdb&path={folder / 'chdb'}",
    )
    return [
        subprocess.run(
            [sys.executable, "-c", script, *urls, step],
            capture_output=True,
            text=True,
            cwd=_ROOT,
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
            check=False,
        )
        for step in steps
    ]
