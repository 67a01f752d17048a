"""Headers and certificates for requests to the collector."""

import os
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from opentelemetry.util.re import parse_env_headers

from engine_adapter.errors import TelemetryError

_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_CERTIFICATES = (
    "DRAFTGATE_CA_FILE",
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
)


class CollectorAccess(NamedTuple):
    """The headers and CA certificates of every request to the collector."""

    headers: Mapping[str, str]
    ca_file: str | None = None
    """Certificates to trust instead of the system's."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "CollectorAccess":
        """Read our own variables and those of OpenTelemetry exporters; ours take precedence."""
        given = next((environment[name] for name in _HEADERS if environment.get(name)), "")
        headers = dict(parse_env_headers(given, liberal=True))
        key = environment.get("DRAFTGATE_API_KEY")
        if key:
            headers["authorization"] = f"Bearer {key}"
        ca_file = next((environment[name] for name in _CERTIFICATES if environment.get(name)), None)
        return cls(headers, ca_file)

    def tls(self) -> ssl.SSLContext | bool:
        """Return httpx's `verify` value; raises `TelemetryError` for an unusable file."""
        if self.ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as exc:
            raise TelemetryError(
                f"{self.ca_file}: cannot be used as CA certificates ({exc.strerror or exc}); "
                "wanted a PEM file"
            ) from exc
