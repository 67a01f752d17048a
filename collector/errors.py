"""The collector's errors.

CollectorError                     one line: what was seen, what was wanted, what to do
├── SettingsError                  a DRAFTGATE_* variable or an option is unusable
├── OtlpError                      an OTLP body cannot be decoded at all
├── RejectedError                  one span, point or result of an OTLP body cannot be stored
├── AccessError                    a request is not allowed
│   ├── UnauthenticatedError       it carries no key, or one that is not valid
│   ├── ForbiddenError             its key lacks a scope
│   └── RateLimitError             its key was used too often; send again later
├── RequestError                   an API request is unusable
│   ├── BodyTooLargeError          its body is larger than the collector accepts
│   ├── MediaTypeError             its body is of a type, or in a coding, that is not read
│   ├── NotFoundError              it names something that is not stored
│   └── ConflictError              the state that it continues is no longer the newest
├── QueueFullError                 more is pending than the queue may hold; send again later
├── StoreError                     the database cannot be used
│   └── StoreUnavailableError      it cannot be used now (locked, full, read-only); try again later
├── ExportError                    the file of an export cannot be written
└── ClientError                    the collector could not be reached, or refused
"""

RETRY_AFTER_S = 1
"""Seconds after which a sender should retry (Retry-After)."""


class CollectorError(Exception):
    """Base of every error of this package; its message is one line."""


def message_for_sender(error: CollectorError) -> str:
    """Return the error's message for the sender of a request."""
    return error.for_sender if isinstance(error, StoreError) else str(error)


class SettingsError(CollectorError):
    """A setting is unusable."""


class OtlpError(CollectorError):
    """An OTLP body cannot be decoded at all."""


class RejectedError(CollectorError):
    """One span, point or evaluation result of an OTLP body cannot be stored."""


class AccessError(CollectorError):
    """A request is not allowed."""


class UnauthenticatedError(AccessError):
    """A request carries no key, or one that is not valid."""


class ForbiddenError(AccessError):
    """A request's key lacks a scope."""

    def __init__(self, message: str, *, lacking: str) -> None:
        super().__init__(message)
        self.lacking = lacking


class RateLimitError(AccessError):
    """A request's key was used too often."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RequestError(CollectorError):
    """An API request is unusable."""


class BodyTooLargeError(RequestError):
    """A body is larger than the collector accepts."""


class MediaTypeError(RequestError):
    """A body is of a type, or in a coding, that the collector does not read."""


class NotFoundError(RequestError):
    """A request names something that is not stored."""


class ConflictError(RequestError):
    """A request continues a state that is no longer the newest."""


class QueueFullError(CollectorError):
    """More is pending than the queue may hold."""


class StoreError(CollectorError):
    """The database cannot be used."""

    def __init__(
        self,
        message: str,
        *,
        for_sender: str = "the database cannot be used now; the collector's log says why",
    ) -> None:
        super().__init__(message)
        self.for_sender = for_sender
        """The message for senders, which does not reveal where the database is."""


class StoreUnavailableError(StoreError):
    """The database cannot be used now; a retry may succeed."""


class ExportError(CollectorError):
    """The file of an export cannot be written."""


class ClientError(CollectorError):
    """The collector could not be reached, or refused the request."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status of a refusal, such as 403; None if there was no such response."""
