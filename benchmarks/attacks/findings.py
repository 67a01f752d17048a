"""A measured effect of an attack, and its bound."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One measured number of an attack."""

    name: str
    """The measured quantity, with its unit."""
    measured: float
    bound: float
    at_least: bool = False
    """Whether the bound is a lower bound."""

    @property
    def holds(self) -> bool:
        """Whether the bound holds."""
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound
