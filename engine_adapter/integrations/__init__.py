"""Acceptance on spans that others make: below an SDK's client, or in a gateway's callback."""

from engine_adapter.integrations.span_attributes import acceptance_attributes
from engine_adapter.integrations.transport import (
    AcceptanceTransport,
    AsyncAcceptanceTransport,
)

__all__ = ["AcceptanceTransport", "AsyncAcceptanceTransport", "acceptance_attributes"]
