"""The `draftgate` command finds its sub-commands without importing those that are not called."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from draftgate import commands
from draftgate.commands import COMMANDS

HEAVY = "('numpy', 'scipy', 'sqlalchemy', 'fastapi', 'streamlit', 'aiohttp', 'pyarrow', 'torch')"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says(name: str) -> None:
    """A line of the list is the first line of the command's own help."""
    assert COMMANDS[name][1] == commands.load(name).help.split("\n")[0]


def test_help_has_no_line_ends_of_its_source() -> None:
    """A paragraph of a command's help fills the terminal's width; examples have their own lines."""
    shown = CliRunner().invoke(commands.app, ["run", "--help"], env={"COLUMNS": "300"}).stdout
    assert "as `load.history` and `load.think_s` say. If Ctrl-C" in shown
    assert "\n Example: draftgate run rollout.yaml --until-decided" in shown


def imported_by(*arguments: str) -> set[str]:
    """Return the large packages that a call of the command imports."""
    code = (
        "import sys; from draftgate.commands import app\n"
        f"try: app({list(arguments)})\n"
        f"finally: print(*(m for m in {HEAVY} if m in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_help_imports_no_package() -> None:
    """The list of commands needs none of what the commands need."""
    assert imported_by("--help") == set()


def test_a_command_imports_its_own_package() -> None:
    """Setting a switch in an emergency waits for no statistics, no store and no dashboard."""
    assert imported_by("switch", "--help") & {"scipy", "sqlalchemy", "streamlit", "torch"} == set()
    assert imported_by("verify", "--help") & {"streamlit", "fastapi", "torch"} == set()


def test_every_command_is_listed_with_its_line() -> None:
    """`--help` names each command once."""
    shown = CliRunner().invoke(commands.app, ["--help"], env={"COLUMNS": "200"}).stdout
    for name, (_, line) in COMMANDS.items():
        assert f"│ {name} " in shown
        assert line in shown


def test_a_mistyped_command_is_corrected() -> None:
    """The nearest command is named, also within a group."""
    done = CliRunner().invoke(commands.app, ["swich"])
    assert done.exit_code == 2
    assert "Did you mean 'switch'" in done.output
