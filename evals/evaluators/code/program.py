"""Extract the program from a code answer; the results of running it."""

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
    """The fault; `None` if every test passed."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The program was not judged, and may be right."""

    reason: str


class ProgramRunner(Protocol):
    """Judges programs. Safe to use from several threads; owns its processes until `close`."""

    def run(self, program: str, tests: str) -> Ran | Refused:
        """Judge a program; one that does not parse, raises, loops or fails a test has a problem."""

    def close(self) -> None:
        """End all processes; may be called twice."""


@dataclass(frozen=True, slots=True)
class Unparsed:
    """The reason why a source is not valid Python."""

    reason: str


def parsed(source: str) -> ast.Module | Unparsed:
    """Parse a source without compiling or running it."""
    try:
        return ast.parse(source)
    except SyntaxError as exc:
        return Unparsed(f"syntax error in line {exc.lineno}: {exc.msg}")
    except (ValueError, RecursionError, MemoryError) as exc:
        return Unparsed(f"does not parse: {type(exc).__name__}")


def code_of(answer: str) -> str:
    """Return the code in the answer's Markdown fences, or the whole answer if it has none."""
    whole = unfenced(answer)
    blocks = _FENCED.findall(answer) if whole is answer else []
    return "\n".join(blocks) if blocks else whole


def program_of(reference: CodeTests, answer: str) -> str:
    """Return the program under test: the prelude followed by the answer's code.

    If the code defines the entry point itself, only the part of the prelude before its own
    definition of the entry point is kept.
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
    """Return tests that run the answer as a script, once per case, and compare its output.

    Output is compared line by line without white space at the ends, as programming contests do.
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
