"""Commands of ours, and the servers beside this file, forked off a process with their imports.

Importing takes a command two seconds of CPU, and hundreds of tests start one. While `installed`,
`subprocess.Popen` forks such a command off a process that is started once: a real process all the
same, a child of this one, with pipes, signals, environment and folder of its own. What asks for
more of the interpreter (its options, `PYTHONPATH`, `preexec_fn`) is started afresh.
"""

import ctypes
import gc
import inspect
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TextIO

from draftgate import commands

_HERE: Final = Path(__file__).resolve().parent
_OURS: Final = re.compile(
    rf"-m draftgate\b|-c from [\w.]+ import app; app\(\)|{re.escape(str(_HERE))}/\w+\.py\b"
)
_APART: Final = ("dashboard", "demo")
"""Commands that import packages that no other command does."""
_LATER: Final = ("uvicorn", "uvloop")
"""Packages that commands import only once they run."""
_AFRESH: Final = {"shell": False, "preexec_fn": None, "pass_fds": (), "process_group": -1}
"""Defaults of `Popen` options that a fork does not support."""
_WEIGHTLESS: Final = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Variables that a fork can ignore: its modules are imported, and its buffering is handled."""
_ADOPT_ORPHANS: Final = 36  # PR_SET_CHILD_SUBREAPER
_LONGEST: Final = 1 << 20
_Execute: Final = subprocess.Popen._execute_child  # type: ignore[attr-defined]
_SIGNATURE: Final = inspect.signature(_Execute)


class _Forks:
    """The process that commands of one kind are forked off, started with the first of them."""

    def __init__(self, *imports: str) -> None:
        self._imports = imports
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, asked: Mapping[str, Any], streams: Sequence[int]) -> int:
        """Return the id of a child of this process that carries out a command."""
        with self._lock:
            to = self._socket or self._start()
            adopt = ctypes.CDLL(None, use_errno=True).prctl
            adopt(_ADOPT_ORPHANS, 1, 0, 0, 0)
            try:
                socket.send_fds(to, [json.dumps(asked).encode()], list(streams))
                pid = int(to.recv(64))
                to.recv(64)  # its parent has ended, and it is ours
            finally:
                adopt(_ADOPT_ORPHANS, 0, 0, 0, 0)
            return pid

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).resolve()),
                    str(theirs.fileno()),
                    *self._imports,
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._socket = ours
        return ours

    def close(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.wait()


@contextmanager
def installed() -> Iterator[None]:
    """Fork commands of ours for as long as this lasts."""
    modules = {module for name, (module, _) in commands.COMMANDS.items() if name not in _APART}
    ours, beside = _Forks(*sorted(modules), *_LATER), _Forks("asyncio", "urllib.request")

    def execute(popen: "subprocess.Popen[Any]", *given: Any, **named: Any) -> None:
        of = _SIGNATURE.bind(popen, *given, **named).arguments
        if not _can_fork(of):
            _Execute(popen, *given, **named)
            return
        streams = [
            own if fd == -1 else fd
            for own, fd in enumerate((of["p2cread"], of["c2pwrite"], of["errwrite"]))
        ]
        env = dict(os.environ if of["env"] is None else of["env"])
        asked = {
            "arguments": [os.fspath(one) for one in of["args"]],
            "env": env,
            "cwd": os.fspath(of["cwd"] or Path.cwd()),
            "own_session": bool(of["start_new_session"]),
        }
        forks = ours if asked["arguments"][1].startswith("-") else beside
        popen.pid = forks.fork(asked, streams)
        popen._child_created = True  # type: ignore[attr-defined]
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        popen._close_pipe_fds(*(of[name] for name in pipes))  # type: ignore[attr-defined]

    subprocess.Popen._execute_child = execute  # type: ignore[attr-defined]
    try:
        yield
    finally:
        subprocess.Popen._execute_child = _Execute  # type: ignore[attr-defined]
        ours.close()
        beside.close()


def _can_fork(of: Mapping[str, Any]) -> bool:
    """Say whether a command is ours, and asks for nothing that a new interpreter alone gives."""
    if sys.platform != "linux" or not isinstance(of["args"], list):
        return False
    if any(of.get(name, usual) != usual for name, usual in _AFRESH.items()):
        return False
    words = [os.fspath(word) for word in of["args"]]
    is_ours = words[0] == sys.executable and _OURS.match(" ".join(words[1:3])) is not None
    return is_ours and _interpreter(of["env"]) == _interpreter(os.environ)


def _interpreter(env: Mapping[str, str] | None) -> dict[str, str]:
    """Return the variables that Python reads as it starts, without those of no weight to a fork."""
    given = os.environ if env is None else env
    return {
        name: value
        for name, value in given.items()
        if name.startswith("PYTHON") and name not in _WEIGHTLESS
    }


# The process that is forked


def _stream(fd: int, mode: str) -> TextIO:
    made: TextIO = os.fdopen(fd, mode, encoding="utf-8", closefd=False)
    if mode == "w" and (fd == 2 or os.environ.get("PYTHONUNBUFFERED") or made.isatty()):
        made.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
    return made


def _become(asked: Mapping[str, Any], streams: Sequence[int]) -> list[str]:
    """Make this process the one that was asked for, and return its arguments."""
    if asked["own_session"]:
        os.setsid()
    for own, fd in enumerate(streams):
        os.dup2(fd, own)
        os.close(fd)
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    os.chdir(asked["cwd"])
    sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w"), _stream(2, "w")
    arguments: list[str] = asked["arguments"]
    return arguments


def _next_command(requests: socket.socket) -> list[str] | None:
    """Fork for each request; return in each fork its arguments, and nothing in the end."""
    while True:
        message, streams, _, _ = socket.recv_fds(requests, _LONGEST, 3)
        if not message:
            return None
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child:
                requests.send(str(child).encode())
                os._exit(0)
            requests.close()
            return _become(json.loads(message), streams)
        os.waitpid(between, 0)
        for fd in streams:
            os.close(fd)
        requests.send(b"theirs")


def _main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        for module in sys.argv[2:]:
            import_module(module)
        gc.freeze()
        arguments = _next_command(requests)
    if arguments is None:
        return
    _, *words = arguments
    if words[0] not in ("-m", "-c"):
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
        return
    kind, what, *rest = words
    sys.path[0] = ""
    if kind == "-m":
        sys.argv = [what, *rest]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *rest]
        exec(what, {"__name__": "__main__"})  # noqa: S102  # as `python -c` does


if __name__ == "__main__":
    _main()
