"""JSON responses of records."""

from typing import Any

from fastapi.responses import JSONResponse

from collector.contract.documents import to_plain


class Documents(JSONResponse):
    """A JSON response whose content may have records at any depth."""

    def render(self, content: Any) -> bytes:  # Any: JSON values and records
        """Return the content as JSON."""
        return super().render(to_plain(content))
