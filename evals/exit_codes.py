"""Exit codes of commands that end with a verdict."""

from enum import IntEnum

from collector.contract import Outcome


class ExitCode(IntEnum):
    """Exit codes of `gate` and similar commands."""

    PASS = 0
    FAIL = 1
    UNUSABLE = 2
    INCONCLUSIVE = 3


EXIT = {
    Outcome.PASS: ExitCode.PASS,
    Outcome.FAIL: ExitCode.FAIL,
    Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}
