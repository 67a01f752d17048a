"""A request's sampler: its steps, in the order in which the engine applied them.

Written as `top_k=40 top_p=0.95 min_p=0.05 temperature=0.8`.
"""

from collections.abc import Iterable
from typing import Final

Steps = tuple[tuple[str, float], ...]

_MODELLED: Final = frozenset({"temperature", "top_k", "top_p", "min_p"})


def not_modelled(steps: Steps) -> list[str]:
    """Return the steps that no audit can compute from the model's logits alone, sorted."""
    return sorted({name for name, _ in steps} - _MODELLED)


def write(steps: Iterable[tuple[str, float]]) -> str | None:
    """Return the steps as text; `None` without steps."""
    return " ".join(f"{name}={value:.9g}" for name, value in steps) or None


def read(text: str) -> Steps:
    """Return the steps that `write` wrote; raises `ValueError`."""
    pairs = [step.partition("=") for step in text.split()]
    return tuple((name, float(value)) for name, _, value in pairs)
