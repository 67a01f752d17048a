"""A pytest fixture that asserts a rollout's verdict."""

from collections.abc import Callable
from typing import Protocol

import pytest

from collector.client import Client
from collector.contract import Outcome, Verdict


class AssertRollout(Protocol):
    """Asserts that a rollout passes a policy, and returns its verdict."""

    def __call__(
        self, rollout: str, *, policy: str = "default", collector: str, control: str | None = None
    ) -> Verdict:
        """Judge a rollout under a policy file or a shipped policy.

        Fails the test, with the verdict's reasons, unless the verdict is pass; inconclusive fails
        too. Raises `EvalsError` for an unknown rollout or an unusable policy. `collector` is the
        URL of a collector, or of a database such as `sqlite:///draftgate.db`.
        """


@pytest.fixture(scope="session")
def assert_rollout() -> AssertRollout:
    """Return a function that fails the test unless a rollout passes a policy."""
    # Imported here: every pytest run in the environment loads this plugin, and must not load numpy.
    from evals import policy as policies  # noqa: PLC0415
    from evals.source import judge  # noqa: PLC0415

    def check(
        rollout: str, *, policy: str = "default", collector: str, control: str | None = None
    ) -> Verdict:
        __tracebackhide__ = True
        opener: Callable[[str], Client] = Client if collector.startswith("http") else Client.local
        with opener(collector) as client:
            verdict = judge(client, rollout, policies.by_name(policy), control=control)
        if verdict.outcome is not Outcome.PASS:
            pytest.fail("\n".join([verdict.summary, *verdict.reasons]), pytrace=False)
        return verdict

    return check
