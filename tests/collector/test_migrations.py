"""A database of the first schema, brought to the newest one and back, on both databases."""

import contextlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from made_verdicts import made_verdict

from collector.contract import (
    Arm,
    AttributeValue,
    Content,
    Generation,
    Score,
    Span,
    StoredVerdict,
    encode,
    flatten,
    to_document,
    usable_counts,
)
from collector.contract.span_json import dump_attributes
from collector.dialects import is_text
from collector.store import (
    Store,
    generation_rows,
    generations,
    migrate,
    pair_counts,
    postgres,
    rollouts,
    scores,
    sizes,
    sqlite_file,
    traces,
    verdicts,
)
from collector.store.rollups import check
from collector.store.tables import metadata
from collector.store.verdicts import verdict_id

GenerationOf = Callable[..., Generation]
TEXT = Content(input_messages="[]", output_messages="[1]", context=("a", "b"), reference="☃")


@pytest.fixture
def stored(generation_of: GenerationOf) -> tuple[Generation, ...]:
    """Make generations of two rollouts: with and without text, cohort, pair, success and dims."""
    made = []
    for n in range(1, 1203):  # more than are copied at once
        fields: dict[str, Any] = {
            "arm": list(Arm)[n % 2],
            "prompt_id": f"p{n // 2}",
            "rollout": "k4" if n % 3 else "k2",
            "cohort": ("chat", "code", None)[n % 5 % 3],
            "start_unix_ns": 1_700_000_000_000_000_000 + n * 7_000_000_000,
            "end_unix_ns": 1_700_000_001_000_000_000 + n * 7_011_000_000,
            "ttft_s": 0.01 * (n % 17),
        }
        if n % 7 == 0:
            fields |= {"error_type": "timeout", "finish_reasons": None}
        if n % 11 == 0:
            fields |= {"content": TEXT, "dims": {}, "speculation": None}
        made.append(generation_of(n, **fields))
    return (*made, generation_of(5000, rollout=None, arm=None, quality=("rollout_without_arm",)))


@pytest.fixture
def verdict() -> StoredVerdict:
    """Make a verdict without findings."""
    made = made_verdict(summary="too few pairs ☃", versions={"draftgate": "0.1.0"})
    return StoredVerdict(id=verdict_id(made), posted_unix_ns=17, verdict=made)


def test_an_old_database_reads_the_same_afterwards(
    any_database_url: str,
    stored: tuple[Generation, ...],
    odd_span: Span,
    verdict: StoredVerdict,
) -> None:
    """Every span, generation, text, score and verdict is there; rollups and pairs equal the rows.

    Then down to the first schema and up again: nothing is lost on the way but what it cannot hold.
    """
    judged = tuple(score_of(generation) for generation in stored[:20])
    spans = (*(as_stored(generation) for generation in stored), odd_span)
    make_old(any_database_url, stored, odd_span, (*judged, verdict))
    with contextlib.closing(Store.open(any_database_url)) as store:
        verify(store, spans, stored, (*judged, verdict))
        with writing(store.engine) as connection:
            command.downgrade(migrate.configuration(connection), "0001")
            assert count(connection, "span") == len(spans)
            assert count(connection, "generation") == len(stored)
            assert count(connection, "content") == sum(g.content is not None for g in stored)
            assert "span_key" not in sa.inspect(connection).get_table_names()
    with contextlib.closing(Store.open(any_database_url)) as store:
        verify(store, spans, stored, (*judged, verdict))


def test_the_migrated_schema_is_the_one_in_the_code(any_database_url: str) -> None:
    """Alembic finds nothing to change but what is PostgreSQL's alone."""
    with contextlib.closing(Store.open(any_database_url)) as store, store.read() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_common})
        assert compare_metadata(context, metadata) == []


def test_a_database_goes_all_the_way_down(
    any_database_url: str, stored: tuple[Generation, ...], odd_span: Span
) -> None:
    """The last downgrade leaves no table behind, and an upgrade begins anew."""
    make_old(any_database_url, stored[:3], odd_span, ())
    with contextlib.closing(Store.open(any_database_url)) as store:
        for step, revision in ((command.downgrade, "base"), (command.upgrade, "head")):
            with writing(store.engine) as connection:
                step(migrate.configuration(connection), revision)
                if revision == "base":
                    assert sa.inspect(connection).get_table_names() == ["alembic_version"]
        with store.read() as connection:
            assert set(sizes.row_counts(connection).values()) == {0}


def is_common(item: Any, name: str | None, kind: str, _reflected: bool, _to: Any) -> bool:
    """Leave out partitions, their indexes, and the BRIN index of the keys."""
    table = item.name if kind == "table" else item.table.name
    return "_day_" not in table and name != "ix_span_key_id"


def verify(
    store: Store,
    spans: Sequence[Span],
    stored: Sequence[Generation],
    said: Sequence[Score | StoredVerdict],
) -> None:
    with store.read() as connection:
        for span in spans:
            assert traces.trace(connection, span.trace_id) == (span,)
        for rollout in ("k4", "k2"):
            wanted = generations.Filter(rollout)
            page = generations.page(connection, wanted, content=True, limit=5000, after=0)
            assert page.generations == tuple(g for g in stored if g.rollout == rollout)
        assert list(check.differences(connection)) == []
        assert sum(o.pairs for o in rollouts.overviews(connection)) == pairs_of(stored)
        assert sum(pair_counts.counts(connection).values()) == pairs_of(stored)
        assert verdicts.newest(connection, None, limit=9) == (said[-1],)
        found = scores.page(connection, "k4", metric=None, limit=1000, after=None).scores
        of_k4 = {g.trace_id for g in stored if g.rollout == "k4"}
        assert found == tuple(
            score for score in said if isinstance(score, Score) and score.trace_id in of_k4
        )


def pairs_of(stored: Sequence[Generation]) -> int:
    arms: dict[Any, set[Any]] = {}
    for g in stored:
        if g.rollout and g.arm and g.prompt_id:
            arms.setdefault((g.rollout, g.prompt_id, g.repeat), set()).add(g.arm)
    return sum(len(both) == 2 for both in arms.values())


def score_of(generation: Generation) -> Score:
    return Score(
        trace_id=generation.trace_id,
        span_id=generation.span_id,
        metric="m",
        evaluator="e",
        version="1",
        value=0.5,
    )


def as_stored(generation: Generation) -> Span:
    return encode(replace(generation, quality=()))


def make_old(
    url: str,
    stored: Sequence[Generation],
    odd_span: Span,
    said: Sequence[Score | StoredVerdict],
) -> None:
    """Make a database of the first schema and fill it as its own version did."""
    engine = engine_of(url)
    with writing(engine) as connection:
        command.upgrade(migrate.configuration(connection), "0001")
        old = sa.MetaData()
        old.reflect(connection)
        for id_, generation in enumerate(stored, 1):
            add_span(connection, old.tables, id_, as_stored(generation))
            row = old_generation(generation) | {"id": id_}
            connection.execute(sa.insert(old.tables["generation"]), row)
        add_span(connection, old.tables, len(stored) + 1, odd_span)
        for revision, one in enumerate(said, 1):
            if isinstance(one, StoredVerdict):
                row = {"id": one.id, "rollout": one.verdict.rollout, "posted_unix_ns": 17}
                row["document"] = json.dumps(to_document(one.verdict), ensure_ascii=False)
                connection.execute(sa.insert(old.tables["verdict"]), row)
            else:
                ids = {name: bytes.fromhex(getattr(one, name)) for name in ("trace_id", "span_id")}
                fields = {k: v for k, v in to_document(one).items() if v is not None}
                row = fields | ids | {"revision": revision}
                connection.execute(sa.insert(old.tables["score"]), row)
    engine.dispose()


def add_span(
    connection: sa.Connection, tables: Mapping[str, sa.Table], id_: int, span: Span
) -> None:
    text = {k: v for k, v in span.attributes.items() if is_text(k)}
    rest = {k: v for k, v in span.attributes.items() if k not in text}
    row = {
        "id": id_,
        "trace_id": bytes.fromhex(span.trace_id),
        "span_id": bytes.fromhex(span.span_id),
        "parent_span_id": bytes.fromhex(span.parent_span_id) if span.parent_span_id else None,
        "name": span.name,
        "kind": span.kind,
        "start_unix_ns": span.start_unix_ns,
        "end_unix_ns": span.end_unix_ns,
        "status": span.status.value,
        "status_message": span.status_message,
        "scope_name": span.scope_name,
    }
    connection.execute(sa.insert(tables["span"]), row)
    payload = {"id": id_, "attributes": packed(rest), "resource": packed(span.resource)}
    connection.execute(sa.insert(tables["span_payload"]), payload)
    if text:
        connection.execute(sa.insert(tables["content"]), {"id": id_, "attributes": packed(text)})


def packed(attributes: Mapping[str, AttributeValue]) -> bytes:
    return zlib.compress(dump_attributes(attributes), 1)


def old_generation(generation: Generation) -> dict[str, Any]:
    fields = flatten(generation)
    row: dict[str, Any] = {"dims": "{}", "quality": "[]", "dialect": "draftgate"}
    for name, value in fields.items():
        row[name] = value
        if name in generation_rows.LISTS or name == "dims":
            row[name] = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        elif name in ("trace_id", "span_id"):
            row[name] = bytes.fromhex(value)
    row["counts_usable"] = usable_counts(fields)
    return row


def engine_of(url: str) -> sa.Engine:
    made = sa.make_url(url)
    if made.drivername == "sqlite":
        return sqlite_file.create(made, busy_timeout_s=5)
    return postgres.create(made.set(drivername="postgresql+psycopg"), busy_timeout_s=5)


@contextlib.contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


def count(connection: sa.Connection, table: str) -> int:
    found = connection.scalar(sa.text(f"SELECT count(*) FROM {table}"))  # noqa: S608  # our names
    assert isinstance(found, int)
    return found
