"""What an attack measured, against its bound."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One number of one attack."""

    name: str
    """What was measured, with its unit."""
    measured: float
    bound: float
    at_least: bool = False
    """Whether the bound is the least that is wanted, and not the most."""

    @property
    def holds(self) -> bool:
        """Whether the bound holds."""
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound
