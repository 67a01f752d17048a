"""Keep one comment on a request: find it again by its marker, update it, never add a second."""

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from evals.errors import CommentError

_ATTEMPTS: Final = 5
_WAIT_S: Final = 2.0


class TransientError(CommentError):
    """The forge could not answer just now; whether it acted is not known."""


class TokenRefusedError(CommentError):
    """The forge refuses the token."""


class Comment(NamedTuple):
    """A comment on the request."""

    id: int
    body: str


class Forge(Protocol):
    """A request's comments; every method raises `CommentError`."""

    def comments(self) -> Iterator[Comment]:
        """Yield all comments, oldest first."""
        ...

    def add(self, body: str) -> int:
        """Add a comment, and return its id."""
        ...

    def update(self, id_: int, body: str) -> None:
        """Replace a comment's text."""
        ...

    def delete(self, id_: int) -> None:
        """Delete a comment."""
        ...


def put(
    forge: Forge, marker: str, body: str, *, sleep: Callable[[float], None] = time.sleep
) -> int:
    """Update the comment that begins with the marker, or add it; return its id.

    After a passing fault everything is looked up again, since an answer that was lost may have
    been that of a comment added. Of two jobs that add one at once, the later one takes its own
    back.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _put(forge, marker, body)
        except TransientError:
            if attempt + 1 == _ATTEMPTS:
                raise
            sleep(_WAIT_S * 2**attempt)
    raise AssertionError("unreachable")


def _put(forge: Forge, marker: str, body: str) -> int:
    if (updated := _update(forge, marker, body)) is not None:
        return updated
    added = forge.add(body)
    first = min(_marked(forge, marker), default=added)
    if first < added and (updated := _update(forge, marker, body)) not in (None, added):
        forge.delete(added)
        return int(updated or first)
    return added


def _update(forge: Forge, marker: str, body: str) -> int | None:
    """Update the first marked comment that the token may change; `None` if there is none.

    Anybody can write a comment with the marker: those of others are passed over.
    """
    for id_ in sorted(_marked(forge, marker)):
        try:
            forge.update(id_, body)
        except TokenRefusedError:
            continue
        return id_
    return None


def _marked(forge: Forge, marker: str) -> list[int]:
    return [one.id for one in forge.comments() if one.body.startswith(marker)]
