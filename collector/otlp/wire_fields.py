"""Parsing of protobuf fields by hand, without building messages."""

_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}


def varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a varint and the offset after it; −1 and an offset beyond the end if malformed."""
    value = shift = 0
    while at < end and shift < 64:
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    return -1, end + 1


def value_at(body: bytes, at: int, end: int, wire: int) -> tuple[int, int]:
    """Return the length and offset of the value after a tag with this wire type.

    A varint is skipped: its length is 0, and its offset is that after it. The length is negative if
    the value is malformed.
    """
    if wire == _VARINT:
        return 0, varint(body, at, end)[1]
    if wire == _LENGTH:
        return varint(body, at, end)
    return _FIXED.get(wire, -1), at
