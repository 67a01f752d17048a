"""Protobuf written byte by byte, as no library would write it."""


def field(number: int, value: bytes) -> bytes:
    """Return a length-delimited field; its number is below 16."""
    size, length = len(value), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value
