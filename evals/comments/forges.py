"""Comments of GitHub's pull requests, and notes of GitLab's merge requests."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from evals.comments.http import Api
from evals.comments.sticky import Comment
from evals.errors import CommentError


class GitHub:
    """Comments of a pull request, by GitHub's REST API (2022-11-28)."""

    def __init__(self, api: str, token: str, repository: str, number: int) -> None:
        """Use the pull request `number` of `repository`, such as `owner/name`."""
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {token}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        needs = "the token needs `pull-requests: write` under the job's `permissions`"
        self._api = Api(api, headers, needs)
        self._issues = f"/repos/{quote(repository)}/issues"
        self._number = number

    def comments(self) -> Iterator[Comment]:
        """Yield all comments, oldest first."""
        return map(_comment, self._api.pages(f"{self._issues}/{self._number}/comments"))

    def add(self, body: str) -> int:
        """Add a comment, and return its id."""
        path = f"{self._issues}/{self._number}/comments"
        return _comment(self._api.send("POST", path, json={"body": body})).id

    def update(self, id_: int, body: str) -> None:
        """Replace a comment's text."""
        self._api.send("PATCH", f"{self._issues}/comments/{id_}", json={"body": body})

    def delete(self, id_: int) -> None:
        """Delete a comment."""
        self._api.send("DELETE", f"{self._issues}/comments/{id_}")


class GitLab:
    """Notes of a merge request, by GitLab's REST API (v4)."""

    def __init__(self, api: str, token: str, project: str, number: int) -> None:
        """Use the merge request `number` of a project, given by its id or path."""
        needs = "the token needs the scope `api` and may not be the job's own"
        self._api = Api(api, {"PRIVATE-TOKEN": token}, needs)
        self._notes = f"/projects/{quote(project, safe='')}/merge_requests/{number}/notes"

    def comments(self) -> Iterator[Comment]:
        """Yield all notes, oldest first."""
        return map(_comment, self._api.pages(self._notes, sort="asc", order_by="created_at"))

    def add(self, body: str) -> int:
        """Add a note, and return its id."""
        return _comment(self._api.send("POST", self._notes, json={"body": body})).id

    def update(self, id_: int, body: str) -> None:
        """Replace a note's text."""
        self._api.send("PUT", f"{self._notes}/{id_}", json={"body": body})

    def delete(self, id_: int) -> None:
        """Delete a note."""
        self._api.send("DELETE", f"{self._notes}/{id_}")


def _comment(document: Mapping[str, Any] | None) -> Comment:  # Any: JSON
    try:
        id_, body = (document or {})["id"], (document or {}).get("body")
    except (KeyError, AttributeError) as exc:
        raise CommentError("wanted a comment with an id") from exc
    if not isinstance(id_, int):
        raise CommentError(f"wanted a comment's id, got {id_!r}")
    return Comment(id_, body if isinstance(body, str) else "")
