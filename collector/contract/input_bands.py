"""Cohorts derived from a request's length: bands of its number of input tokens."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

_PREFIX: Final = "input_tokens:"


class InputBand(NamedTuple):
    """One band of lengths, in input tokens."""

    first: int
    last: int | None
    """`None`: no upper end."""

    @property
    def name(self) -> str:
        """The derived cohort's name, such as `input_tokens:2000-7999` or `input_tokens:8000+`."""
        return f"{_PREFIX}{self.first}{'+' if self.last is None else f'-{self.last}'}"


class InputBands:
    """Declared bands. Single source of truth for a request's band, for gate, advice and router."""

    UNKNOWN: Final = f"{_PREFIX}unknown"
    """The name of the band of requests whose number of input tokens is not known."""

    def __init__(self, cuts: Sequence[int]) -> None:
        """`cuts` are the first lengths of all bands but the lowest; raises `ValueError`."""
        if not cuts or cuts[0] < 1 or any(b <= a for a, b in pairwise(cuts)):
            raise ValueError(f"wanted growing numbers of input tokens above 0, got {list(cuts)}")
        self.cuts = tuple(cuts)
        self.bands = tuple(
            InputBand(first, None if end is None else end - 1)
            for first, end in pairwise((0, *self.cuts, None))
            if first is not None
        )

    def of(self, tokens: float | None) -> str:
        """Return the name of the band of a request with this many input tokens.

        A fraction, which only estimates have, counts as the whole number below it.
        """
        if tokens is None:
            return self.UNKNOWN
        return self.bands[bisect_right(self.cuts, tokens)].name

    @property
    def names(self) -> tuple[str, ...]:
        """The declared bands' names, from the shortest; without that of unknown lengths."""
        return tuple(band.name for band in self.bands)


def is_input_band(cohort: str | None) -> bool:
    """Return whether a cohort's name is a derived one."""
    return cohort is not None and cohort.startswith(_PREFIX)


def bands_named(cohorts: Iterable[str]) -> InputBands | None:
    """Return the bands among the names of cohorts; `None` if there are none."""
    ends = (name.removeprefix(_PREFIX) for name in cohorts if is_input_band(name))
    firsts = {int(first) for end in ends if (first := end.rstrip("+").split("-")[0]).isdigit()}
    cuts = sorted(firsts - {0})
    return InputBands(cuts) if cuts else None
