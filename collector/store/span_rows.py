"""The rows of spans, and the numbering of spans that share a text frame."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from collector.contract import Score
from collector.store import generation_rows, tables, texts
from collector.store.texts import SHARED, Texts

COLUMNS = tuple(tables.span.c.keys())


class ResourceRow(NamedTuple):
    """A resource row, shared by the spans of one sender."""

    id: int
    attributes: bytes


class SpanRows(NamedTuple):
    """One span's rows, without the id that they will share."""

    span: tuple[Any, ...]  # Any: one value for each of COLUMNS except the id
    resource: ResourceRow
    texts: Texts | None
    """The text frame that this span shares with its neighbours; None if none of them has text."""
    place: int
    """The span's index in the frame."""
    generation: generation_rows.Row | None
    enriches: bool
    """Whether this is an engine span, whose client may send the generation's span too."""
    scores: tuple[Score, ...]
    quality: tuple[str, ...]
    """The generation's quality flags."""

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Trace id and span id."""
        return self.span[:2]


def number(spans: Iterable[SpanRows], first_id: int) -> Iterator[tuple[int, SpanRows]]:
    """Yield each span with its id; ids of spans in one text frame follow from the frame's id.

    Spans of one frame must be adjacent and in order; some may be missing.
    """
    next_id, first, shared = first_id, first_id, None
    for rows in spans:
        if rows.texts is not shared:
            shared = rows.texts
            first = texts.first_of(next_id + SHARED - 1)
        id_ = next_id if shared is None else first + rows.place
        yield id_, rows
        next_id = id_ + 1


def last_id(spans: Iterable[SpanRows], first_id: int) -> int:
    """Return the last id that `number` assigns; `first_id` if there are no spans."""
    return max((id_ for id_, _ in number(spans, first_id)), default=first_id)


def to_rows(numbered: Iterable[tuple[int, SpanRows]]) -> list[tuple[int, bytes]]:
    """Return the rows (id, value) of the `content` table for spans being stored."""
    places: dict[int, list[int]] = {}
    shared: dict[int, Texts] = {}
    for id_, rows in numbered:
        if rows.texts is not None:
            first = id_ - rows.place
            shared[first] = rows.texts
            places.setdefault(first, []).append(rows.place)
    made = ((first, shared_texts.of(places[first])) for first, shared_texts in shared.items())
    return [(first, packed) for first, packed in made if packed is not None]
