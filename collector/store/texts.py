"""Text of spans: up to `SHARED` spans share one compressed frame, in a row of `content`.

A text is a `Span` message with only text attributes. For a few kilobytes, building a Huffman code
takes as long as encoding with it, so spans that arrive together share a frame: they get consecutive
ids, starting at a multiple of `SHARED`, which is the row's id. A span that was stored before and is
not stored again leaves its place in the frame empty.
"""

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from collector.contract import AttributeValue
from collector.protobuf.parts import read_parts
from collector.store import payload
from collector.store.tables import content as c

SHARED: Final = 8
_LENGTHS: Final = struct.Struct(f"<{SHARED}I")
_ROWS_A_QUERY: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The packed texts of up to `SHARED` spans; compared by identity."""

    spans: int
    packed: bytes

    def of(self, places: Sequence[int]) -> bytes | None:
        """Return the row's value with only the texts at these places; None if they are empty."""
        if len(places) == self.spans:
            return self.packed
        texts = split(self.packed)
        return _pack([text if place in places else b"" for place, text in enumerate(texts)])


def pack(spans: Sequence[Sequence[bytes]]) -> Texts | None:
    """Pack the text messages of at most `SHARED` spans; return None if there is no text."""
    packed = _pack([b"".join(messages) for messages in spans])
    return None if packed is None else Texts(len(spans), packed)


def split(packed: bytes) -> list[bytes]:
    """Return the `SHARED` messages in a row's value; a span without text has an empty one."""
    whole = payload.decompress(packed)
    texts: list[bytes] = []
    at = _LENGTHS.size
    for length in _LENGTHS.unpack_from(whole):
        texts.append(whole[at : at + length])
        at += length
    return texts


def read(connection: Connection, ids: Collection[int]) -> dict[int, dict[str, AttributeValue]]:
    """Return the text attributes of the spans with these ids; omit spans without text."""
    wanted = ids if isinstance(ids, dict | set | frozenset) else frozenset(ids)
    rows = sorted(set(map(first_of, wanted)))
    found: dict[int, dict[str, AttributeValue]] = {}
    for at in range(0, len(rows), _ROWS_A_QUERY):
        some = select(c.c.id, c.c.attributes).where(c.c.id.in_(rows[at : at + _ROWS_A_QUERY]))
        for first, packed in connection.execute(some):
            for id_, text in enumerate(split(packed), first):
                if text and id_ in wanted:
                    found[id_] = read_parts(text).attributes
    return found


def first_of(id_: int) -> int:
    """Return the id of the `content` row that contains the text of this span id."""
    return id_ & -SHARED


def _pack(texts: Sequence[bytes]) -> bytes | None:
    if not any(texts):
        return None
    lengths = [*map(len, texts), *[0] * (SHARED - len(texts))]
    return payload.compress(b"".join((_LENGTHS.pack(*lengths), *texts)))
