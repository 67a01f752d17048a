"""Register a rollout's policy, for the commands that send its first request."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from collector.client import Client, ClientError
from collector.contract import Change, Family, RegisteredPolicy, StoredVerdict
from engine_adapter.errors import PolicyRegistrationError


def register(
    client: Client,
    rollout: str,
    policy: str | None,
    change: Change = Change.SPECULATION,
    family: Family | None = None,
) -> RegisteredPolicy:
    """Register a policy, given as a file or a shipped policy's name; return the registered one.

    Without a policy, register the shipped one of the change unless another is already registered.
    For a family, register it for each of its rollouts, and return the last one's.
    Raises `ClientError`, and `PolicyRegistrationError` for an unusable policy.
    """
    # Imported here: `evals` takes a second to import, which `--help` need not wait for.
    from evals import policy as policies  # noqa: PLC0415
    from evals.errors import EvalsError  # noqa: PLC0415
    from evals.policy.registration import (  # noqa: PLC0415
        register_family,
        register_once,
        registration_for,
    )

    try:
        chosen = policies.by_name(policy or policies.shipped_for(change))
    except EvalsError as exc:
        raise PolicyRegistrationError(f"policy: {exc}") from exc
    if family is not None:
        return register_family(client, family, chosen)
    if policy is None:
        return register_once(client, rollout, chosen)
    return client.register_policy(rollout, registration_for(client, rollout, chosen))


def require_usable(policy: str | None) -> None:
    """Raise `PolicyRegistrationError` for an unusable policy."""
    from evals import policy as policies  # noqa: PLC0415
    from evals.errors import EvalsError  # noqa: PLC0415

    try:
        policies.by_name(policy or "default")
    except EvalsError as exc:
        raise PolicyRegistrationError(f"policy: {exc}") from exc


def register_for_run(
    url: str,
    rollout: str,
    policy: str | None,
    change: Change = Change.SPECULATION,
    family: Family | None = None,
) -> str:
    """Register a run's policy; return a sentence about the registration.

    Raises `PolicyRegistrationError` if the given policy, or a family, cannot be registered. If
    neither was given, the run goes on, and the sentence says why nothing is registered.
    """
    try:
        with Client.from_environment(url) as client:
            stored = register(client, rollout, policy, change, family)
    except ClientError as exc:
        if policy is not None or family is not None:
            raise PolicyRegistrationError(f"policy {policy}: cannot be registered: {exc}") from exc
        return f"no policy is registered: {exc}"
    return in_words(stored if family is None else replace(stored, rollout=family.name))


def in_words(stored: RegisteredPolicy) -> str:
    """Return a registration as one line of text."""
    which = f"policy {stored.policy_name} {stored.policy_hash[:12]}"
    if stored.before_first_pair:
        return f"{stored.rollout}: {which} is registered, before the first pair"
    return (
        f"{stored.rollout}: {which} is registered after the first pair was received, so that "
        "verdicts do not count it as registered; a new rollout name begins anew"
    )


def beside(file: Path, policy: str | None) -> str | None:
    """Return a file's `policy` value; a path is resolved relative to that file."""
    if policy is None or not (Path(policy).suffix or (file.parent / policy).is_file()):
        return policy
    return str(file.parent / policy)


def confirmed_elsewhere(url: str) -> Callable[[StoredVerdict], str | None]:
    """Return a function that derives a verdict again and returns why it differs, if it does.

    It runs in a separate process, so that streams of this process do not wait for it.
    """

    def confirm(stored: StoredVerdict) -> str | None:
        asked = [sys.executable, "-m", "evals.rederivation", url, stored.verdict.rollout, stored.id]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
        said = (done.stderr.strip().splitlines() or ["it could not be derived again"])[-1]
        return None if done.returncode == 0 else said

    return confirm


def why_not(client: Client, stored: StoredVerdict, rescore: str | None) -> str | None:
    """Derive a verdict again; return why it cannot be relied on, else `None`."""
    from evals import rederivation  # noqa: PLC0415

    return rederivation.why_not(client, stored, rescore)
