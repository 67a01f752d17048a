"""The capacity model: its figures stand where it says, and unknown ones stay absent."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import capacity
from benchmarks.load.spans import Spans

ROOT = Path(__file__).parents[1]


def needs(*arguments: str) -> list[capacity.Need]:
    return list(capacity.rows(capacity.parsed(list(arguments))))


def test_every_figure_of_a_backend_is_in_the_measurements() -> None:
    """A figure that is measured again is changed in both places."""
    page = (ROOT / "docs" / "measurements.md").read_text()
    for backend in capacity.backends(capacity.parsed([])):
        for one in (backend.collector_us, backend.database_us, backend.bytes_a_span):
            assert f"{one.value:,.0f}" in page, f"{backend.name}: {one}"
        assert backend.spans_per_s is not None
        assert f"{backend.spans_per_s.value:,.0f}" in page
    evaluators = (ROOT / "docs" / "evaluators.md").read_text()
    assert f"{capacity.parsed([]).evaluator_ms:g} ms of CPU" in evaluators


def test_the_measured_span_is_as_long_as_the_benchmarks() -> None:
    """And the text that `--tokens` stands for is the rest of it."""
    (body,) = Spans(1, first_start_unix_ns=10**18).bodies(512, 1)
    assert len(body.content) / 512 == pytest.approx(capacity._MEASURED_SPAN_BYTES, rel=0.05)


def test_needs_grow_with_the_rate_the_size_and_the_retention() -> None:
    """In proportion."""
    base = needs("--requests-per-s", "1000")[1]
    for arguments, factor in (
        (("--requests-per-s", "2000"), 2.0),
        (("--requests-per-s", "1000", "--mirrored", "0.4"), 4.0),
    ):
        more = needs(*arguments)[1]
        assert more.collector_cores == pytest.approx(base.collector_cores * factor)
        assert more.disk_gb == pytest.approx(base.disk_gb * factor)
        assert more.usd_a_month == pytest.approx(base.usd_a_month * factor)
    longer = needs("--requests-per-s", "1000", "--retention-days", "60")[1]
    assert longer.disk_gb == pytest.approx(base.disk_gb * 2)
    assert longer.collector_cores == base.collector_cores
    wide = needs("--requests-per-s", "1000", "--span-bytes", "6784")[1]
    narrow = needs("--requests-per-s", "1000", "--span-bytes", "3392")[1]
    assert wide.database_cores == pytest.approx(2 * narrow.database_cores)


def test_one_row_by_hand() -> None:
    """1,000 requests/s, a tenth mirrored: 200 spans/s of 29 and 16 µs, 3,806 bytes each."""
    row = needs("--requests-per-s", "1000", "--span-bytes", "3392")[1]
    assert row.backend == "PostgreSQL"
    assert row.spans_per_s == 200
    assert row.collector_cores == pytest.approx(200 * 29e-6 / 0.5)
    assert row.database_cores == pytest.approx(200 * 16e-6 / 0.5 * 2)
    assert row.evaluator_cores == pytest.approx(200 * 6.4e-3 / 0.5)
    assert row.disk_gb == pytest.approx(200 * 86_400 * 30 * 3_806 / 1e9 * 2 / 0.7)
    assert row.databases == 1
    cores = row.collector_cores + row.database_cores + row.evaluator_cores
    assert row.usd_a_month == pytest.approx(cores * 720 * 0.04 + row.disk_gb * 0.10)


def test_what_is_not_known_is_absent() -> None:
    """No row for a backend without figures, no price where none is given."""
    assert {one.backend for one in needs()} == {"SQLite", "PostgreSQL"}
    assert {one.mirrored_usd_a_month for one in needs()} == {None}
    given = needs("--clickhouse-cpu-us", "60", "--clickhouse-bytes", "900")
    (largest,) = [o for o in given if o.backend == "ClickHouse" and o.requests_per_s == 1e6]
    assert largest.databases is None


def test_the_command_ends_with_one_document() -> None:
    """With every assumption and its source."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.capacity"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    text, _, document = done.stdout.partition("\n{")
    found = json.loads("{" + document)
    assert text.count("\n") == 13
    assert max(one["requests_per_s"] for one in found["needs"]) == 1e6
    assert all(one["source"] for one in found["assumptions"]["shared"].values())
