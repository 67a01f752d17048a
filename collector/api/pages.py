"""Query parameters that listings share."""

from typing import Annotated

from fastapi import Query

Rollout = Annotated[str, Query(description="Name of the rollout.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Most items on the page.")]
After = Annotated[
    str | None, Query(description="The `next` of the page before; absent for the first page.")
]
Text = Annotated[
    bool, Query(alias="content", description="Send prompts, answers, passages and references too.")
]
