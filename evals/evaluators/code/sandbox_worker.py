"""The process inside the sandbox: sets the remaining limits, runs a program and its tests.

Runs on its own (`python -I -S sandbox_worker.py SITE_PACKAGES`). Standard input holds the job as
one JSON line, then the nonce. The nonce stays unread, behind a random descriptor number, until the
last test has passed, so that the process that runs the program never has it in memory, arguments,
variables or a named file. Only a reply with the nonce counts as passed.
"""

import json
import os
import random
import resource
import sys
import types

_NONCE_BYTES = 32


def main() -> None:
    """Judge the job on standard input; write `started`, then the nonce or the problem as JSON."""
    line = _read_line(0)
    job = json.loads(line)
    nonce, replies = _hide(0), _hide(1)
    _hide(2)
    _limit(job["limits"])
    sys.path.append(sys.argv[1])
    # Taken before the program runs, because it may replace functions in these modules.
    write, pread, leave = os.write, os.pread, os._exit
    write(replies, b"started\n")
    problem = _judge(job["program"], job["tests"])
    if problem is None:
        write(replies, pread(nonce, _NONCE_BYTES, len(line)))
    else:
        write(replies, json.dumps(problem[:1000]).encode())
    leave(0)


def _read_line(descriptor: int) -> bytes:
    """Read the job's line and nothing after it: the nonce must not get into memory."""
    size = os.fstat(descriptor).st_size - _NONCE_BYTES
    chunks = b""
    while len(chunks) < size:
        chunks += os.pread(descriptor, size - len(chunks), len(chunks))
    return chunks


def _hide(descriptor: int) -> int:
    """Move a descriptor to a random number, and put the null device in its place."""
    new = random.SystemRandom().randrange(20, 60)
    while _is_open(new):
        new = random.SystemRandom().randrange(20, 60)
    os.dup2(descriptor, new, inheritable=False)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)
    return new


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _limit(limits: dict[str, int]) -> None:
    """Set hard limits, which apply to each process separately."""
    for name, limit in limits.items():
        resource.setrlimit(getattr(resource, name), (limit, limit))


def _judge(program: str, tests: str) -> str | None:
    """Run the program, then its tests; return the problem, `None` if all passed."""
    module = types.ModuleType("program")
    sys.modules["program"] = module  # dataclasses and pickle look a class's module up
    for source, whose in ((program, "program"), (tests, "tests")):
        try:
            exec(compile(source, whose, "exec"), module.__dict__)  # noqa: S102  # in the sandbox
        except BaseException as exc:  # any exception is the program's result
            return f"{whose}: {_describe(exc, source)}"
    return None


def _describe(exc: BaseException, source: str) -> str:
    """Describe the exception, or a failed test by its line."""
    frame = exc.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    try:
        detail = str(exc)[:200]
    except BaseException:  # its own __str__ may raise anything
        detail = ""
    if isinstance(exc, AssertionError) and not detail and frame is not None:
        lines = source.splitlines()
        at = frame.tb_lineno - 1
        return f"failed: {lines[at].strip()[:200]}" if 0 <= at < len(lines) else "failed"
    kind = type(exc).__name__
    return f"{kind}: {detail}" if detail else kind


if __name__ == "__main__":
    main()
