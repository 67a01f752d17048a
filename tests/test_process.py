"""How a `draftgate` process ends: exit codes of crashes, interrupts and closed pipes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from draftgate.extras import missing_extra

DRAFTGATE = [sys.executable, "-m", "draftgate"]


def with_command(folder: Path, body: str) -> dict[str, str]:
    """Return an environment in which `draftgate drill` is a command with that body."""
    (folder / "planted_command.py").write_text(
        f"import typer\napp = typer.Typer()\n@app.command()\ndef drill() -> None:\n    {body}\n"
    )
    (folder / "sitecustomize.py").write_text(
        "from draftgate.commands import COMMANDS\n"
        "COMMANDS['drill'] = ('planted_command', COMMANDS['drill'][1])\n"
    )
    return os.environ | {"PYTHONPATH": f"{folder}:{Path(__file__).parent.parent}"}


def drill(folder: Path, body: str) -> "subprocess.CompletedProcess[str]":
    """Carry out such a command."""
    return subprocess.run(
        [*DRAFTGATE, "drill"],
        env=with_command(folder, body),
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def drilling(folder: Path, body: str) -> Iterator["subprocess.Popen[str]"]:
    """Give the process of such a command, with pipes to read from."""
    with subprocess.Popen(
        [*DRAFTGATE, "drill"],
        env=with_command(folder, body),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def test_a_crash_is_no_failed_gate(tmp_path: Path) -> None:
    """A fault of ours has a code of its own, and the lines that a report needs."""
    done = drill(tmp_path, "[][1]")
    assert done.returncode == 70
    assert "IndexError: list index out of range" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: this is a fault of Draftgate")


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("streamlit.web", "dashboard"),
        ("torch", "transformers"),
        ("cryptography", "sign"),
    ],
)
def test_a_missing_extra_is_one_line(tmp_path: Path, package: str, extra: str) -> None:
    """What to install is said, with the command."""
    hidden = package.partition(".")[0]
    done = drill(tmp_path, f"import sys; sys.modules['{hidden}'] = None; import {package}")
    assert (done.returncode, done.stderr) == (
        2,
        f"error: {hidden} is not installed; pip install 'draftgate[{extra}]'\n",
    )


@pytest.mark.parametrize(
    ("command", "package", "extras"),
    [
        ("serve", "pyarrow", "collector"),
        ("dashboard", "pyarrow", "dashboard"),
        ("demo", "streamlit", "collector,dashboard,transformers"),
        ("serve", "authlib", "oidc"),
        ("export", "pyarrow", "arrow"),
    ],
)
def test_all_extras_of_a_command_are_named_at_once(command: str, package: str, extras: str) -> None:
    """Whatever is missed first, what is named is enough for the command."""
    error = ModuleNotFoundError(name=package)
    assert missing_extra(error, command) == (
        f"{package} is not installed; pip install 'draftgate[{extras}]'"
    )


def test_a_command_without_a_collector_needs_an_extra_or_a_collector() -> None:
    """Either mends it, and both are named."""
    assert missing_extra(ModuleNotFoundError(name="fastapi"), "gate") == (
        "fastapi is not installed; pip install 'draftgate[collector]', "
        "or name a collector that runs elsewhere with --collector"
    )


def test_an_export_from_a_database_names_all_it_needs(tmp_path: Path) -> None:
    """The extra of the database brings PyArrow too, so it is the one that is named."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules['fastapi'] = sys.modules['pyarrow'] = None\n"
    )
    done = subprocess.run(
        [*DRAFTGATE, "export", "support-k4", "--to", str(tmp_path / "support-k4.parquet")],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parent.parent}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: fastapi is not installed; pip install 'draftgate[collector]', "
        "or name a collector that runs elsewhere with --collector\n"
    )


def test_a_missing_module_of_ours_is_a_crash(tmp_path: Path) -> None:
    """Only packages that an extra brings are asked for."""
    assert drill(tmp_path, "import collector.nothing").returncode == 70


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_reader_that_leaves_does_not_change_the_code(tmp_path: Path, code: int) -> None:
    """`draftgate gate k4 | head -1` ends with the verdict's code, and quietly."""
    body = f"[print('x' * 80) for _ in range(100_000)]; raise typer.Exit({code})"
    with drilling(tmp_path, body) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == code


def test_nobody_reads_from_the_beginning(tmp_path: Path) -> None:
    """Nor does a reader that never was."""
    reader, writer = os.pipe()
    os.close(reader)
    env = with_command(tmp_path, "print('PASS'); raise typer.Exit(3)")
    done = subprocess.run([*DRAFTGATE, "drill"], env=env, stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 3


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """Output that cannot be written is neither a verdict nor a crash."""
    env = with_command(tmp_path, "print('PASS')")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*DRAFTGATE, "drill"], env=env, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr.decode()) == (
        2,
        "error: standard output cannot be written: No space left on device\n",
    )


def test_ctrl_c_is_130(tmp_path: Path) -> None:
    """As a shell has it, and not 1, which is a failed gate.

    It sleeps in short naps: Python notices a signal that comes just before a sleep after the sleep.
    """
    naps = "[time.sleep(0.01) for _ in range(6_000)]"
    body = f"import time; print('waiting', flush=True); {naps}"
    with drilling(tmp_path, body) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130


def test_the_version_is_said() -> None:
    """`--version` names the installed distribution's."""
    done = subprocess.run([*DRAFTGATE, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("draftgate 0.")
