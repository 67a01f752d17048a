from typing import Any

import numpy.typing as npt

def fill(
    rows: list[dict[str, Any]],
    integer_names: tuple[str, ...],
    number_names: tuple[str, ...],
    integers: npt.NDArray[Any],
    present: npt.NDArray[Any],
    numbers: npt.NDArray[Any],
    /,
) -> bool: ...
