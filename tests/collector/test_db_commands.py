"""`draftgate db`, on both databases."""

import json
import os
import pty
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import command_of, run_to_end
from made_generations import generation_of, pair_side
from otlp_bodies import received
from typer.testing import CliRunner

from collector.contract import encode
from collector.ingest.preparation import prepare
from collector.store import Batch, Store
from collector.store.tables import metadata
from draftgate.commands import app

DAY_S = 86_400


@pytest.fixture
def filled(any_database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Fill a database with two pairs that came three days ago and one of today."""
    real = time.time
    with Store.open(any_database_url) as store:
        for days_ago, numbers in ((3, range(2, 6)), (0, range(6, 8))):
            monkeypatch.setattr(time, "time", lambda ago=days_ago: real() - ago * DAY_S)
            made = [encode(pair_side(n)) for n in numbers]
            store.write(Batch(spans=prepare(received(made))))
        monkeypatch.undo()
    return any_database_url


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    """Run the command in this process, as it runs without a terminal."""
    return CliRunner().invoke(app, arguments, env=env)


def document(url: str) -> dict[str, Any]:
    done = run("db", "stats", "--json", "--database", url)
    assert done.exit_code == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def test_stats_compact_and_check(filled: str) -> None:
    """Rows, sizes, days and pending work; folded and counted; equal to the rows."""
    before = document(filled)
    assert set(before["rows"]) == set(metadata.tables)
    assert (before["rows"]["span"], len(before["days"]), before["pending_deltas"]) == (6, 2, 4)
    assert before["estimated"] == []
    assert before["table_bytes"]["span"] > 0
    assert before["size_bytes"] >= sum(before["table_bytes"].values()) > 0
    shown = run("db", "stats", "--database", filled).stdout
    assert "holds 2 days" in shown
    assert "4 pending rollup deltas" in shown
    done = run("db", "compact", "--database", filled)
    assert done.stdout == "folded 4 rollup deltas; counted the pairs of 6 generations\n"
    assert document(filled)["pending_deltas"] == 0
    done = run("db", "check", "--database", filled)
    assert (done.exit_code, done.stdout) == (0, "rollups and pair counts equal the rows\n")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("DELETE FROM rollup_hour", "only the rows have it"),
        ("UPDATE generation SET ttft_s = 0.51 WHERE id = (SELECT max(id) FROM generation)", "ttft"),
        ("UPDATE pair_count SET pairs = pairs + 1", "the count says 4, the rows say 3"),
        ("DELETE FROM generation WHERE id = (SELECT min(id) FROM generation)", "rollups say 1"),
    ],
)
def test_check_finds_what_differs(filled: str, damage: str, words: str) -> None:
    """Exit code 1, the series and the number named."""
    with Store.open(filled) as store:
        store.fold(at_most=100)
        store.count_pairs(at_most=100)
        with store.transaction() as connection:
            connection.exec_driver_sql(damage)
    done = run("db", "check", "--database", filled)
    assert done.exit_code == 1
    assert words in done.stdout
    assert done.stdout.startswith("rollout 'k4'")


def test_retention_asks_says_and_deletes(filled: str) -> None:
    """A dry run tells; without a terminal only --yes deletes; then the old day is gone."""
    arguments = ("db", "retention", "--spans", "2d", "--database", filled)
    dry = run(*arguments, "--dry-run")
    told = "rows that are too old: 4 of span, 4 of generation\n"
    assert (dry.exit_code, dry.stdout) == (0, told)
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert refused.stderr.endswith("there is no terminal to ask at; pass --yes\n")
    assert document(filled)["rows"]["span"] == 6
    done = run(*arguments, "--yes")
    assert (done.exit_code, done.stdout) == (0, told + "deleted\n")
    after = document(filled)
    assert (after["rows"]["span"], after["rows"]["generation"], len(after["days"])) == (2, 2, 1)
    assert run("db", "check", "--database", filled).exit_code == 0
    assert run("db", "vacuum", "--database", filled).exit_code == 0


def test_retention_asks_on_a_terminal(filled: str) -> None:
    """Anything but yes leaves all as it is."""
    arguments = ("db", "retention", "--spans", "2d", "--database", filled)
    for answer, left in (("n", 6), ("y", 2)):
        terminal, theirs = pty.openpty()
        os.write(terminal, f"{answer}\n".encode())
        done = run_to_end(command_of(*arguments), stdin=theirs)
        os.close(theirs)
        os.close(terminal)
        assert "delete them? [y/N]:" in done.stdout
        assert (done.returncode == 0) == (answer == "y")
        assert document(filled)["rows"]["span"] == left


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        ((), {}, "nothing to delete; give --spans, --content or both"),
        (("--spans", "soon"), {}, "--spans soon: wanted a number with s, m, h, d or w"),
        ((), {"DRAFTGATE_RETENTION_CONTENT": "0d"}, "DRAFTGATE_RETENTION_CONTENT 0d: wanted"),
    ],
)
def test_unusable_durations_are_one_line(
    database_url: str,
    arguments: tuple[str, ...],
    env: dict[str, str],
    words: str,
) -> None:
    """Exit code 2, the option or variable and its value named."""
    done = run("db", "retention", "--database", database_url, *arguments, env=env)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {words}")
    assert done.stderr.count("\n") == 1


def test_vacuum_gives_space_back(database_url: str) -> None:
    """An SQLite file from which all was deleted shrinks."""
    with Store.open(database_url) as store:
        made = [encode(generation_of(n)) for n in range(1, 2000)]
        store.write(Batch(spans=prepare(received(made))))
        with store.transaction() as connection:
            for name in ("span", "generation", "span_key"):
                connection.execute(metadata.tables[name].delete())
    file = Path(database_url.removeprefix("sqlite:///"))
    before = file.stat().st_size
    done = run("db", "vacuum", "--database", database_url)
    assert done.exit_code == 0
    assert file.stat().st_size < before / 2


@pytest.mark.parametrize("name", ["stats", "compact", "check", "vacuum"])
def test_an_empty_database_is_not_made(any_database_url: str, name: str) -> None:
    """Looking after a database that does not exist is an error, and creates none."""
    done = run("db", name, "--database", any_database_url)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "does not exist; name an existing database with --database" in done.stderr
    again = run("db", name, "--database", any_database_url)
    assert again.stderr == done.stderr
