"""Draftgate's own commands, run in this process: importing them for each would take longer."""

import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from benchmarks.engine_audit.environments import ROOT
from draftgate.commands import app


def command(log: Path, *arguments: str) -> int:
    """Run `draftgate ARGUMENTS`, append its output to the log, and return its exit code."""
    with log.open("a") as output, redirect_stdout(output), redirect_stderr(output):
        print(f"$ draftgate {' '.join(arguments)}", flush=True)
        try:
            code = app(list(arguments), standalone_mode=False)
        except SystemExit as exc:
            code = exc.code
    return code if isinstance(code, int) else 0


def command_of(python: Path, log: Path, *arguments: str) -> int:
    """Run `draftgate ARGUMENTS` by the interpreter of another environment."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with log.open("a") as output:
        done = subprocess.run(  # noqa: S603  # our own command
            [str(python), "-m", "draftgate", *arguments],
            stdout=output, stderr=output, env=environment, check=False,
        )  # fmt: skip
    return done.returncode
