"""Deployment settings, read from the environment in one place."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from collector import durations
from collector.content import DROP, ContentPolicy, Redactor, redaction_file, shipped
from collector.errors import SettingsError
from collector.logs import LogFormat, LogLevel

DEFAULT_DATABASE_URL = "sqlite:///draftgate.db"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 4318
DEFAULT_GRPC_PORT = 4317
MIB = 1024 * 1024
_REDACTION_KEY = "DRAFTGATE_REDACTION_KEY"
_LEAST_SECRET = 16
_FLAGS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a collector."""

    database_url: str = DEFAULT_DATABASE_URL
    analytics_url: str | None = None
    """URL of the ClickHouse with the tables that grow with traffic; None: all in the database."""
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    grpc_port: int | None = DEFAULT_GRPC_PORT
    """None: do not serve gRPC."""
    max_body_bytes: int = 32 * MIB
    """Largest request body, both as sent and decompressed."""
    max_queue_bytes: int = 64 * MIB
    """Total decompressed bodies that may wait for the writer before senders get a 503."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names that a collector on a loopback address accepts, beside those of this machine."""
    max_connections: int = 2048
    """Most HTTP connections at once; beyond it, the one idle longest is closed."""
    max_connections_per_address: int = 1024
    busy_timeout_s: float = 5.0
    """How long a write waits for the database's lock, held by another process."""
    require_keys: bool = False
    """Whether requests need an API key."""
    key_rate_per_s: float | None = None
    """Requests per second of a key without its own rate; None: no limit."""
    capture_content: bool = False
    """Whether prompts, answers, passages and references are kept."""
    redaction: Path | None = None
    """File with the patterns to redact in content; None: the shipped ones."""
    redaction_key: bytes | None = field(default=None, repr=False)
    """Secret that makes the tokens of redacted values; None: the store's own."""
    retention_spans_s: int | None = None
    """How long spans are kept; None: forever."""
    retention_content_s: int | None = None
    """How long the spans' text is kept, if shorter."""
    notify: Path | None = None
    """File with the webhooks that get notifications; None: no notifications."""
    silence_s: int = 3600
    """Seconds without a generation of a served candidate that are told as a silence."""
    metrics_endpoint: str | None = None
    """URL to which the metrics of rollouts are sent by OTLP; None: they are not sent."""
    metrics_every_s: float = 60.0
    """How often they are sent."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    log_format: LogFormat = LogFormat.TEXT
    log_level: LogLevel = LogLevel.INFO


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the `DRAFTGATE_*` variables; absent ones keep their default.

    Raises `SettingsError` for a value that is malformed or out of range.
    """
    env = os.environ if environment is None else environment
    default = Settings()
    return Settings(
        database_url=env.get("DRAFTGATE_DATABASE_URL") or default.database_url,
        analytics_url=analytics_url(env),
        host=env.get("DRAFTGATE_HOST") or default.host,
        port=int(_number(env, "DRAFTGATE_PORT", default.port, highest=65535)),
        grpc_port=_grpc_port(env),
        max_body_bytes=int(_number(env, "DRAFTGATE_MAX_BODY_BYTES", default.max_body_bytes)),
        max_queue_bytes=int(_number(env, "DRAFTGATE_MAX_QUEUE_BYTES", default.max_queue_bytes)),
        allowed_hosts=tuple(
            host.strip()
            for host in env.get("DRAFTGATE_ALLOWED_HOSTS", "").split(",")
            if host.strip()
        ),
        max_connections=int(_number(env, "DRAFTGATE_MAX_CONNECTIONS", default.max_connections)),
        max_connections_per_address=int(
            _number(
                env,
                "DRAFTGATE_MAX_CONNECTIONS_PER_ADDRESS",
                default.max_connections_per_address,
            )
        ),
        busy_timeout_s=_number(
            env, "DRAFTGATE_BUSY_TIMEOUT_S", default.busy_timeout_s, fraction=True
        ),
        require_keys=_flag(env, "DRAFTGATE_REQUIRE_KEYS"),
        # 0 means no limit.
        key_rate_per_s=_number(env, "DRAFTGATE_KEY_RATE", 0, fraction=True) or None,
        capture_content=_flag(env, "DRAFTGATE_CAPTURE_CONTENT"),
        redaction=_path(env, "DRAFTGATE_REDACTION"),
        redaction_key=redaction_key(env),
        retention_spans_s=_duration(env, "DRAFTGATE_RETENTION_SPANS"),
        retention_content_s=_duration(env, "DRAFTGATE_RETENTION_CONTENT"),
        notify=_path(env, "DRAFTGATE_NOTIFY"),
        silence_s=_duration(env, "DRAFTGATE_SILENCE") or default.silence_s,
        metrics_endpoint=_url(env, "DRAFTGATE_METRICS_ENDPOINT"),
        metrics_every_s=_milliseconds(env, "OTEL_METRIC_EXPORT_INTERVAL", default.metrics_every_s),
        tls_cert=_path(env, "DRAFTGATE_TLS_CERT"),
        tls_key=_path(env, "DRAFTGATE_TLS_KEY"),
        log_format=_choice(env, "DRAFTGATE_LOG_FORMAT", default.log_format),
        log_level=_choice(env, "DRAFTGATE_LOG_LEVEL", default.log_level),
    )


def analytics_url(environment: Mapping[str, str] | None = None) -> str | None:
    """Return the URL of the ClickHouse that belongs to the database; None if it has none."""
    env = os.environ if environment is None else environment
    return env.get("DRAFTGATE_ANALYTICS_URL") or None


def redaction_key(environment: Mapping[str, str] | None = None) -> bytes | None:
    """Return the key (32 bytes) of redaction's tokens; None: the store's own. As above."""
    env = os.environ if environment is None else environment
    text = env.get(_REDACTION_KEY)
    if not text:
        return None
    if len(text) < _LEAST_SECRET:
        raise SettingsError(
            f"{_REDACTION_KEY}: wanted at least {_LEAST_SECRET} characters, "
            "such as of `openssl rand -hex 32`"
        )
    return hashlib.sha256(text.encode()).digest()


def _grpc_port(env: Mapping[str, str]) -> int | None:
    if env.get("DRAFTGATE_GRPC_PORT") == "off":
        return None
    return int(_number(env, "DRAFTGATE_GRPC_PORT", DEFAULT_GRPC_PORT, highest=65535))


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


def _flag(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").lower()
    if text not in _FLAGS:
        raise SettingsError(f"{name}={env[name]!r}: wanted 1 or 0; fix or unset it")
    return _FLAGS[text]


def _duration(env: Mapping[str, str], name: str) -> int | None:
    return durations.seconds(name, env[name]) if env.get(name) else None


def _path(env: Mapping[str, str], name: str) -> Path | None:
    return Path(env[name]) if env.get(name) else None


def _url(env: Mapping[str, str], name: str) -> str | None:
    text = env.get(name)
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"{name}={text!r}: wanted a URL such as http://otel:4318/v1/metrics")
    return text


def _milliseconds(env: Mapping[str, str], name: str, default_s: float) -> float:
    milliseconds = int(_number(env, name, default_s * 1000))
    if milliseconds == 0:
        raise SettingsError(f"{name}=0: wanted milliseconds, at least 1; fix or unset it")
    return milliseconds / 1000


def _choice(env: Mapping[str, str], name: str, default: E) -> E:
    text = env.get(name)
    try:
        return type(default)(text.lower()) if text else default
    except ValueError as exc:
        known = ", ".join(type(default))
        raise SettingsError(f"{name}={text!r}: wanted one of {known}; fix or unset it") from exc


def _number(
    env: Mapping[str, str],
    name: str,
    default: float,
    *,
    highest: float = 2**40,
    fraction: bool = False,
) -> float:
    text = env.get(name)
    if not text:
        return default
    wanted = "a number" if fraction else "a whole number"
    try:
        value = float(text) if fraction else int(text)
    except ValueError as exc:
        raise SettingsError(
            f"{name}={text!r}: wanted {wanted}, such as {default}; fix or unset it"
        ) from exc
    if not 0 <= value <= highest:
        raise SettingsError(f"{name}={text}: wanted {wanted} from 0 to {highest}; fix or unset it")
    return value
