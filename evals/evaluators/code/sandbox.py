"""Run a model's program against its tests in a bubblewrap sandbox, a new one for each program.

A sandbox has no network, sees only the system's libraries and the Python interpreter with its
packages, has a read-only root and an unprivileged user without capabilities, and limits memory,
time, processes and files.
"""

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
_MIN_VERSION = (0, 8)
_ISOLATION = (
    "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL",
    "--clearenv", "--disable-userns", "--new-session", "--die-with-parent",
)  # fmt: skip
_ENVIRONMENT = {
    "HOME": "/tmp",  # noqa: S108  # a tmpfs inside the sandbox
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class NoSandboxError(RuntimeError):
    """No sandbox can be started here; the message says what to do."""


class _Reply(NamedTuple):
    """The output of a sandbox."""

    stdout: bytes
    stderr: str
    """Errors of bubblewrap, or of the worker before it started the program."""
    in_time: bool
    """Whether it ended before the deadline."""


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """The resource limits of one program."""

    cpu_s: int = CPU_S
    wall_s: float = WALL_S
    memory_bytes: int = MEMORY_BYTES

    def of_process(self) -> dict[str, int]:
        """Return the limits of each process, by their names in `resource`."""
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_CPU": self.cpu_s,
            "RLIMIT_FSIZE": _FILE_BYTES,
            "RLIMIT_NOFILE": 64,
            "RLIMIT_CORE": 0,
            "RLIMIT_NPROC": MAX_PROCESSES,
        }


class SandboxRunner:
    """Judges each program in its own sandbox; safe to use from several threads."""

    def __init__(self, limits: ResourceLimits | None = None) -> None:
        """Find bubblewrap and a way to limit processes; raises `NoSandboxError` without them."""
        self._limits = limits or ResourceLimits()
        self._bwrap = _bubblewrap()
        try:
            self._bound = ProcessBound(readable_by_all=_readable_by_all())
        except NoProcessBoundError as exc:
            raise NoSandboxError(str(exc)) from exc

    @property
    def bound(self) -> str:
        """The means that limits the number of processes: `cgroup`, `uid` or `rlimit`."""
        return self._bound.kind

    def run(self, program: str, tests: str) -> Ran | Refused:
        """Judge a program; one that does not parse, raises, loops or fails a test has a problem."""
        if len(program) + len(tests) > MAX_PROGRAM_CHARS:
            return Ran(f"longer than {MAX_PROGRAM_CHARS} characters")
        if isinstance(found := parsed(program), Unparsed):
            return Ran(found.reason)
        if isinstance(found := parsed(tests), Unparsed):
            return Refused(f"the reference's tests do not parse: {found.reason}")
        if not found.body:  # empty tests would pass every program
            return Refused("the reference's tests test nothing: they hold no statement")
        nonce = secrets.token_hex(16).encode()
        job = {"program": program, "tests": tests, "limits": self._limits.of_process()}
        with self._bound.launch() as launch:
            reply = self._run_job(json.dumps(job).encode() + b"\n" + nonce, launch)
        return self._result_of(reply, nonce)

    def close(self) -> None:
        """Release nothing: each sandbox ends with its program."""

    def _result_of(self, reply: _Reply, nonce: bytes) -> Ran | Refused:
        started, _, result = reply.stdout.partition(b"\n")
        if started != b"started":
            return Refused(f"the sandbox did not start: {reply.stderr or 'it said nothing'}")
        if result == nonce:
            return Ran(None)
        if not reply.in_time:
            return Ran(f"ran past its time ({self._limits.wall_s:g} s in all)")
        try:
            problem = json.loads(result)
        except ValueError:
            problem = None
        if isinstance(problem, str):
            return Ran(problem)
        return Ran(f"ended before its tests did (it may use {self._limits.cpu_s} s of work)")

    def _run_job(self, job: bytes, launch: Launch) -> _Reply:
        """Run one job, wait for it at most `wall_s`, and kill all of its processes."""
        with os.fdopen(os.memfd_create("job"), "w+b") as stdin:
            stdin.write(job)
            stdin.flush()
            stdin.seek(0)
            process = subprocess.Popen(  # noqa: S603  # bubblewrap, with our own worker
                launch.wrap([self._bwrap, *_arguments()]),
                stdin=stdin,
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
                process.kill()  # bubblewrap's outer process takes its whole PID namespace with it
                process.wait()
                for pipe in (process.stdout, process.stderr):
                    if pipe is not None:
                        pipe.close()


@cache
def why_not() -> str | None:
    """Run a trivial program once; return why no sandbox works here, `None` if one does."""
    try:
        result = SandboxRunner().run("x = 1", "assert x == 1")
    except NoSandboxError as exc:
        return str(exc)
    return None if result == Ran(None) else str(getattr(result, "reason", result))


def _read(process: subprocess.Popen[bytes], deadline: float) -> _Reply:
    """Collect the sandbox's output until it ends, writes too much, or reaches the deadline."""
    if process.stdout is None or process.stderr is None:
        raise ValueError("wanted a process with pipes")
    output = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    is_open = set(output)
    while is_open:
        ready, _, _ = select.select(list(is_open), [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            break
        for descriptor in ready:
            chunk = os.read(descriptor, _MAX_REPLY_BYTES)
            output[descriptor] += chunk
            if not chunk:
                is_open.discard(descriptor)
        if any(len(text) >= _MAX_REPLY_BYTES for text in output.values()):
            is_open.clear()
    stderr = output[process.stderr.fileno()].decode(errors="replace").strip()
    in_time = time.monotonic() < deadline
    return _Reply(output[process.stdout.fileno()], stderr[-300:], in_time)


@cache
def _arguments() -> tuple[str, ...]:
    """Return bubblewrap's arguments and the worker's command."""
    site_packages = os.path.realpath(sysconfig.get_path("purelib"))
    mounted = [os.path.realpath(sys.base_prefix), site_packages]
    arguments = [*_ISOLATION, *_system()]
    # Mounted before the interpreter and its packages, which may themselves lie below /tmp.
    arguments += ["--size", str(_FILE_BYTES), "--tmpfs", "/tmp"]  # noqa: S108
    for path in mounted:
        if not path.startswith("/usr/"):
            arguments += ["--ro-bind", path, path]
    arguments += ["--ro-bind", str(WORKER), "/worker.py"]
    # Every writable file system is a tmpfs of limited size.
    arguments += ["--dev", "/dev", "--size", str(_FILE_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108
    arguments += ["--remount-ro", "/dev"]
    for name, value in (_ENVIRONMENT | library_path()).items():
        arguments += ["--setenv", name, value]
    arguments += ["--remount-ro", "/", "--chdir", "/tmp", "--"]  # noqa: S108
    interpreter = os.path.realpath(sys.executable)
    return (*arguments, interpreter, "-I", "-S", "/worker.py", site_packages)


def _system() -> list[str]:
    """Return the arguments that mount the system's libraries and programs read-only."""
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
    output = subprocess.run(  # noqa: S603  # found on the PATH
        [found, "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = tuple(int(part) for part in re.findall(r"\d+", output)[:2])
    if version < _MIN_VERSION:
        raise NoSandboxError(f"{output.strip() or found} is too old: {INSTALL}")
    return found


def _readable_by_all() -> bool:
    """Return whether any user can reach the interpreter, its prefix and the worker script."""
    paths = {Path(os.path.realpath(p)) for p in (sys.executable, sys.base_prefix, WORKER)}
    folders = {folder for path in paths for folder in path.parents}
    return all(folder.stat().st_mode & 0o001 for folder in folders)


def library_path() -> dict[str, str]:
    """Return LD_LIBRARY_PATH if it is set: some builds of Python do not start without it."""
    name = "LD_LIBRARY_PATH"
    return {name: os.environ[name]} if name in os.environ else {}
