"""Deployment settings, read from the environment in one place."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from collector.errors import SettingsError

DEFAULT_DATABASE_URL = "sqlite:///draftgate.db"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 4318
DEFAULT_GRPC_PORT = 4317
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a collector is deployed."""

    database_url: str = DEFAULT_DATABASE_URL
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    grpc_port: int | None = DEFAULT_GRPC_PORT
    """None serves no gRPC."""
    max_body_bytes: int = 32 * MIB
    """Largest request body, as sent and as inflated."""
    max_queue_bytes: int = 64 * MIB
    """Inflated bodies that may wait for the writer, together, before senders are told to wait."""
    busy_timeout_s: float = 5.0
    """How long a write waits for another process that holds the database's lock."""


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that `DRAFTGATE_*` variables ask for; absent ones keep their default.

    Raises `SettingsError` for a number that is none or is out of range.
    """
    env = os.environ if environment is None else environment
    default = Settings()
    return Settings(
        database_url=env.get("DRAFTGATE_DATABASE_URL") or default.database_url,
        host=env.get("DRAFTGATE_HOST") or default.host,
        port=int(_number(env, "DRAFTGATE_PORT", default.port, highest=65535)),
        grpc_port=_grpc_port(env),
        max_body_bytes=int(_number(env, "DRAFTGATE_MAX_BODY_BYTES", default.max_body_bytes)),
        max_queue_bytes=int(_number(env, "DRAFTGATE_MAX_QUEUE_BYTES", default.max_queue_bytes)),
        busy_timeout_s=_number(
            env, "DRAFTGATE_BUSY_TIMEOUT_S", default.busy_timeout_s, fraction=True
        ),
    )


def _grpc_port(env: Mapping[str, str]) -> int | None:
    if env.get("DRAFTGATE_GRPC_PORT") == "off":
        return None
    return int(_number(env, "DRAFTGATE_GRPC_PORT", DEFAULT_GRPC_PORT, highest=65535))


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
