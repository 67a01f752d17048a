"""Exceptions of the engine adapter.

AdapterError
├── WorkloadError       a workload file cannot be used
├── RolloutFileError    a rollout file cannot be used
├── RoutesFileError     a routes file cannot be used
├── PromotionError      a ramp cannot go on
├── DrillError          a router's switch cannot be drilled
├── EngineSetupError    an engine cannot be opened as asked
├── GenerationError     one request failed on an engine; the run goes on
├── RefusedRequestError the router does not pass a request on
└── TelemetryError      spans could not be delivered
"""


class AdapterError(Exception):
    """Bad input or a failed delivery: one line that says what was seen, wanted and what to do."""


class WorkloadError(AdapterError):
    """A workload file cannot be used; names the file, the line and the key."""


class RolloutFileError(AdapterError):
    """A rollout file cannot be used; names the file and the key."""


class RoutesFileError(AdapterError):
    """A routes file cannot be used; names the file and the key."""


class PromotionError(AdapterError):
    """A ramp cannot go on; says where it stands, and what it waits for."""


class NotConfirmedError(PromotionError):
    """The verdict that a step would rest on does not come out the same again."""


class PolicyRegistrationError(AdapterError):
    """A policy that was asked for cannot be registered."""


class DrillError(AdapterError):
    """A router's switch cannot be drilled; says what is missing."""


class EngineSetupError(AdapterError):
    """An engine cannot be opened as asked; names the route's setting and the remedy."""


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
        """The HTTP status, where one was answered."""
        self.retry_after_s = retry_after_s
        """What a 429 or 503 asked to wait."""


class RefusedRequestError(AdapterError):
    """The router does not pass a client's request on; answered in the shape of the OpenAI API."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """What SDKs show as the error's code."""
        self.retry_after_s = retry_after_s


class TelemetryError(AdapterError):
    """Spans could not be delivered; says how many, where to, and what to do."""
