"""Rounds of SIGKILL under load, on one database that grows."""

from pathlib import Path

import pytest
from postgres_cluster import Postgres

from benchmarks.kill import Rounds, rollups_equal_rows

ROUNDS = 20


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sqlite_keeps_what_was_acknowledged_once(tmp_path: Path) -> None:
    """Killed at random moments, nothing acknowledged is lost, halved, or doubled by retries."""
    done = list(Rounds(tmp_path, seed=20261121, check=rollups_equal_rows).run(ROUNDS))
    assert len(done) == ROUNDS
    assert sum(round_.attempted > round_.acknowledged > 0 for round_ in done) > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_postgresql_keeps_what_was_acknowledged_once(tmp_path: Path, postgres: Postgres) -> None:
    """The same, and the collector comes back by itself when its database was killed."""
    done = list(
        Rounds(tmp_path, postgres=postgres, seed=20261121, check=rollups_equal_rows).run(ROUNDS)
    )
    assert [round_.killed for round_ in done].count("postgresql and collector") == ROUNDS // 4
    assert sum(round_.attempted > round_.acknowledged > 0 for round_ in done) > 0
