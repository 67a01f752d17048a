"""`draftgate comment`: a verdict under a pull or merge request."""

import json
from pathlib import Path
from typing import Annotated

import typer

from collector.contract import DocumentError, Verdict, from_document
from evals.cli.options import usable
from evals.comments.body import comment as comment_of
from evals.comments.body import marker
from evals.comments.forges import GitHub, GitLab
from evals.comments.sticky import Forge, put
from evals.errors import CommentError

app = typer.Typer(no_args_is_help=True, add_completion=False)

_File = Annotated[
    Path, typer.Argument(metavar="VERDICT", help="File that `gate --write json=FILE` wrote.")
]
_Key = Annotated[
    str, typer.Option("--key", help="Name of the comment, if a request has several verdicts.")
]
_Link = Annotated[
    str | None, typer.Option("--link", help="Address of the job that has the artifact.")
]


@app.callback()
def comment() -> None:
    """Put a verdict under a pull or merge request, as one comment that is kept up to date."""


@app.command()
def github(  # noqa: PLR0913  # one argument an option
    verdict: _File,
    repository: Annotated[
        str, typer.Option(envvar="GITHUB_REPOSITORY", help="Repository, such as owner/name.")
    ],
    token: Annotated[
        str,
        typer.Option(
            envvar="GITHUB_TOKEN",
            help="Token with `pull-requests: write`; better given by the variable.",
        ),
    ],
    pull_request: Annotated[
        int | None,
        typer.Option(help="Number of the pull request. Default: that of the workflow's event."),
    ] = None,
    event: Annotated[
        Path | None, typer.Option(envvar="GITHUB_EVENT_PATH", help="File of the workflow's event.")
    ] = None,
    api: Annotated[
        str, typer.Option(envvar="GITHUB_API_URL", help="Address of the API.")
    ] = "https://api.github.com",
    *,
    key: _Key = "verdict",
    link: _Link = None,
) -> None:
    """Add or update the verdict's comment on a pull request of GitHub: exit 2 if it cannot.

    It is found again by a hidden marker.

    Example: draftgate comment github verdict.json --pull-request 12
    """
    with usable():
        number = _pull_request(event) if pull_request is None else pull_request
        _put(GitHub(api, token, repository, number), verdict, key, link)


@app.command()
def gitlab(  # one argument an option
    verdict: _File,
    project: Annotated[str, typer.Option(envvar="CI_PROJECT_ID", help="Project, by id or path.")],
    merge_request: Annotated[
        int, typer.Option(envvar="CI_MERGE_REQUEST_IID", help="Number of the merge request.")
    ],
    token: Annotated[
        str,
        typer.Option(
            envvar="DRAFTGATE_GITLAB_TOKEN",
            help="Access token with the scope api, better given by the variable; a job's own "
            "cannot write notes.",
        ),
    ],
    api: Annotated[
        str, typer.Option(envvar="CI_API_V4_URL", help="Address of the API.")
    ] = "https://gitlab.com/api/v4",
    *,
    key: _Key = "verdict",
    link: _Link = None,
) -> None:
    """Add or update the verdict's note on a merge request of GitLab: exit 2 if it cannot.

    Example: draftgate comment gitlab verdict.json --merge-request 12
    """
    with usable():
        _put(GitLab(api, token, project, merge_request), verdict, key, link)


def _put(forge: Forge, file: Path, key: str, link: str | None) -> None:
    body = comment_of(_verdict(file), key, link)
    typer.echo(f"comment {put(forge, marker(key), body)}: up to date")


def _verdict(file: Path) -> Verdict:
    try:
        return from_document(Verdict, json.loads(file.read_text(encoding="utf-8")))
    except OSError as exc:
        raise CommentError(f"{file}: cannot be read ({exc.strerror})") from exc
    except (ValueError, DocumentError) as exc:
        raise CommentError(f"{file}: wanted a verdict: {exc}") from exc


def _pull_request(event: Path | None) -> int:
    try:
        document = json.loads(event.read_text(encoding="utf-8")) if event else {}
        number = document["pull_request"]["number"]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise CommentError("the event is not of a pull request; give --pull-request") from exc
    return int(number)
