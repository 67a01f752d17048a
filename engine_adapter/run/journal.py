"""The journal file of a run, by which an interrupted run resumes.

It lies beside the rollout file: one line that identifies the run, then one line for each turn
that the collector has acknowledged. Span ids are derived from the run and the turn, so a turn that
was stored but not yet written to the journal is answered again under the same ids, and the
collector stores it once.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path
from typing import IO, NamedTuple

from engine_adapter.errors import RolloutFileError
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.schedule import Turn

_VERSION = 1


class SpanIds(NamedTuple):
    """A generation's trace id (32 hexadecimal digits) and span id (16)."""

    trace_id: str
    span_id: str


class Journal:
    """The stored turns of one run; without a file they are not written to disk."""

    def __init__(self, run: str, done: Iterable[str] = (), file: IO[str] | None = None) -> None:
        self.run = run
        self._done = set(done)
        self._file = file

    @property
    def done(self) -> int:
        """How many turns earlier attempts stored."""
        return len(self._done)

    def ids(self, turn: Turn, copy: int = 0) -> SpanIds:
        """Return the ids of the turn's generation; each copy has a trace of its own."""
        parts = [self.run, turn.prompt.id, turn.repeat, turn.arm, turn.warmup]
        copied = ["copy", copy] if copy else []
        digest = _digest(*parts, *([turn.attempt] if turn.attempt else []), *copied)
        if turn.session is None:
            return SpanIds(digest[:32], digest[32:48])
        session = _digest(self.run, "session", turn.session, turn.arm, turn.attempt, *copied)
        return SpanIds(session[:32], digest[32:48])

    def holds(self, turn: Turn) -> bool:
        """Return whether an earlier attempt stored the turn, in every rollout that it counts in."""
        return all(self.ids(turn, copy).span_id in self._done for copy in turn.copies)

    def left(self, turns: Iterable[Turn]) -> list[Turn]:
        """Return the turns that no earlier attempt stored.

        A session with its arm's own history is done if its end is stored. Otherwise it is begun
        again, in a trace of its own if some of its turns are stored: new answers do not follow from
        the stored ones.
        """
        found: list[Turn] = []
        for _, group in groupby(turns, key=lambda turn: (turn.session, turn.arm, turn.own_history)):
            session = list(group)
            if not session[0].own_history:
                found += _without_neighbour([turn for turn in session if not self.holds(turn)])
            elif (attempt := self._next_attempt(session)) is not None:
                found += [replace(turn, attempt=attempt) for turn in session]
        return found

    def _next_attempt(self, session: Sequence[Turn]) -> int | None:
        """Return the first attempt of which nothing is stored; `None` if one stored its end."""
        for attempt in count():
            turns = [replace(turn, attempt=attempt) for turn in session]
            if self.holds(turns[-1]):
                return None
            if not any(map(self.holds, turns)):
                return attempt
        return None

    def stored(self, span_ids: Iterable[str]) -> None:
        """Record spans that the collector has acknowledged."""
        if self._file is not None:
            self._file.writelines(f"{span_id}\n" for span_id in span_ids)
            self._file.flush()

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._file is not None:
            self._file.close()


def _without_neighbour(turns: list[Turn]) -> list[Turn]:
    """Return a session's turns, the first without the neighbour that an earlier attempt asked."""
    return [replace(turn, after=None) if turn.after else turn for turn in turns[:1]] + turns[1:]


def root_of(trace_id: str) -> str:
    """Return the id of the span above a session's turns."""
    return _digest("session", trace_id)[:16]


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def unwritten() -> Journal:
    """Return a journal without a file: the run cannot be resumed."""
    return Journal(secrets.token_hex(16))


def path_for(rollout_file: Path) -> Path:
    """Return the path of a rollout file's journal."""
    return rollout_file.with_name(f"{rollout_file.name}.journal")


def open_beside(
    rollout_file: Path, rollout: Rollout, *, fresh: bool = False, until_decided: bool = False
) -> Journal:
    """Open the rollout file's journal, or begin one if it is missing or of another rollout.

    Raises `RolloutFileError` if the journal has this rollout's name but another experiment or
    another `until_decided`, or cannot be read or written. `fresh` replaces an existing journal.
    """
    path = path_for(rollout_file)
    try:
        old = None if fresh else _read(path)
        if old is not None and old.done and old.name == rollout.rollout:
            if old.digest != rollout.digest:
                raise RolloutFileError(
                    f"{rollout_file}: was changed since {rollout.rollout!r} was begun; give the "
                    "experiment a new name under `rollout:`, or begin again with --fresh"
                )
            if old.until_decided != until_decided:
                raise RolloutFileError(
                    f"{rollout_file}: {rollout.rollout!r} was begun "
                    f"{'with' if old.until_decided else 'without'} --until-decided, so that its "
                    "looks are fixed; go on as it was begun, or give the experiment a new name"
                )
            file = path.open("a", encoding="utf-8")
            file.write("\n")  # the last line may have been cut by a crash
            return Journal(old.run, old.done, file)
        return _begin(path, rollout, until_decided=until_decided)
    except OSError as exc:
        raise RolloutFileError(
            f"{path}: the run's journal cannot be written: {exc.strerror}; put the rollout file "
            "into a folder that can be written, or run with --no-journal"
        ) from exc


def _begin(path: Path, rollout: Rollout, *, until_decided: bool) -> Journal:
    run = secrets.token_hex(16)
    head = {
        "journal": _VERSION,
        "run": run,
        "rollout": rollout.rollout,
        "experiment": rollout.digest,
    } | ({"until_decided": True} if until_decided else {})
    file = path.open("w", encoding="utf-8")
    file.write(json.dumps(head) + "\n")
    file.flush()
    return Journal(run, (), file)


class _Old(NamedTuple):
    run: str
    name: str
    digest: str
    done: list[str]
    until_decided: bool = False


def _read(path: Path) -> _Old | None:
    try:
        head, *lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as exc:
        raise _damaged(path) from exc
    try:
        found = json.loads(head)
        old = _Old(found["run"], found["rollout"], found["experiment"], [],
                   found.get("until_decided") is True)  # fmt: skip
    except (ValueError, TypeError, KeyError) as exc:
        raise _damaged(path) from exc
    # A line cut short by a crash is not an id: its turn is answered again.
    return old._replace(done=[line for line in lines if len(line) == 16])


def _damaged(path: Path) -> RolloutFileError:
    return RolloutFileError(f"{path}: is no journal of a run; begin again with --fresh")
