"""What is run of a code answer, and what can come of it."""

import ast
import re
from dataclasses import dataclass
from typing import Protocol

from evals.evaluators.answers import unfenced
from evals.evaluators.reference import CodeTests, StdioCases

MAX_PROGRAM_CHARS = 200_000
_FENCED = re.compile(r"^```[\w+-]*[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """The program was judged."""

    problem: str | None
    """What went wrong, `None` where every test passed."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The program was not judged, and may be right."""

    reason: str


class Runner(Protocol):
    """Judges programs. Safe to use from several threads; owns what it starts until `close`."""

    def run(self, program: str, tests: str) -> Ran | Refused:
        """Judge a program; one that does not parse, raises, loops or fails a test has a problem."""

    def close(self) -> None:
        """End what was started; may be called twice."""


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Why a source is no Python."""

    reason: str


def parsed(source: str) -> ast.Module | Unparsed:
    """Parse a source; nothing is compiled or run."""
    try:
        return ast.parse(source)
    except SyntaxError as exc:
        return Unparsed(f"syntax error in line {exc.lineno}: {exc.msg}")
    except (ValueError, RecursionError, MemoryError) as exc:
        return Unparsed(f"does not parse: {type(exc).__name__}")


def code_of(answer: str) -> str:
    """Return the answer's code: what its fences hold, or, where it has none, all of it."""
    whole = unfenced(answer)
    blocks = _FENCED.findall(answer) if whole is answer else []
    return "\n".join(blocks) if blocks else whole


def program_of(reference: CodeTests, answer: str) -> str:
    """Return the program under test.

    It is prelude and answer; where the answer defines the entry point itself, the answer with the
    prelude's imports and other definitions before it.
    """
    code = code_of(answer)
    if not reference.entry_point or not _defines(code, reference.entry_point):
        return reference.prelude + code
    before = re.split(
        rf"^def\s+{re.escape(reference.entry_point)}\s*\(", reference.prelude, flags=re.MULTILINE
    )[0]
    return before + code if isinstance(parsed(before), ast.Module) else code


def _defines(code: str, name: str) -> bool:
    return bool(
        re.search(rf"^(?:async\s+)?(?:def|class)\s+{re.escape(name)}\b", code, re.MULTILINE)
        or re.search(rf"^{re.escape(name)}\s*=", code, re.MULTILINE)
    )


def stdio_tests(reference: StdioCases, answer: str) -> str:
    """Return tests that run the answer as a script, once a case, and compare what it prints.

    Compared line by line, white space at the ends aside, as judges of contests do.
    """
    return _STDIO.format(source=code_of(answer), cases=reference.cases)


_STDIO = """
import contextlib, io, sys

def _lines(text):
    return [line.strip() for line in text.strip().splitlines()]

for _number, (_given, _wanted) in enumerate({cases!r}, start=1):
    _printed = io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(_given.encode()), encoding="utf-8")
    with contextlib.redirect_stdout(_printed), contextlib.suppress(SystemExit):
        exec(compile({source!r}, "program", "exec"), {{"__name__": "__main__"}})
    _got = _printed.getvalue()
    if _lines(_got) != _lines(_wanted):
        raise AssertionError(
            f"case {{_number}}: wanted {{_wanted[:60]!r}}, got {{_got[:60]!r}}"
        )
"""
