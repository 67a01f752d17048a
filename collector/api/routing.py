"""Routes that describe themselves by their functions' docstrings."""

import inspect
from collections.abc import Callable
from typing import Any

from fastapi.routing import APIRoute


class DescribedRoute(APIRoute):
    """A route whose summary is its docstring's first line, and its description the rest."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        summary, _, description = (inspect.getdoc(endpoint) or "").partition("\n\n")
        super().__init__(path, endpoint, **{**given, "summary": summary})
        self.description = description
