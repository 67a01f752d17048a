"""Run a model's program against its tests in a restricted language, if there is no sandbox."""

import ast
import json
import os
import secrets
import select
import subprocess
import sys
import threading
from pathlib import Path

from evals.evaluators.code.program import MAX_PROGRAM_CHARS, Ran, Refused, Unparsed, parsed
from evals.evaluators.code.sandbox import INSTALL, library_path

WORKER = Path(__file__).with_name("restricted_worker.py")
WALL_S = 2.0
_GRACE_S = 5.0
_ENVIRONMENT = {"PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}


class RestrictedRunner:
    """Runs programs one at a time in a child process, which forks for each program.

    The child is started for the first program, restarted if it stops answering, and ended by
    `close`. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self, program: str, tests: str) -> Ran | Refused:
        """Judge a program; one that does not parse, raises, loops or fails a test has a problem."""
        if len(program) + len(tests) > MAX_PROGRAM_CHARS:
            return Ran(f"longer than {MAX_PROGRAM_CHARS} characters")
        for source, whose in ((program, "the program"), (tests, "the reference's test")):
            found = _check_syntax(source)
            if isinstance(found, Ran) and source is tests:
                return Refused(f"the reference's tests do not parse: {found.problem}")
            if isinstance(found, Refused):
                return Refused(f"{whose} {found.reason}: needs a sandbox; {INSTALL}")
            if found is not None:
                return found
        return self._run_in_child(program, tests)

    def close(self) -> None:
        """End the child process; a later program starts a new one."""
        with self._lock:
            self._stop()

    def _run_in_child(self, program: str, tests: str) -> Ran | Refused:
        nonce = secrets.token_hex(16)
        job = {"program": program, "tests": tests, "nonce": nonce, "wall_s": WALL_S}
        with self._lock:
            reply = self._exchange(json.dumps(job).encode() + b"\n")
            if reply is None:
                self._stop()
                return Refused("the process that runs code stopped answering")
        if reply.get("nonce") == nonce:
            return Ran(None)
        problem = str(reply.get("problem") or "ended before its tests did")
        if reply.get("unoffered"):
            return Refused(f"the program {problem}: needs a sandbox; {INSTALL}")
        return Refused(problem) if reply.get("refused") else Ran(problem)

    def _exchange(self, line: bytes) -> dict[str, object] | None:
        """Send one job and return its reply; `None` if none came in time."""
        process = self._running_child()
        if process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except OSError:
            return None
        ready, _, _ = select.select([process.stdout], [], [], WALL_S + _GRACE_S)
        reply = process.stdout.readline() if ready else b""
        return json.loads(reply) if reply.endswith(b"\n") else None

    def _running_child(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and file
                [sys.executable, "-I", str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_ENVIRONMENT | library_path(),
                cwd=os.sep,
                start_new_session=True,
            )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()


_UNSUPPORTED = {
    ast.Attribute: "uses attribute access",
    ast.Import: "imports a module",
    ast.ImportFrom: "imports a module",
    ast.ClassDef: "defines a class",
    ast.With: "uses a context manager",
    ast.Global: "uses a global variable",
    ast.Nonlocal: "uses a nonlocal variable",
    ast.Yield: "is a generator",
    ast.YieldFrom: "is a generator",
    ast.Match: "uses pattern matching",
    ast.AsyncFunctionDef: "is asynchronous",
    ast.AnnAssign: "annotates a variable",
    ast.NamedExpr: "assigns inside an expression",
    ast.TryStar: "uses exception groups",
}


def _check_syntax(source: str) -> Ran | Refused | None:
    """Return `Ran` if the source does not parse, `Refused` if it uses unsupported syntax.

    A correct program may use that syntax, so it is not judged wrong. `None` if the source can run.
    Only parses; nothing is compiled or run in this process.
    """
    tree = parsed(source)
    if isinstance(tree, Unparsed):
        return Ran(tree.reason)
    for node in ast.walk(tree):
        if (use := _UNSUPPORTED.get(type(node))) is not None:
            return Refused(use)
    return None
