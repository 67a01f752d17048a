"""A pytest fixture that asserts a rollout's verdict."""

from collections.abc import Callable
from typing import Protocol

import pytest

from collector.client import Client
from collector.contract import Outcome, Verdict


class AssertRollout(Protocol):
    """Assert that a rollout passes a policy, and return its verdict."""

    def __call__(
        self, rollout: str, *, policy: str = "default", collector: str, control: str | None = None
    ) -> Verdict:
        """Judge a rollout that `collector` holds, under a policy file or a shipped policy.

        Fails the test unless the verdict is pass, with the verdict's reasons: inconclusive is no
        pass. An unknown rollout or an unusable policy is an error of its own, `EvalsError`.
        `collector` is a URL, of a collector or of a database such as `sqlite:///draftgate.db`.
        """


@pytest.fixture(scope="session")
def assert_rollout() -> AssertRollout:
    """Give a function that fails the test unless a rollout passes a policy."""
    # Imported here: the plugin loads with every pytest run in the environment, numpy need not.
    from evals import policy as policies  # noqa: PLC0415
    from evals.source import judge  # noqa: PLC0415

    def check(
        rollout: str, *, policy: str = "default", collector: str, control: str | None = None
    ) -> Verdict:
        __tracebackhide__ = True
        opener: Callable[[str], Client] = Client if collector.startswith("http") else Client.local
        with opener(collector) as client:
            verdict = judge(client, rollout, policies.named(policy), control=control)
        if verdict.outcome is not Outcome.PASS:
            pytest.fail("\n".join([verdict.summary, *verdict.reasons]), pytrace=False)
        return verdict

    return check
