"""A notification: an event of a rollout, such as a verdict, sent to webhooks."""

from dataclasses import dataclass
from enum import StrEnum


class NotificationType(StrEnum):
    """The kind of a notification."""

    VERDICT_CHANGED = "verdict.changed"
    """The gate's newest verdict, or a failing one of a watch, has another outcome than the one
    before it under the same policy; or it is the first."""
    WATCH_DECIDED = "watch.decided"
    """A watch reached pass or fail."""
    SWITCH_TURNED = "switch.turned"
    """The switch is set to another state than before, or for the first time."""
    ACCEPTANCE_DRIFTED = "acceptance.drifted"
    """A watch found that acceptance fell in a cohort."""
    EVIDENCE_STOPPED = "evidence.stopped"
    """A served rollout's candidate is no longer heard of, or is again."""
    TEST = "test"
    """Sent by `draftgate notify test` alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One change of a rollout's state."""

    id: str
    """The same whenever it is sent again."""
    type: NotificationType
    rollout: str
    time_unix_ns: int
    before: str | None
    """The state before; None: there was none."""
    after: str
    """`pass`, `fail` or `inconclusive`; of a switch `on` or `off`; of acceptance `fell`, or
    `reset` once it is watched anew; of evidence `stopped`, `flowing` or `not served`."""
    summary: str
    """The verdict in one sentence; of a switch the reason that was given."""
    who: str | None = None
    """Name of the API key that did it; `local` if no key was needed."""
    verdict: str | None = None
    """Id of the verdict."""
    cohort: str | None = None
    """Of acceptance, the cohort; None: requests without one."""
    policy_name: str | None = None
    policy_hash: str | None = None
