"""Protobuf's fields, told by hand where no message is to be made of them."""

_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}


def varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number, and where what follows begins; −1 and beyond the end if there is none."""
    value = shift = 0
    while at < end and shift < 64:
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    return -1, end + 1


def value_at(body: bytes, at: int, end: int, wire: int) -> tuple[int, int]:
    """Return how long the value behind a tag of this wire type is, and where it begins.

    A number is passed over: of length 0, it begins where what follows does. Below 0 where it is
    none.
    """
    if wire == _VARINT:
        return 0, varint(body, at, end)[1]
    if wire == _LENGTH:
        return varint(body, at, end)
    return _FIXED.get(wire, -1), at
