"""The ways in which a signed bundle cannot be trusted."""

from enum import IntEnum

from evals.errors import EvalsError


class Fault(IntEnum):
    """Why a signed bundle is refused; the value is the exit code of `draftgate verify`."""

    UNSIGNED = 10
    """The bundle has no envelope, or the envelope has no signature."""
    EDITED = 11
    """A signature names a trusted key, but is not that key's signature of this payload."""
    UNTRUSTED = 12
    """No signature is by a trusted key."""
    MALFORMED = 13
    """The envelope, or the statement in it, cannot be read."""
    PAYLOAD_TYPE = 14
    """The envelope does not hold an in-toto statement about a verdict."""
    SUBJECT = 15
    """The bundle's files are not those that were signed."""
    PREDICATE = 16
    """The statement says something else than the bundle's verdict."""


class AttestationError(EvalsError):
    """A signed bundle that is refused."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class KeyFileError(EvalsError):
    """A key, or a command that signs, that cannot be used."""
