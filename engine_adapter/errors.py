"""Exceptions of the engine adapter.

AdapterError
├── WorkloadError       a workload file cannot be used
├── RolloutFileError    a rollout file cannot be used
├── RoutesFileError     a routes file cannot be used
├── PromotionError      a ramp cannot go on
├── DrillError          a router's switch cannot be drilled
├── EngineSetupError    an engine cannot be opened
├── GenerationError     one request failed on an engine; the run goes on
├── RefusedRequestError the router refuses a request
└── TelemetryError      spans could not be delivered
"""


class AdapterError(Exception):
    """Bad input or a failed delivery, as one line: the problem, the expected value, the remedy."""


class WorkloadError(AdapterError):
    """A workload file cannot be used; names the file, the line and the key."""


class RolloutFileError(AdapterError):
    """A rollout file cannot be used; names the file and the key."""


class RoutesFileError(AdapterError):
    """A routes file cannot be used; names the file and the key."""


class PromotionError(AdapterError):
    """A ramp cannot go on; names its current step and the missing condition."""


class NotConfirmedError(PromotionError):
    """The verdict behind a ramp step is different when derived again."""


class PolicyRegistrationError(AdapterError):
    """The given policy cannot be registered."""


class DrillError(AdapterError):
    """A router's switch cannot be drilled; names the missing condition."""


class EngineSetupError(AdapterError):
    """An engine cannot be opened; names the route's setting and the remedy."""


class GenerationError(AdapterError):
    """One request failed on an engine.

    `error_type` is the low-cardinality name that the span carries as `error.type`.
    """

    def __init__(
        self,
        error_type: str,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.status = status
        """The HTTP status, if there was a response."""
        self.retry_after_s = retry_after_s
        """The Retry-After of a 429 or 503, in seconds."""


class RefusedRequestError(AdapterError):
    """The router refuses a client's request; answered in the error format of the OpenAI API."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """The error code shown by SDKs."""
        self.retry_after_s = retry_after_s


class TelemetryError(AdapterError):
    """Spans could not be delivered; names their number, the destination and the remedy."""
