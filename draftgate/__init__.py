"""Draftgate's Python interface: read a collector's data and judge rollouts.

    from draftgate import Client, judge, load_policy

    with Client("http://localhost:4318") as client:
        verdict = judge(client, "support-k4", load_policy("policy.yaml"))
    print(verdict.outcome, verdict.summary)

Each name's module is imported on first use, so that `draftgate --help` imports none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.client import Client, ClientError
    from collector.contract import Arm, Generation, Outcome, Verdict
    from evals.bundle import verify
    from evals.errors import EvalsError
    from evals.policy import Policy
    from evals.policy import by_name as load_policy
    from evals.source import judge

__all__ = [
    "Arm",
    "Client",
    "ClientError",
    "EvalsError",
    "Generation",
    "Outcome",
    "Policy",
    "Verdict",
    "judge",
    "load_policy",
    "verify",
]

_FROM = {
    "Arm": ("collector.contract", "Arm"),
    "Client": ("collector.client", "Client"),
    "ClientError": ("collector.client", "ClientError"),
    "EvalsError": ("evals.errors", "EvalsError"),
    "Generation": ("collector.contract", "Generation"),
    "Outcome": ("collector.contract", "Outcome"),
    "Policy": ("evals.policy", "Policy"),
    "Verdict": ("collector.contract", "Verdict"),
    "judge": ("evals.source", "judge"),
    "load_policy": ("evals.policy", "by_name"),
    "verify": ("evals.bundle", "verify"),
}
"""The module of each name, and its name in that module."""


def __getattr__(name: str) -> Any:  # one of `__all__`
    if name not in _FROM:
        raise AttributeError(f"module 'draftgate' has no attribute {name!r}")
    module, attribute = _FROM[name]
    return getattr(import_module(module), attribute)
