"""Texts of spans share a row, up to eight of them."""

import struct
from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op
from backports import zstd

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_MARK = b"\x01"
_LENGTHS = struct.Struct("<8I")
_ROWS = 500

_content = sa.table(
    "content", sa.column("id", sa.BigInteger), sa.column("attributes", sa.LargeBinary)
)


def upgrade() -> None:
    """Rows of before stay as they are, and are read as they are: each has one span's text."""
    _set_storage("EXTERNAL")  # they are compressed already


def downgrade() -> None:
    """Give each span's text a row again."""
    connection = op.get_bind()
    c = _content.c
    last = -1
    while rows := connection.execute(
        sa.select(c.id, c.attributes).where(c.id > last).order_by(c.id).limit(_ROWS)
    ).all():
        shared = [row for row in rows if row.attributes.startswith(_MARK)]
        if shared:
            ids = [row.id for row in shared]
            connection.execute(sa.delete(_content).where(c.id.in_(ids)))
            singles = [single for row in shared for single in _singles(row.id, row.attributes)]
            connection.execute(sa.insert(_content), singles)
        last = rows[-1].id
    _set_storage("EXTENDED")


def _singles(first: int, packed: bytes) -> Iterator[dict[str, object]]:
    whole = zstd.decompress(packed[len(_MARK) :])
    at = _LENGTHS.size
    for id_, length in enumerate(_LENGTHS.unpack_from(whole), first):
        if length:
            yield {"id": id_, "attributes": zstd.compress(whole[at : at + length], 1)}
        at += length


def _set_storage(kind: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE content ALTER COLUMN attributes SET STORAGE {kind}")
