"""Streamed responses in Arrow's IPC format."""

import io
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import pyarrow as pa
from fastapi import Header
from fastapi.responses import StreamingResponse

MEDIA_TYPE = "application/vnd.apache.arrow.stream"

Accept = Annotated[
    str | None,
    Header(description=f"With `{MEDIA_TYPE}`, the answer is an Arrow stream, not a page of JSON."),
]
OPENAPI: dict[str, Any] = {  # Any: an OpenAPI fragment
    "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
}


def is_wanted(accept: str | None) -> bool:
    """Return whether the Accept header requests Arrow."""
    return MEDIA_TYPE in (accept or "")


def respond(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> StreamingResponse:
    """Stream the batches; on an error the response ends without the end-of-stream marker."""
    return StreamingResponse(_stream(schema, batches), media_type=MEDIA_TYPE)


def _stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    sink = io.BytesIO()
    writer = pa.ipc.new_stream(sink, schema)
    for batch in batches:
        writer.write_batch(batch)
        yield _drained(sink)
    writer.close()
    yield _drained(sink)


def _drained(sink: io.BytesIO) -> bytes:
    piece = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return piece
