"""Describe answers to sentinels in a few words."""

from datetime import UTC, datetime

from collector.contract import SentinelAnswers
from collector.nouns import counted


def changed_words(found: SentinelAnswers) -> str:
    """Return how many answers changed, and the first request whose answer did."""
    launch = "" if found.launch is None else f" in launch {found.launch}"
    answers = counted(found.answers, "answer")
    counts = f"{found.changed:,} of {answers} to `{found.sentinel}`{launch} changed"
    first = first_words(found)
    return counts if first is None else f"{counts}, the first {first}"


def first_words(found: SentinelAnswers) -> str | None:
    """Return the request whose answer changed first, and what preceded it; `None` without one."""
    change = found.first_change
    if change is None:
        return None
    time = datetime.fromtimestamp(change.start_unix_ns // 10**9, UTC).strftime("%H:%M:%S UTC")
    where = f"at {time} (trace {change.trace_id}, answer {change.number})"
    if change.after is not None:
        return f"{where}, directly after `{change.after}`, which shares its prefix"
    if change.prompt_id is None or change.requests == 0:
        return where
    later = f"{counted(change.requests, 'request')} after the answer before"
    return f"{where}, {later}, lastly `{change.prompt_id}`"
