"""Exit codes of `draftgate`, and its output to closed pipes.

Commands exit with 0 to 3. A crash has a different code, so that no script takes it for a failed
gate, and so has Ctrl-C. If the reader of a pipe exits (`draftgate gate k4 | head -1`), the rest of
the output is dropped and the exit code is the command's. If output cannot be written for another
reason, such as a full disk, one line says so, and the exit code is that of unusable input.
"""

import io
import os
import sys
import traceback
from typing import TextIO

import typer

from draftgate.commands import app
from draftgate.extras import missing_extra

UNUSABLE = 2
CRASHED = 70
"""`EX_SOFTWARE` of sysexits.h."""
INTERRUPTED = 130
"""128 plus the number of SIGINT, as in shells."""


def main() -> None:
    """Run the command in `sys.argv`, and exit."""
    sys.stdout, sys.stderr = _until_closed(sys.stdout), _until_closed(sys.stderr)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # an error here is told below; at the interpreter's exit it is not
    except SystemExit as exc:
        if isinstance(exc.__context__, typer.Abort):
            sys.exit(INTERRUPTED)
        raise
    except Exception as exc:  # the last place that can set an exit code
        _end_of(exc)


def _end_of(error: Exception) -> None:
    missing = missing_extra(error, "".join(sys.argv[1:2]))
    if missing is not None:
        typer.echo(f"error: {missing}", err=True)
        sys.exit(UNUSABLE)
    if isinstance(error, _UnwritableError):
        typer.echo(f"error: {error}", err=True)
        sys.exit(UNUSABLE)
    traceback.print_exception(error)
    typer.echo(
        "error: this is a fault of Draftgate, not of its input; please report it with the lines "
        f"above (exit code {CRASHED})",
        err=True,
    )
    sys.exit(CRASHED)


class _UnwritableError(Exception):
    """Standard output or standard error cannot be written."""


class _UntilClosed(io.FileIO):
    """A file that drops writes once its reader has closed the pipe, or after a first error."""

    def write(self, data: memoryview, /) -> int:  # type: ignore[override]  # what its buffer gives
        try:
            return super().write(data)
        except OSError as exc:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            if not isinstance(exc, BrokenPipeError):
                name = "standard error" if self.fileno() == 2 else "standard output"
                raise _UnwritableError(f"{name} cannot be written: {exc.strerror}") from exc
            return len(data)


def _until_closed(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):  # replaced, for example by a notebook
        return stream
    raw = _UntilClosed(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),  # type: ignore[type-var]  # its `write` takes the writer's buffer
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
