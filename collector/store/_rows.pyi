from typing import Any

import numpy.typing as npt

def pack(rows: list[tuple[Any, ...]], kinds: str, /) -> bytes | None: ...
def pack_named(
    rows: list[dict[str, Any]], names: tuple[str, ...], kinds: str, /
) -> tuple[bytes, tuple[str, ...]] | None: ...
def fill(
    rows: list[dict[str, Any]],
    integer_names: tuple[str, ...],
    number_names: tuple[str, ...],
    integers: npt.NDArray[Any],
    present: npt.NDArray[Any],
    numbers: npt.NDArray[Any],
    /,
) -> bool: ...
def dump_counts(values: tuple[int, ...], /) -> str | None: ...
