"""Runs a model's program against its tests in a sandbox of its own, made by bubblewrap.

No network, no file of the machine but the interpreter and its libraries, a root that cannot be
written, an unprivileged user without capabilities, and limits on memory, time, processes and
files. Every program has a sandbox of its own, which ends with it.
"""

import ast
import json
import os
import re
import secrets
import select
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from evals.evaluators.code.process_bound import (
    MAX_PROCESSES,
    Launch,
    NoProcessBoundError,
    ProcessBound,
)
from evals.evaluators.code.program import MAX_PROGRAM_CHARS, Ran, Refused, Unparsed, parsed

INSTALL = "install bubblewrap 0.8 or newer (Debian and Ubuntu: apt-get install bubblewrap)"
WORKER = Path(__file__).with_name("sandbox_worker.py")
CPU_S = 5
WALL_S = 15.0
MEMORY_BYTES = 512 * 2**20
_FILE_BYTES = 16 * 2**20
_MAX_REPLY_BYTES = 16_384
_OLDEST = (0, 8)
_ISOLATION = (
    "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL",
    "--clearenv", "--disable-userns", "--new-session", "--die-with-parent",
)  # fmt: skip
_ENVIRONMENT = {
    "HOME": "/tmp",  # noqa: S108  # a file system of the sandbox's own
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class NoSandboxError(RuntimeError):
    """Nothing can be run in a sandbox here; says what to do."""


class _Reply(NamedTuple):
    """What came out of a sandbox."""

    said: bytes
    complaint: str
    """What bubblewrap, or the worker before it began, said on standard error."""
    ended: bool
    """It ended by itself, in time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use."""

    cpu_s: int = CPU_S
    wall_s: float = WALL_S
    memory_bytes: int = MEMORY_BYTES

    def of_process(self) -> dict[str, int]:
        """Return the limits of each process by their name in `resource`."""
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_CPU": self.cpu_s,
            "RLIMIT_FSIZE": _FILE_BYTES,
            "RLIMIT_NOFILE": 64,
            "RLIMIT_CORE": 0,
            "RLIMIT_NPROC": MAX_PROCESSES,
        }


class SandboxRunner:
    """Judges each program in a sandbox of its own; safe to use from several threads."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Look up what the machine offers; raises `NoSandboxError` where it cannot make one."""
        self._limits = limits or Limits()
        self._bwrap = _bubblewrap()
        try:
            self._bound = ProcessBound(readable_by_all=_readable_by_all())
        except NoProcessBoundError as exc:
            raise NoSandboxError(str(exc)) from exc

    @property
    def bound(self) -> str:
        """Say what bounds the number of processes: `cgroup`, `uid` or `rlimit`."""
        return self._bound.kind

    def run(self, program: str, tests: str) -> Ran | Refused:
        """Judge a program; one that does not parse, raises, loops or fails a test has a problem."""
        if len(program) + len(tests) > MAX_PROGRAM_CHARS:
            return Ran(f"longer than {MAX_PROGRAM_CHARS} characters")
        if isinstance(found := parsed(program), Unparsed):
            return Ran(found.reason)
        if isinstance(found := parsed(tests), Unparsed):
            return Refused(f"the reference's tests do not parse: {found.reason}")
        if not _asserts(found):
            return Refused("the reference's tests test nothing: they hold no statement")
        nonce = secrets.token_hex(16).encode()
        job = {"program": program, "tests": tests, "limits": self._limits.of_process()}
        with self._bound.launch() as launch:
            reply = self._ask(json.dumps(job).encode() + b"\n" + nonce, launch)
        return self._judged(reply, nonce)

    def close(self) -> None:
        """Release nothing: no sandbox outlives its program."""

    def _judged(self, reply: _Reply, nonce: bytes) -> Ran | Refused:
        started, _, said = reply.said.partition(b"\n")
        if started != b"started":
            return Refused(f"the sandbox did not start: {reply.complaint or 'it said nothing'}")
        if said == nonce:
            return Ran(None)
        if not reply.ended:
            return Ran(f"ran past its time ({self._limits.wall_s:g} s in all)")
        try:
            problem = json.loads(said)
        except ValueError:
            problem = None
        if isinstance(problem, str):
            return Ran(problem)
        return Ran(f"ended before its tests did (it may use {self._limits.cpu_s} s of work)")

    def _ask(self, job: bytes, launch: Launch) -> _Reply:
        """Run one job, wait for it at most `wall_s`, and leave nothing of it behind."""
        with os.fdopen(os.memfd_create("job"), "w+b") as given:
            given.write(job)
            given.flush()
            given.seek(0)
            process = subprocess.Popen(  # noqa: S603  # bubblewrap, with our own worker
                launch.wrap([self._bwrap, *_arguments()]),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                cwd=os.sep,
                user=launch.uid,
                group=launch.uid,
                extra_groups=None if launch.uid is None else (),
            )
            try:
                return _read(process, time.monotonic() + self._limits.wall_s)
            finally:
                process.kill()  # with bubblewrap's outer process its whole process namespace dies
                process.wait()
                for pipe in (process.stdout, process.stderr):
                    if pipe is not None:
                        pipe.close()


@cache
def why_not() -> str | None:
    """Return why nothing can be run in a sandbox here, `None` where it can; tried out once."""
    try:
        result = SandboxRunner().run("x = 1", "assert x == 1")
    except NoSandboxError as exc:
        return str(exc)
    return None if result == Ran(None) else str(getattr(result, "reason", result))


def _read(process: subprocess.Popen[bytes], deadline: float) -> _Reply:
    """Collect what the sandbox says until it ends, says too much, or time is up."""
    if process.stdout is None or process.stderr is None:
        raise ValueError("wanted a process with pipes")
    said = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    waiting = set(said)
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            break
        for descriptor in ready:
            chunk = os.read(descriptor, _MAX_REPLY_BYTES)
            said[descriptor] += chunk
            if not chunk:
                waiting.discard(descriptor)
        if any(len(text) >= _MAX_REPLY_BYTES for text in said.values()):
            waiting.clear()
    complaint = said[process.stderr.fileno()].decode(errors="replace").strip()
    ended = time.monotonic() < deadline
    return _Reply(said[process.stdout.fileno()], complaint[-300:], ended)


@cache
def _arguments() -> tuple[str, ...]:
    """Return bubblewrap's arguments and the worker's command."""
    site_packages = os.path.realpath(sysconfig.get_path("purelib"))
    shown = [os.path.realpath(sys.base_prefix), site_packages]
    arguments = [*_ISOLATION, *_system()]
    # Before what is shown: an interpreter or its packages may themselves lie below /tmp.
    arguments += ["--size", str(_FILE_BYTES), "--tmpfs", "/tmp"]  # noqa: S108
    for path in shown:
        if not path.startswith("/usr/"):
            arguments += ["--ro-bind", path, path]
    arguments += ["--ro-bind", str(WORKER), "/worker.py"]
    # Everything that can be written is a file system in memory, with a size.
    arguments += ["--dev", "/dev", "--size", str(_FILE_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108
    arguments += ["--remount-ro", "/dev"]
    for name, value in (_ENVIRONMENT | _library_path()).items():
        arguments += ["--setenv", name, value]
    arguments += ["--remount-ro", "/", "--chdir", "/tmp", "--"]  # noqa: S108
    interpreter = os.path.realpath(sys.executable)
    return (*arguments, interpreter, "-I", "-S", "/worker.py", site_packages)


def _system() -> list[str]:
    """Return the arguments that show the system's libraries and programs, as they lie here."""
    arguments = ["--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/ld.so.cache"]
    arguments += ["/etc/ld.so.cache", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    for path in map(Path, ("/lib", "/lib64", "/bin")):
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    return arguments


def _bubblewrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise NoSandboxError(f"bubblewrap is not installed: {INSTALL}")
    said = subprocess.run(  # noqa: S603  # found on the PATH
        [found, "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if version < _OLDEST:
        raise NoSandboxError(f"{said.strip() or found} is too old: {INSTALL}")
    return found


def _readable_by_all() -> bool:
    """Say whether every user could start our interpreter and import its packages."""
    paths = {Path(os.path.realpath(p)) for p in (sys.executable, sys.base_prefix, WORKER)}
    folders = {folder for path in paths for folder in path.parents}
    return all(folder.stat().st_mode & 0o001 for folder in folders)


def _library_path() -> dict[str, str]:
    """Pass on what some builds of Python need to start at all."""
    name = "LD_LIBRARY_PATH"
    return {name: os.environ[name]} if name in os.environ else {}


def _asserts(tests: ast.Module) -> bool:
    """Say whether the tests do anything: none at all would pass every program."""
    return bool(tests.body)
