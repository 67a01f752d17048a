"""Deployment settings, read from the environment in one place."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from collector import variables
from collector.content import DROP, ContentPolicy, Redactor, redaction_file, shipped
from collector.logs import LogFormat, LogLevel

DEFAULT_DATABASE_URL = "sqlite:///draftgate.db"
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a collector; None, if allowed, is the absence of what the text describes."""

    database_url: str = variables.setting(
        "DRAFTGATE_DATABASE_URL",
        "Database: sqlite:///relative.db, sqlite:////absolute.db, or "
        "postgresql://user:password@host/database, which several collectors can share.",
        variables.text,
        DEFAULT_DATABASE_URL,
    )
    analytics_url: str | None = variables.setting(
        "DRAFTGATE_ANALYTICS_URL",
        "ClickHouse for the tables that grow with traffic: "
        "clickhousedb://user:password@host:8123/database, with ?secure=true for HTTPS; in this "
        "process, clickhousedb:///database?interface=chdb&path=/srv/draftgate/chdb.",
        variables.text,
    )
    host: str = variables.setting(
        "DRAFTGATE_HOST",
        "Address to listen on. If other machines can reach it, requests need an API key, and "
        "`draftgate serve` exits with 2 if the database has no valid one.",
        variables.text,
        "127.0.0.1",
    )
    port: int = variables.setting(
        "DRAFTGATE_PORT", "Port of HTTP; 0 takes a free one.", variables.port, 4318
    )
    grpc_port: int | None = variables.setting(
        "DRAFTGATE_GRPC_PORT",
        "Port of OTLP over gRPC; 0 takes a free one. The variable may also be `off`: no gRPC.",
        variables.port_or_off,
        4317,
    )
    max_body_bytes: int = variables.setting(
        "DRAFTGATE_MAX_BODY_BYTES",
        "Largest request body, both as sent and decompressed.",
        variables.whole,
        32 * MIB,
        shown="33554432, which is 32 MiB",
    )
    max_queue_bytes: int = variables.setting(
        "DRAFTGATE_MAX_QUEUE_BYTES",
        "Most decompressed bytes that wait for the database, and at most what it writes in 5 s (a "
        "quarter may always wait). Senders beyond get 503 or UNAVAILABLE.",
        variables.whole,
        64 * MIB,
        shown="67108864, which is 64 MiB",
    )
    allowed_hosts: tuple[str, ...] = variables.setting(
        "DRAFTGATE_ALLOWED_HOSTS",
        "On a loopback address, further `Host` names to accept, separated by commas, such as a "
        "proxy's.",
        variables.names,
        (),
    )
    max_connections: int = variables.setting(
        "DRAFTGATE_MAX_CONNECTIONS",
        "Most HTTP connections, and at most the process's file limit; beyond, the one silent "
        "longest is closed.",
        variables.whole,
        2048,
    )
    max_connections_per_address: int = variables.setting(
        "DRAFTGATE_MAX_CONNECTIONS_PER_ADDRESS",
        "Most HTTP connections of one address (IPv6: of a /64 network).",
        variables.whole,
        1024,
    )
    busy_timeout_s: float = variables.setting(
        "DRAFTGATE_BUSY_TIMEOUT_S",
        "Seconds to wait for a database that another process has locked.",
        variables.fraction,
        5.0,
        shown="5",
    )
    require_keys: bool = variables.setting(
        "DRAFTGATE_REQUIRE_KEYS",
        "Require API keys of requests from this machine too.",
        variables.flag,
        default=False,
    )
    key_rate_per_s: float | None = variables.setting(
        "DRAFTGATE_KEY_RATE",
        "Most requests a second of a key without a rate of its own; 0 is no limit.",
        variables.rate,
        shown="0",
    )
    capture_content: bool = variables.setting(
        "DRAFTGATE_CAPTURE_CONTENT",
        "Keep prompts, answers, passages and references, redacted, instead of dropping them.",
        variables.flag,
        default=False,
    )
    redaction: Path | None = variables.setting(
        "DRAFTGATE_REDACTION",
        "File with the patterns to redact in kept content.",
        variables.path,
        shown="the shipped patterns",
    )
    redaction_key: bytes | None = variables.setting(
        "DRAFTGATE_REDACTION_KEY",
        "Secret of at least 16 characters that makes the numbers of redacted values.",
        variables.secret,
        shown="the store's own",
        hidden=True,
    )
    retention_spans_s: int | None = variables.setting(
        "DRAFTGATE_RETENTION_SPANS",
        "Delete spans older than this, such as 30d (s, m, h, d, w); checked hourly.",
        variables.duration,
        shown="forever",
    )
    retention_content_s: int | None = variables.setting(
        "DRAFTGATE_RETENTION_CONTENT",
        "Delete the spans' text sooner than the spans, such as after 7d; checked hourly.",
        variables.duration,
        shown="as the spans",
    )
    notify: Path | None = variables.setting(
        "DRAFTGATE_NOTIFY", "File of the webhooks that get notifications.", variables.path
    )
    silence_s: int = variables.setting(
        "DRAFTGATE_SILENCE",
        "Time without a generation of a served candidate after which webhooks are notified.",
        variables.duration,
        3600,
        shown="1h",
    )
    metrics_endpoint: str | None = variables.setting(
        "DRAFTGATE_METRICS_ENDPOINT",
        "URL to which the metrics of rollouts are sent by OTLP, such as "
        "http://otel:4318/v1/metrics.",
        variables.url,
    )
    metrics_every_s: float = variables.setting(
        "OTEL_METRIC_EXPORT_INTERVAL",
        "Milliseconds from one sending of these metrics to the next.",
        variables.milliseconds,
        60.0,
        shown="60000",
    )
    tls_cert: Path | None = variables.setting(
        "DRAFTGATE_TLS_CERT", "Serve HTTPS with this certificate chain (PEM).", variables.path
    )
    tls_key: Path | None = variables.setting(
        "DRAFTGATE_TLS_KEY", "The certificate's key (PEM).", variables.path
    )
    log_format: LogFormat = variables.setting(
        "DRAFTGATE_LOG_FORMAT",
        "Format of log lines: text, or json, one object a line.",
        variables.choice,
        LogFormat.TEXT,
    )
    log_level: LogLevel = variables.setting(
        "DRAFTGATE_LOG_LEVEL",
        "Lowest level that is logged: debug (adds a line per request), info, warning or error.",
        variables.choice,
        LogLevel.INFO,
    )


VARIABLES: Final[Mapping[str, variables.Variable]] = {
    one.name: one.metadata["variable"] for one in fields(Settings)
}
"""The variable of each setting, by the setting's name."""


def from_environment(
    environment: Mapping[str, str] | None = None, *, only: Collection[str] = VARIABLES.keys()
) -> Settings:
    """Return the settings of the environment's variables; absent ones keep their default.

    `only`: the settings to read. Raises `SettingsError` for a value that is malformed or out of
    range.
    """
    env = os.environ if environment is None else environment
    found = {
        one.name: VARIABLES[one.name].read(env, VARIABLES[one.name].name, one.default)
        for one in fields(Settings)
        if one.name in only
    }
    return Settings(**found)


def of_options(**given: Any) -> Settings:  # Any: each is of its setting's type, or None
    """Return the environment's settings, overridden by the options that are not None."""
    chosen = {name: value for name, value in given.items() if value is not None}
    return replace(from_environment(), **chosen)


def policy_of(settings: Settings) -> ContentPolicy:
    """Return the content policy; raises `SettingsError` for an unusable redaction file."""
    if not settings.capture_content:
        return DROP
    chosen = settings.redaction
    return ContentPolicy(Redactor(shipped() if chosen is None else redaction_file.read(chosen)))
