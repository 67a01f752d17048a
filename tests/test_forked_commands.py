"""Commands that tests fork off a prepared process are the processes that they asked for."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil

DRAFTGATE = [sys.executable, "-m", "draftgate"]


def test_a_forked_command_says_what_a_new_process_says(tmp_path: Path) -> None:
    """Same exit code, output and errors; arguments, environment and folder are its own."""
    (tmp_path / "routes.yaml").write_text("mode: sideways")
    for arguments in (
        ["--help"],
        ["route", "routes.yaml", "--check"],
        ["db", "stats"],
        ["nothing"],
    ):
        # An option of the interpreter is nothing that a fork has.
        forked, afresh = (
            subprocess.run(
                [sys.executable, *options, "-m", "draftgate", *arguments],
                env=os.environ | {"DRAFTGATE_DATABASE_URL": "sqlite:///none.db"},
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            for options in ([], ["-X", "utf8"])
        )
        assert forked.returncode == afresh.returncode
        assert (forked.stdout, forked.stderr) == (afresh.stdout, afresh.stderr)


def test_a_forked_command_is_a_child_that_a_signal_ends(tmp_path: Path) -> None:
    """It serves, is a process of its own, and its exit code tells of SIGTERM and of SIGKILL."""
    serve = [*DRAFTGATE, "serve", "--port", "0", "--no-grpc", "--database"]
    for sent, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -9)):
        with subprocess.Popen(
            [*serve, f"sqlite:///{tmp_path / 'd.db'}"], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert re.match("OTLP over HTTP at ", process.stdout.readline())
            assert psutil.Process(process.pid).ppid() == os.getpid()
            process.send_signal(sent)
            assert process.wait(60) == code
