"""The text of a comment: a marker to find it again by, the verdict, and its picture."""

import re

from collector.contract import Verdict
from evals.comments.drawing import drawn
from evals.errors import CommentError
from evals.report.formats import to_markdown
from evals.report.visible_text import made_visible

MOST_CHARACTERS = 60_000
"""Characters of a comment; GitHub refuses more than 65,536."""
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LINK = re.compile(r"https?://[^\s<>()\[\]\"'`\\]+")


def marker(key: str) -> str:
    """Return the line by which a comment is found again, which no forge shows.

    Raises `CommentError` if the key is not made of letters, digits, `_`, `.` and `-`.
    """
    if _KEY.fullmatch(key) is None:
        raise CommentError(f"--key {key}: wanted up to 64 letters, digits, _, . and -")
    return f"<!-- draftgate-verdict {key} -->"


def comment(verdict: Verdict, key: str, link: str | None = None) -> str:
    """Return the comment's text; `link` leads to the job with the whole evidence."""
    if link is not None and _LINK.fullmatch(link) is None:
        raise CommentError(f"--link {link}: wanted an address")
    foot = [] if link is None else ["", f"[Bundle, JUnit and the whole verdict]({link})"]
    picture = drawn(made_visible(verdict).findings)
    block = ["", "```text", *picture, "```"] if picture else []
    head = [marker(key), *to_markdown(verdict).split("\n")]
    room = MOST_CHARACTERS - sum(len(line) + 1 for line in (*block, *foot))
    return "\n".join([*_cut(head, room), *block, *foot])


def _cut(lines: list[str], room: int) -> list[str]:
    """Return the lines that fit, and how many do not."""
    kept, left = list[str](), room
    for number, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            return [*kept, "", f"{len(lines) - number} more lines are in the job's artifact."]
        kept.append(line)
    return kept
