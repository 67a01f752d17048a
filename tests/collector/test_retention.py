"""Whole days are dropped once they are old enough, and nothing that must stay goes with them."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from made_generations import generation_of, score_of
from otlp_bodies import received
from sqlalchemy import Engine, event, func, select

from collector import dialects
from collector.content import ContentPolicy, Redactor
from collector.contract import Arm, Content, EngineSample, Generation, SampleKind, encode
from collector.errors import NotFoundError, RequestError
from collector.ingest.preparation import prepare
from collector.store import (
    Batch,
    Keep,
    Store,
    pair_counts,
    progress,
    rollouts,
    rollup_reads,
    scores,
    tables,
    traces,
)
from collector.store.evidence import generations
from collector.store.postgres import partitions
from collector.store.upkeep import retention, rollup_check, sizes

DAY_S = 86_400
FIRST_DAY = 20_000
NOW = (FIRST_DAY + 10) * DAY_S + 1234.5
KEEP_TEXT = ContentPolicy(Redactor(()))
TEXT = Content(input_messages="[]", output_messages="[]")


@pytest.fixture
def ten_days(any_database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Fill a store on each of ten days: pairs within a day, and one that spans two days."""
    with Store.open(any_database_url) as store:
        for day in range(10):
            now = (FIRST_DAY + day) * DAY_S + 60.0
            monkeypatch.setattr(time, "time", lambda now=now: now)
            made = [generation(day, n, now) for n in range(6)]
            spans = prepare(received([encode(one) for one in made]), KEEP_TEXT)
            judged = tuple(map(score_of, made))
            store.write(Batch(spans=spans, scores=judged, samples=(sample(now),)))
            if day == 4:
                store.fold(at_most=100)
                store.count_pairs(at_most=20)
        monkeypatch.undo()
        yield store


def generation(day: int, n: int, now: float) -> Generation:
    """Make one of three pairs a day; the third one's candidate comes a day later."""
    prompt = day if n < 4 else day - (n == 5)
    start = int(now * 1e9) - 5_000_000_000 + n
    return generation_of(
        day * 100 + n + 1,
        arm=list(Arm)[n % 2],
        prompt_id=f"p{prompt}-{n // 2}",
        start_unix_ns=start,
        end_unix_ns=start + 1_000_000_000,
        content=TEXT,
    )


def sample(now: float) -> EngineSample:
    return EngineSample(
        time_unix_ns=int(now * 1e9),
        service_name="s",
        instance=None,
        metric="vllm:x",
        kind=SampleKind.GAUGE,
        value=1.0,
    )


def retain(store: Store, keep: Keep, now: float = NOW) -> int:
    steps = 0
    while store.retain(keep, now):
        steps += 1
    return steps


def test_old_days_go_with_all_that_is_theirs(ten_days: Store) -> None:
    """Spans, texts, generations, scores, keys and samples go; the hours say what they said."""
    with ten_days.read() as connection:
        before = rollouts.summary(connection, "k4")
    assert retain(ten_days, Keep(spans_s=4 * DAY_S)) > 0
    with ten_days.read() as connection:
        rows = sizes.row_counts(connection)
        kept = 4 * 6  # the days 6 to 9
        names = ("span", "span_key", "generation", "score")
        assert {name: rows[name] for name in names} == dict.fromkeys(names, kept)
        assert rows["content"] == 4  # those of a day share a row
        assert rows["engine_sample"] == 4
        assert sizes.days(connection) == [FIRST_DAY + day for day in range(6, 10)]
        assert rollouts.summary(connection, "k4") == before
        assert list(rollup_check.differences(connection)) == []
        with pytest.raises(NotFoundError):
            traces.trace(connection, f"{1:032x}")
        assert len(traces.trace(connection, f"{601:032x}")) == 1
        page = scores.page(connection, "k4", metric=None, limit=100, after=None)
        assert len(page.records) == kept
    assert retain(ten_days, Keep(spans_s=4 * DAY_S)) == 0


def test_pairs_are_corrected_and_not_counted_anew(ten_days: Store) -> None:
    """A pair that lost a side is none any more, whether it was counted before or not."""
    with ten_days.read() as connection:
        last = progress.read(connection, progress.PAIRS)
        assert last > 0
        assert pair_counts.counts(connection) == {"k4": 2 * 10 + 9}
    for held in (9, 6, 5, 1):
        retain(ten_days, Keep(spans_s=held * DAY_S))
        with ten_days.read() as connection:
            assert pair_counts.counts(connection) == {"k4": 2 * held + held - 1}
            assert pair_counts.recount(connection) == pair_counts.counts(connection)
            assert progress.read(connection, progress.PAIRS) == last
    while ten_days.count_pairs(at_most=5):
        pass
    with ten_days.read() as connection:
        assert pair_counts.counts(connection) == {"k4": 2}


def test_text_goes_sooner_and_takes_no_number(ten_days: Store) -> None:
    """Each generation is there as before, without its text."""
    retain(ten_days, Keep(content_s=3 * DAY_S))
    with ten_days.read() as connection:
        wanted = generations.GenerationFilter("k4")
        found = generations.page(connection, wanted, content_of=dialects.content, limit=100).records
        assert len(found) == 60
        assert sum(one.content is not None for one in found) == 3 * 6
        assert list(rollup_check.differences(connection)) == []
    assert retain(ten_days, Keep(content_s=3 * DAY_S)) == 0


def test_what_would_go_is_told_beforehand(ten_days: Store) -> None:
    """The numbers are those of the rows that a run then deletes."""
    keep = Keep(spans_s=4 * DAY_S, content_s=1 * DAY_S)
    ten_days.fold(at_most=1000)
    with ten_days.read() as connection:
        due = retention.due(connection, keep, NOW)
        before = sizes.row_counts(connection)
    assert due == {
        "content": 9,  # of six spans each
        "span": 36,
        "generation": 36,
        "engine_sample": 6,
        "rollup_minute": 12,
    }
    retain(ten_days, keep)
    with ten_days.read() as connection:
        after = sizes.row_counts(connection)
    assert {name: before[name] - after[name] for name in due} == due


def test_a_late_span_of_a_deleted_one_is_a_new_one(ten_days: Store) -> None:
    """Its key went too, so it is stored again, on the day on which it comes."""
    retain(ten_days, Keep(spans_s=4 * DAY_S))
    again = prepare(received([encode(generation_of(1))]))
    assert ten_days.write(Batch(spans=again)) == 1
    assert ten_days.write(Batch(spans=again)) == 0


def test_a_day_stays_as_long_as_it_is_told(ten_days: Store) -> None:
    """A day goes when its last span is older, not when its first one is."""
    end_of_first = (FIRST_DAY + 1) * DAY_S
    with ten_days.read() as connection:
        due = retention.due(connection, Keep(spans_s=DAY_S), end_of_first + DAY_S - 1)
        assert due["span"] == 0
        due = retention.due(connection, Keep(spans_s=DAY_S), end_of_first + DAY_S)
        assert due["span"] == 6


def test_deleting_scans_no_table(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's plan of every statement of a piece names an index or a range of row ids."""
    with Store.open(database_url) as store:
        monkeypatch.setattr(time, "time", lambda: FIRST_DAY * DAY_S + 1.0)
        made = [encode(generation(0, n, time.time())) for n in range(6)]
        store.write(Batch(spans=prepare(received(made)), samples=(sample(time.time()),)))
        store.fold(at_most=100)
        store.count_pairs(at_most=100)
        monkeypatch.undo()
        seen = watch(store.engine)
        assert retain(store, Keep(spans_s=DAY_S, content_s=DAY_S)) > 0
        event.remove(store.engine, "before_cursor_execute", seen[1])
        small = ("progress", "series", "sqlite_master", "anon_", "SUBQUERY", "CONSTANT")
        scans = [
            (sql, line)
            for sql, values in seen[0]
            for line in plan(store.engine, sql, values)
            if line.startswith("SCAN ") and not any(name in line for name in small)
        ]
        # The keys of one piece: its rows are read by their range and looked through once.
        assert [line for _, line in scans if "USING" not in line] == []
        assert any("DELETE FROM span_key" in sql for sql, _ in seen[0])


def watch(engine: Engine) -> tuple[list[tuple[str, Any]], Any]:
    seen: list[tuple[str, Any]] = []

    def before(_c: Any, _cursor: Any, sql: str, values: Any, _context: Any, many: bool) -> None:
        if sql.startswith(("SELECT", "DELETE")):
            seen.append((sql, values[0] if many else values))

    event.listen(engine, "before_cursor_execute", before)
    return seen, before


def plan(engine: Engine, sql: str, values: Any) -> list[str]:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
        return [row.detail for row in rows]


def test_partitions_of_dropped_days_are_gone(ten_days: Store) -> None:
    """On PostgreSQL a dropped day is no table any more; the days that stay are."""
    if ten_days.engine.dialect.name != "postgresql":
        pytest.skip("PostgreSQL alone has partitions")
    retain(ten_days, Keep(spans_s=4 * DAY_S, content_s=2 * DAY_S))
    with ten_days.read() as connection:
        for table, held in ((tables.span, 4), (tables.generation, 4), (tables.content, 2)):
            wanted = [FIRST_DAY + day for day in range(10 - held, 10)]
            found = partitions.days(connection, table.name)
            assert [day for day in found if day <= FIRST_DAY + 10] == wanted
        assert connection.scalar(select(func.count()).select_from(tables.span)) == 24


def test_a_window_among_deleted_minutes_is_of_whole_hours(ten_days: Store) -> None:
    """Only the hours of old days are left, so no window can end between them."""
    retain(ten_days, Keep(spans_s=4 * DAY_S))
    with ten_days.read() as connection:
        kept_from = progress.read(connection, progress.MINUTES_FROM)
        assert kept_from % 3600 == 0
        window = rollup_reads.kept(
            connection, rollup_reads.TimeWindow(kept_from - 5400, kept_from - 60)
        )
        assert window == (kept_from - 7200, kept_from)
        later = rollup_reads.TimeWindow(kept_from + 60, kept_from + 120)
        assert rollup_reads.kept(connection, later, rollup_reads.BucketLength.MINUTE) == later
        with pytest.raises(RequestError, match="were deleted; ask for step=hour"):
            rollup_reads.kept(connection, window, rollup_reads.BucketLength.MINUTE)
