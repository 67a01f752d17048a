"""The release policy: what must be proved, by which margins; and its registration."""

from evals.policy.policy import (
    Policy,
    PolicyFile,
    by_name,
    load,
    parse,
    shipped,
    shipped_for,
    shipped_names,
    shipped_text,
    text_by_name,
    text_of,
)

__all__ = [
    "Policy",
    "PolicyFile",
    "by_name",
    "load",
    "parse",
    "shipped",
    "shipped_for",
    "shipped_names",
    "shipped_text",
    "text_by_name",
    "text_of",
]
