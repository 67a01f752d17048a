"""`draftgate serve` and `draftgate db`, as processes."""

import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import command_of, run_to_end
from made_generations import generation_of
from otlp_bodies import body_of

from collector.client import Client
from collector.contract import encode
from collector.store.tables import metadata

ANYWHERE = "0.0.0.0"  # noqa: S104  # what the warning is about


def test_serve_says_where_it_listens_and_stops_on_sigterm(
    serve: Callable[..., Any], database_url: str
) -> None:
    """The address is printed once requests are answered; SIGTERM ends it with exit code 0."""
    server = serve(database_url)
    with Client(server.url) as client:
        assert client.health() is True
    assert server.stop() == 0


def test_a_port_in_use_is_one_line_and_no_database(database_url: str) -> None:
    """Exit code 2, and not even an empty file is left behind."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = run_to_end(
            command_of("serve", "--database", database_url, "--port", port, "--no-grpc")
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "stop what runs there, or pass another --port\n"
    )
    assert not Path(database_url.removeprefix("sqlite:///")).exists()


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    """Exit code 2, the file named and unchanged."""
    file = tmp_path / "notes.txt"
    file.write_text("remember the milk\n")
    done = run_to_end(command_of("serve", "--database", f"sqlite:///{file}", "--port", "0"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {file}: is no SQLite database (it begins with b'remember the mil'); "
        "name another file, or move this one away\n"
    )
    assert file.read_text() == "remember the milk\n"


@pytest.mark.parametrize(
    ("options", "env", "words"),
    [
        (
            ["--port", "0", "--no-grpc", "--database", "mysql://x"],
            {},
            "mysql://…: is not a supported kind of database",
        ),
        (["--host", "no.such.host.invalid"], {}, "--host no.such.host.invalid: "),
        ([], {"DRAFTGATE_PORT": "many"}, "DRAFTGATE_PORT='many': wanted a whole number"),
    ],
)
def test_an_unusable_option_is_one_line(
    options: list[str], env: dict[str, str], words: str, tmp_path: Path
) -> None:
    """Exit code 2, the option or variable and its value named."""
    done = run_to_end(command_of("serve", *options), env=env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {words}")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_listening_beyond_this_machine_needs_keys(database_url: str) -> None:
    """Without a valid key nobody could be let in, so that is refused, with what to do."""
    at = ("--database", database_url, "--port", "0", "--host", ANYWHERE)
    done = run_to_end(command_of("serve", *at))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: --host {ANYWHERE}: requests need an API key, and the database holds none that is "
        "valid; create one with `draftgate keys create NAME --scope ingest --scope read`, "
        "or pass --no-keys to let in whoever can reach the port\n"
    )
    both = run_to_end(command_of("serve", *at, "--no-keys", "--require-keys"))
    assert both.returncode == 2
    assert both.stderr == (
        "error: --no-keys: keys are required too, by --require-keys or DRAFTGATE_REQUIRE_KEYS; "
        "give one of the two\n"
    )


def test_listening_beyond_this_machine_without_keys_is_warned_of(database_url: str) -> None:
    """The risk is taken knowingly, and named."""
    at = ("--database", database_url, "--port", "0", "--host", ANYWHERE, "--no-keys")
    process = subprocess.Popen(
        command_of("serve", *at, "--no-grpc"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f"OTLP over HTTP at http://{ANYWHERE}:")
    assert [process.stdout.readline() for _ in range(3)][1:] == [
        "Keys: not required\n",
        "Prompts and answers: dropped; only numbers are kept\n",
    ]
    process.terminate()
    _, errors = process.communicate()
    assert errors.endswith(
        f" warning collector.cli.serve: listening on {ANYWHERE}, and requests carry no key: "
        "whoever can reach this port can read and write everything stored\n"
    )
    assert process.returncode == 0


def test_db_upgrade_creates_and_stats_counts(database_url: str) -> None:
    """The environment names the database as well as the option does."""
    done = run_to_end(command_of("db", "upgrade", "--database", database_url))
    assert (done.returncode, done.stdout) == (0, f"{database_url} is at the newest schema\n")
    with Client.local(database_url) as client:
        client.post_traces(body_of([encode(generation_of(1))]))
    environment = {"DRAFTGATE_DATABASE_URL": database_url}
    counted = json.loads(run_to_end(command_of("db", "stats", "--json"), env=environment).stdout)
    filled = ("generation", "resource", "rollup_delta", "secret", "series", "span", "span_key")
    assert counted["rows"] == dict.fromkeys(metadata.tables, 0) | dict.fromkeys(filled, 1)
    assert counted["size_bytes"] > 0
    shown = run_to_end(command_of("db", "stats"), env=environment)
    assert shown.returncode == 0
    assert "generation" in shown.stdout


def test_stats_of_nothing_creates_nothing(database_url: str) -> None:
    """Counting a database that does not exist is an error, not an empty database."""
    file = Path(database_url.removeprefix("sqlite:///"))
    done = run_to_end(command_of("db", "stats", "--database", database_url))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {file}: does not exist; name an existing database with --database, "
        "or create one with `draftgate db upgrade`\n"
    )
    assert not file.exists()
