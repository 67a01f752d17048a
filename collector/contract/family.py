"""The family of rollouts that several candidates make against one baseline."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Several candidates beside one baseline; each is judged in its own rollout."""

    name: str
    arms: tuple[str, ...]
    """The candidates' names."""
    combined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By candidate that makes two other candidates' changes together: these two."""

    @property
    def rollouts(self) -> tuple[str, ...]:
        """The candidates' rollouts, in the order of `arms`."""
        return tuple(map(self.rollout_of, self.arms))

    def rollout_of(self, arm: str) -> str:
        """Return the name of a candidate's rollout."""
        return f"{self.name}-{arm}"
