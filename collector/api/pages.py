"""Query parameters shared by listings."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from collector.api.access import require_content

Rollout = Annotated[str, Query(description="Name of the rollout.")]
RolloutPath = Annotated[str, Path(description="Name of the rollout; it may contain slashes.")]
Cohort = Annotated[str | None, Query(description="Only this cohort.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Most items on the page.")]
After = Annotated[
    str | None, Query(description="The `next` of the previous page; absent for the first page.")
]
_Content = Annotated[
    bool,
    Query(
        alias="content",
        description="Include prompts, answers, passages and references; needs the scope content.",
    ),
]


def _text(request: Request, *, content: _Content = False) -> bool:
    """Return whether text is requested; raises `ForbiddenError` if the key does not allow it."""
    if content:
        require_content(request)
    return content


Text = Annotated[bool, Depends(_text)]
