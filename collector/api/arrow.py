"""Answers as Arrow streams, sent as they are made."""

import io
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import pyarrow as pa
from fastapi import Header
from fastapi.responses import StreamingResponse

MEDIA_TYPE = "application/vnd.apache.arrow.stream"

Accept = Annotated[str | None, Header()]
OPENAPI: dict[str, Any] = {  # Any: a piece of OpenAPI
    "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
}


def is_wanted(accept: str | None) -> bool:
    """Say whether the Accept header asks for Arrow."""
    return MEDIA_TYPE in (accept or "")


def respond(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> StreamingResponse:
    """Answer with the batches; one that fails breaks the answer off, without the stream's end."""
    return StreamingResponse(_stream(schema, batches), media_type=MEDIA_TYPE)


def _stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    sink = io.BytesIO()
    writer = pa.ipc.new_stream(sink, schema)
    for batch in batches:
        writer.write_batch(batch)
        yield _taken(sink)
    writer.close()
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    piece = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return piece
