"""Log lines: one per event, with the request's id, and never with content.

An exception is logged as its type and stack frames, without its message: messages quote values,
which may be prompts.
"""

import json
import logging
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the current request."""

FIELDS = "fields"
"""The key of `extra` under which a logging call passes further fields as a mapping."""


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The lowest level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure(log_format: LogFormat, level: LogLevel) -> None:
    """Configure this process to log to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(log_format))
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(logging.WARNING)  # libraries' info messages do not help an operator
    logging.getLogger("collector").setLevel(level.upper())


class _Formatter(logging.Formatter):
    def __init__(self, log_format: LogFormat) -> None:
        super().__init__()
        self._log_format = log_format

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        if self._log_format is LogFormat.JSON:
            return json.dumps(fields, ensure_ascii=False, default=str)
        head = f"{fields.pop('time')} {fields.pop('level')} {fields.pop('logger')}: "
        message = fields.pop("message")
        return head + " ".join([message, *(f"{name}={value}" for name, value in fields.items())])


def _fields(record: logging.LogRecord) -> dict[str, Any]:  # Any: JSON values
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        # Libraries write values on the lines after the first.
        "message": (record.getMessage().splitlines() or [""])[0],
    }
    current = request_id.get()
    if current is not None:
        fields["request_id"] = current
    fields |= getattr(record, FIELDS, {})
    if record.exc_info and record.exc_info[1] is not None:
        fields["error"] = _without_message(record.exc_info[1])
    return fields


def _without_message(error: BaseException) -> str:
    """Return the chain of errors as types and stack frames, the root cause last."""
    chain: list[str] = []
    current: BaseException | None = error
    while current is not None and len(chain) < 5:
        frames = traceback.extract_tb(current.__traceback__)[-4:]
        places = " > ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames)
        chain.append(f"{type(current).__name__} at {places}")
        current = current.__cause__ or current.__context__
    return "; from ".join(chain)
