"""The process that runs untrusted programs: one fork per program, with limits and few builtins.

Runs on its own (`python -I restricted_worker.py`): it reads JSON jobs from standard input, one a
line, and answers each with one JSON line. A program passes only if its job's nonce is returned,
and the program cannot reach the nonce.
"""

import ast
import builtins
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from RestrictedPython.compile import compile_restricted_exec
from RestrictedPython.Guards import (
    guarded_iter_unpack_sequence,
    guarded_unpack_sequence,
)

CPU_S = 1
MEMORY_BYTES = 256 * 2**20
MAX_POWER_BITS = 20_000
_MAX_REPLY_BYTES = 65_536

_BUILTINS = (
    "abs", "all", "any", "ascii", "bin", "bool", "bytes", "callable", "chr", "complex", "dict",
    "divmod", "enumerate", "filter", "float", "format", "frozenset", "hash", "hex", "int",
    "isinstance", "iter", "len", "list", "map", "max", "min", "next", "oct", "ord", "range", "repr",
    "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip",
    "ArithmeticError", "AssertionError", "Exception", "IndexError", "KeyError", "LookupError",
    "NameError", "NotImplementedError", "OverflowError", "RecursionError", "RuntimeError",
    "StopIteration", "TypeError", "ValueError", "ZeroDivisionError",
)  # fmt: skip
_ENDING = frozenset(["copyright", "credits", "exit", "help", "license", "quit"])
"""Names of interactive sessions, such as `exit`: a program that uses them is wrong, not refused."""
_OFFERED = frozenset([*_BUILTINS, "pow", "print", "True", "False", "None", "__name__"])


def main() -> None:
    """Answer jobs until standard input ends."""
    for line in sys.stdin.buffer:
        reply = supervise(json.loads(line))
        sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
        sys.stdout.buffer.flush()


def supervise(job: dict[str, Any]) -> dict[str, Any]:
    """Run the job in a fork, wait at most `wall_s` for its reply, and kill the fork."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_and_exit(job, writer)
    os.close(writer)
    try:
        reply = _read(reader, time.monotonic() + job["wall_s"])
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if reply:
        answer: dict[str, Any] = json.loads(reply)
        return answer
    if reply is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return {"problem": f"ran past its time ({CPU_S} s of work, {job['wall_s']} s in all)"}
    return {"problem": "ended before its tests did"}


def _read(reader: int, deadline: float) -> bytes | None:
    """Return all bytes that the child wrote before it closed the pipe; `None` on timeout."""
    chunks: list[bytes] = []
    while sum(map(len, chunks)) < _MAX_REPLY_BYTES:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(reader, _MAX_REPLY_BYTES)
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)


def _run_and_exit(job: dict[str, Any], writer: int) -> NoReturn:
    try:
        _limit()
        reply = judge(job["program"], job["tests"])
        if not reply:
            reply = {"nonce": job["nonce"]}
        os.write(writer, json.dumps(reply).encode()[:_MAX_REPLY_BYTES])
    finally:
        os._exit(0)


def _limit() -> None:
    """Limit CPU time, memory and files; redirect the standard streams to the null device."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    for what, limit in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (limit, limit))
    # The soft limit sends SIGXCPU, which the parent recognizes; the hard limit sends SIGKILL.
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))


def judge(program: str, tests: str) -> dict[str, Any]:
    """Compile and run the program, then its tests; return an empty reply if all passed."""
    names: dict[str, Any] = _globals()
    if missing := _not_offered(program, tests):
        return {"problem": f"uses {missing}, which only a sandbox offers", "unoffered": True}
    for source, whose in ((program, "program"), (tests, "tests")):
        try:
            compiled = compile_restricted_exec(source, filename=whose)
            if compiled.code is None:
                return {"problem": f"{whose}: {'; '.join(compiled.errors)[:300]}", "refused": True}
            exec(compiled.code, names)  # noqa: S102  # restricted, and in a bounded process
        except BaseException as exc:  # any exception is the program's result
            return {"problem": f"{whose}: {_describe(exc, source)}"}
    return {}


def _not_offered(program: str, tests: str) -> str | None:
    """Return a Python builtin that is used, not offered here and not defined by the program.

    Any other undefined name is the program's own error.
    """
    try:
        nodes = [node for source in (program, tests) for node in ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    given = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    given |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    given |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    own = used - given - _OFFERED
    return min((name for name in own - _ENDING if hasattr(builtins, name)), default=None)


def _describe(exc: BaseException, source: str) -> str:
    """Describe the exception or a failed test's line, without running the program's code."""
    frame = exc.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    kind = type(exc).__name__
    lines = source.splitlines()
    if isinstance(exc, AssertionError) and frame is not None and 0 < frame.tb_lineno <= len(lines):
        return f"failed: {lines[frame.tb_lineno - 1].strip()[:200]}"
    detail = str(exc)[:200] if kind in dir(builtins) else ""
    return f"{kind}: {detail}" if detail else kind


def _globals() -> dict[str, Any]:
    safe = {name: getattr(builtins, name) for name in _BUILTINS}
    safe |= {"True": True, "False": False, "None": None, "pow": _power}
    return {
        "__builtins__": safe,
        "__name__": "program",
        "_getattr_": _no_attribute,
        "_getiter_": iter,
        "_getitem_": lambda container, key: container[key],
        "_apply_": lambda function, *values, **named: function(*values, **named),
        "_write_": _writable,
        "_inplacevar_": _in_place,
        "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
        "_unpack_sequence_": guarded_unpack_sequence,
        "_print_": _Silence,
    }


class _Silence:
    """Replaces `print`; output is discarded."""

    def __init__(self, _getattr: object = None) -> None:
        """Accept the argument that RestrictedPython passes."""

    def _call_print(self, *_values: object, **_options: object) -> None:
        """Print nothing."""


def _no_attribute(_owner: object, name: str) -> NoReturn:
    raise AttributeError(f"attributes such as {name} cannot be reached here")


def _writable(container: object) -> object:
    if type(container) not in (list, dict):
        raise TypeError(f"{type(container).__name__} cannot be changed here")
    return container


def _power(base: Any, exponent: Any, modulus: Any = None) -> Any:
    """Raise to a power, refusing results of more than 20,000 bits."""
    if modulus is not None:
        return pow(base, exponent, modulus)
    whole = isinstance(base, int) and isinstance(exponent, int) and exponent > 0
    if whole and base.bit_length() * exponent > MAX_POWER_BITS:
        raise ValueError("the power is too large")
    return pow(base, exponent)


_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": lambda a, b: a + b,
    "-=": lambda a, b: a - b,
    "*=": lambda a, b: a * b,
    "/=": lambda a, b: a / b,
    "//=": lambda a, b: a // b,
    "%=": lambda a, b: a % b,
    "**=": _power,
    "&=": lambda a, b: a & b,
    "|=": lambda a, b: a | b,
    "^=": lambda a, b: a ^ b,
    "<<=": lambda a, b: a << b,
    ">>=": lambda a, b: a >> b,
}


def _in_place(operator: str, left: Any, right: Any) -> Any:
    if operator == "+=" and isinstance(left, list) and isinstance(right, Iterable):
        left[:] = [*left, *right]  # a list keeps its identity, as in plain Python
        return left
    return _IN_PLACE[operator](left, right)


if __name__ == "__main__":
    main()
