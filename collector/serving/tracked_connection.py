"""What a server counts of each of its connections."""

import math


class TrackedConnection:
    """The interface of a connection for `Connections` and `UnfinishedRequests`."""

    def __init__(self) -> None:
        self.peer: tuple[str, int] = ("", 0)
        self.unfinished_bytes = 0
        """Bytes held of incomplete requests."""
        self.paced_s = 0.0
        """When it last received as much as the pace demands, by the loop's clock."""
        self.paced_bytes = 0
        """Bytes received since then."""
        self.resumes_s = 0.0
        """Exports are delayed until this time, by the loop's clock."""

    @property
    def address(self) -> str:
        """The peer's address."""
        return self.peer[0]

    @property
    def waits_for_peer(self) -> bool:
        """Whether the connection waits for the peer to send more."""
        return True

    @property
    def is_idle(self) -> bool:
        """Whether all its requests are answered."""
        return True

    @property
    def deadline_s(self) -> float:
        """The deadline for the peer, by the loop's clock."""
        return math.inf

    def answer_ended(self) -> None:
        """Record that the application has answered a request."""

    def expire(self) -> None:
        """Close the connection, because the peer missed its deadline."""
        self.abort()

    def pause_for_room(self) -> None:
        """Pause reading, because incomplete requests fill the shared room."""

    def resume_for_room(self) -> None:
        """Resume reading."""

    def drain(self) -> None:
        """Take no more requests, and close once those that are begun are answered."""
        if self.is_idle:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        raise NotImplementedError
