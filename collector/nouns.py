"""Counts with their nouns, for messages."""


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, such as `1 pair`, `2 launches` and `1,465 pairs`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
