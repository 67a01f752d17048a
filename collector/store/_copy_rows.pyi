from typing import Any

def pack(
    rows: list[tuple[Any, ...]] | list[dict[str, Any]], names: tuple[str, ...], kinds: str, /
) -> bytes | None: ...
