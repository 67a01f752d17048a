"""Add acceptance counts to spans made by an SDK's instrumentation or by LiteLLM."""

from engine_adapter.integrations.span_attributes import acceptance_attributes
from engine_adapter.integrations.transport import (
    AcceptanceTransport,
    AsyncAcceptanceTransport,
)

__all__ = ["AcceptanceTransport", "AsyncAcceptanceTransport", "acceptance_attributes"]
