"""Texts of spans that share a row: each is found by its own span, and by no other."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_generations import generation_of
from otlp_bodies import received
from sqlalchemy import Connection, func, select

from collector.content import DROP, ContentPolicy
from collector.content.redaction import Redactor
from collector.contract import Content, Generation, Span, encode
from collector.dialects import content as content_of
from collector.ingest.preparation import prepare
from collector.protobuf.parts import read_parts
from collector.store import Batch, Store, span_rows, texts, traces
from collector.store.evidence import generations
from collector.store.tables import content, generation, span
from collector.store.texts import SHARED

KEEP = ContentPolicy(Redactor(()))
CONTENT = st.lists(st.binary(max_size=30), min_size=1, max_size=SHARED)


@given(CONTENT, st.data())
def test_a_frame_gives_back_what_it_was_given(spans: list[bytes], data: st.DataObject) -> None:
    """Whole, and with some of its texts left out for good."""
    whole = texts.pack([[message] for message in spans])
    if whole is None:
        assert not any(spans)
        return
    padding = [b""] * (SHARED - len(spans))
    assert texts.split(whole.packed) == [*spans, *padding]
    places = sorted(data.draw(st.sets(st.integers(0, len(spans) - 1))))
    wanted = [text if place in places else b"" for place, text in enumerate(spans)]
    kept = whole.of(places)
    assert (kept and texts.split(kept)) == ([*wanted, *padding] if any(wanted) else None)


@pytest.fixture
def spans() -> list[Span]:
    """Spans with and without text, more than share a row."""
    return [encode(with_text(generation_of(n), n)) for n in range(1, 3 * SHARED)]


def with_text(made: Generation, number: int) -> Generation:
    reference = None if number % 5 == 0 else f"text of {number}"
    return replace(made, content=None if reference is None else Content(reference=reference))


def test_every_span_keeps_its_own_text(any_database_url: str, spans: list[Span]) -> None:
    """However many came together; a few rows hold all of it."""
    batches = [spans[:1], spans[1:4], spans[4:]]
    with Store.open(any_database_url) as store:
        for batch in batches:
            store.write(Batch(spans=prepare(received(batch), KEEP)))
        with store.read() as connection:
            assert_kept(connection, spans)
            assert rows_of(connection) == 5


def test_spans_without_text_take_no_row_and_no_place(
    any_database_url: str, spans: list[Span]
) -> None:
    """Where nothing is captured, ids follow one another."""
    with Store.open(any_database_url) as store:
        for batch in (spans[:3], spans[3:]):
            store.write(Batch(spans=prepare(received(batch), DROP)))
        with store.read() as connection:
            assert rows_of(connection) == 0
            first, last = connection.execute(select(func.min(span.c.id), func.max(span.c.id))).one()
            assert last - first == len(spans) - 1


def test_text_of_a_span_that_is_known_already_is_not_stored_again(
    any_database_url: str, spans: list[Span]
) -> None:
    """Nor that of one which comes twice in a batch; what comes first stays."""
    again = [
        replace(one, attributes={**one.attributes, "draftgate.reference": "2"}) for one in spans
    ]
    batches = [spans[2:5], [*again[:4], spans[8], again[8], *spans[4:]], again]
    with Store.open(any_database_url) as store:
        for batch in batches:
            store.write(Batch(spans=prepare(received(batch), KEEP)))
        with store.read() as connection:
            assert_kept(connection, [*again[:2], *spans[2:]])
            stored = [packed for (packed,) in connection.execute(select(content.c.attributes))]
            held = [text for packed in stored for text in texts.split(packed) if text]
            kept = [one for one in [*again[:2], *spans[2:]] if reference_of(one) is not None]
            assert sorted(map(reference_in, held)) == sorted(map(reference_of, kept))


def test_texts_of_one_batch_are_merged_with_others(
    any_database_url: str, spans: list[Span]
) -> None:
    """Requests that are written together keep their own frames."""
    prepared = [prepare(received(some), KEEP) for some in (spans[:9], spans[9:10], spans[10:])]
    with Store.open(any_database_url) as store:
        store.write(Batch(spans=tuple(rows for some in prepared for rows in some)))
        with store.read() as connection:
            assert_kept(connection, spans)


def test_pages_of_generations_find_their_text(any_database_url: str, spans: list[Span]) -> None:
    """Those of one text each, and no neighbour's."""
    with Store.open(any_database_url) as store:
        store.write(Batch(spans=prepare(received(spans), KEEP)))
        with store.read() as connection:
            g = generation.c
            dialects = {id_: "draftgate" for (id_,) in connection.execute(select(g.id))}
            some = dict(list(dialects.items())[::3])
            found = generations.contents(connection, some, content_of)
            assert found.keys() <= some.keys()
            wanted = {reference_of(one) for one in spans[::3]} - {None}
            assert {text.reference for text in found.values() if text is not None} == wanted


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.booleans()), max_size=6), st.integers(1, 2**40))
def test_ids_tell_the_row(requests: list[tuple[int, bool]], first_id: int) -> None:
    """They grow, to the last that was foretold, and are never those of another frame's row."""
    all_rows: list[Any] = []
    for size, captured in requests:
        shared = [texts.pack([[b"t"]] * SHARED) if captured else None for _ in range(3)]
        all_rows += [FakeRows(shared[n // SHARED], n % SHARED) for n in range(size)]
    ids = [id_ for id_, _ in span_rows.number(all_rows, first_id)]
    assert ids == sorted(set(ids))
    assert span_rows.last_id(all_rows, first_id) == (ids[-1] if ids else first_id)
    assert all(id_ >= first_id for id_ in ids)
    of_row: dict[int, Any] = {}
    for id_, rows in zip(ids, all_rows, strict=True):
        if rows.texts is not None:
            assert id_ - rows.place == texts.first_of(id_) >= first_id
            assert of_row.setdefault(texts.first_of(id_), rows.texts) is rows.texts


class FakeRows:
    """Of a span's rows, what numbering looks at."""

    def __init__(self, shared: texts.Texts | None, place: int) -> None:
        self.texts = shared
        self.place = place


def test_postgresql_does_not_compress_texts_again(
    new_database_url: Callable[[str], str], spans: list[Span]
) -> None:
    """Neither in the table nor in the partition of a day."""
    with Store.open(new_database_url("postgresql")) as store:
        store.write(Batch(spans=prepare(received(spans), KEEP)))
        with store.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT relname, attstorage::text FROM pg_attribute "
                "JOIN pg_class ON oid = attrelid "
                "WHERE attname = 'attributes' AND relname ~ '^content(_day_[0-9]+)?$'"
            )
            kinds = dict(map(tuple, found))
    assert len(kinds) == 2
    assert set(kinds.values()) == {"e"}


def assert_kept(connection: Connection, spans: Sequence[Span]) -> None:
    for one in spans:
        assert traces.trace(connection, one.trace_id) == (one,)


def rows_of(connection: Connection) -> int:
    return connection.scalar(select(func.count()).select_from(content)) or 0


def reference_of(one: Span) -> Any:
    return one.attributes.get("draftgate.reference")


def reference_in(message: bytes) -> Any:
    return read_parts(message).attributes["draftgate.reference"]
