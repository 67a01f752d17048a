"""Client requests for generations, as records and as Arrow streams."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING

from collector.client.connection import ApiResource
from collector.contract import Arm, Generation

if TYPE_CHECKING:
    import pyarrow as pa


class GenerationRequests(ApiResource):
    """Generations, as records and as Arrow streams."""

    def generations(
        self,
        rollout: str,
        *,
        arm: Arm | None = None,
        cohort: str | None = None,
        content: bool = False,
    ) -> Iterator[Generation]:
        """Yield a rollout's generations in the order of arrival, page by page."""
        query = {
            "rollout": rollout,
            "arm": arm,
            "cohort": cohort,
            "content": content,
        }
        return self._connection.pages(Generation, "/api/v1/generations", query, "generations")

    def newest(
        self,
        limit: int = 50,
        rollout: str | None = None,
        *,
        arm: Arm | None = None,
        cohort: str | None = None,
        content: bool = False,
    ) -> tuple[Generation, ...]:
        """Return the `limit` (1 to 1000) generations that arrived last, newest first.

        `arm` and `cohort` need a rollout.
        """
        query = {
            "rollout": rollout,
            "arm": arm,
            "cohort": cohort,
            "content": content,
            "order": "newest",
            "limit": limit,
        }
        return self._connection.list(Generation, "generations", "/api/v1/generations", query)

    @contextmanager
    def generation_batches(  # noqa: PLR0913  # one argument per query parameter
        self,
        rollout: str | None = None,
        *,
        arm: Arm | None = None,
        cohort: str | None = None,
        arrived_since: date | None = None,
        arrived_until: date | None = None,
        content: bool = False,
        scores: bool = False,
        newest: bool = False,
        fields: Sequence[str] = (),
    ) -> Iterator["pa.RecordBatchReader"]:
        """Open an Arrow stream of generations, in the order of arrival or newest first.

        Its `schema` is available at once; iterate for batches, of which few are in memory at a
        time. Columns are the fields of `Generation`, those of its speculation prefixed `spec_`;
        with `content` also the text, with `scores` a list of scores per row. `arrived_since`
        (inclusive) and `arrived_until` (exclusive) are days in UTC. `fields` restricts the columns.
        Needs `pip install 'draftgate[arrow]'`.
        """
        # Imported here: 170 MB that nothing else of a client needs.
        import pyarrow as pa  # noqa: PLC0415

        query = {
            "rollout": rollout,
            "arm": arm,
            "cohort": cohort,
            "arrived_since": arrived_since.isoformat() if arrived_since is not None else None,
            "arrived_until": arrived_until.isoformat() if arrived_until is not None else None,
            "content": content,
            "scores": scores,
            "order": "newest" if newest else None,
            "field": tuple(fields),
        }
        with (
            self._connection.arrow("/api/v1/generations", query, pa.ArrowException) as body,
            pa.ipc.open_stream(pa.PythonFile(body, mode="r")) as reader,
        ):
            yield reader
