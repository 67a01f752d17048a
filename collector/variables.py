"""Environment variables of settings: their names, what users read of them, and how they are read.

Every reader returns the setting's value, given the environment, the variable's name and the
setting's default; each raises `SettingsError` for a value that is malformed or out of range.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from collector import durations
from collector.errors import SettingsError

_LEAST_SECRET = 16
_FLAGS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
E = TypeVar("E", bound=StrEnum)
Environment = Mapping[str, str]


class Variable(NamedTuple):
    """The environment variable of a setting."""

    name: str
    help: str
    """Its description in `draftgate serve --help` and on the site's page of settings."""
    default: str
    """As users write it; `none` if it may be absent."""
    read: Callable[[Environment, str, Any], Any]  # Any: of the setting's type
    """One of the readers below."""


def setting(
    name: str,
    help_: str,
    read: Callable[[Environment, str, Any], Any],
    default: Any = None,  # Any: of the setting's type
    *,
    shown: str | None = None,
    hidden: bool = False,
) -> Any:
    """Declare a setting: its variable, what users read of it, its reader and its default.

    `shown`: the default as users write it, if it is not the value's own text.
    """
    if shown is None:
        shown = "none" if default in (None, ()) else "0" if default is False else str(default)
    variable = Variable(name, help_, shown, read)
    return field(default=default, repr=not hidden, metadata={"variable": variable})


def text(env: Environment, name: str, default: str | None) -> str | None:
    """Read text."""
    return env.get(name) or default


def names(env: Environment, name: str, _default: tuple[str, ...]) -> tuple[str, ...]:
    """Read names, separated by commas."""
    return tuple(part.strip() for part in env.get(name, "").split(",") if part.strip())


def flag(env: Environment, name: str, _default: bool) -> bool:  # noqa: FBT001  # as read
    """Read 1 or 0."""
    text = env.get(name, "").lower()
    if text not in _FLAGS:
        raise SettingsError(f"{name}={env[name]!r}: wanted 1 or 0; fix or unset it")
    return _FLAGS[text]


def duration(env: Environment, name: str, default: int | None) -> int | None:
    """Read a duration such as 12h, in seconds."""
    return durations.seconds(name, env[name]) if env.get(name) else default


def path(env: Environment, name: str, default: Path | None) -> Path | None:
    """Read a path."""
    return Path(env[name]) if env.get(name) else default


def url(env: Environment, name: str, default: str | None) -> str | None:
    """Read an HTTP URL."""
    text = env.get(name)
    if not text:
        return default
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"{name}={text!r}: wanted a URL such as http://otel:4318/v1/metrics")
    return text


def choice(env: Environment, name: str, default: E) -> E:
    """Read a member of the default's enumeration."""
    text = env.get(name)
    try:
        return type(default)(text.lower()) if text else default
    except ValueError as exc:
        known = ", ".join(type(default))
        raise SettingsError(f"{name}={text!r}: wanted one of {known}; fix or unset it") from exc


def number(
    env: Environment,
    name: str,
    default: float,
    *,
    highest: float = 2**40,
    fraction: bool = False,
) -> float:
    """Read a number from 0 to the highest."""
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


def whole(env: Environment, name: str, default: int) -> int:
    """Read a whole number."""
    return int(number(env, name, default))


def fraction(env: Environment, name: str, default: float) -> float:
    """Read a number."""
    return number(env, name, default, fraction=True)


def port(env: Environment, name: str, default: int) -> int:
    """Read a port."""
    return int(number(env, name, default, highest=65535))


def port_or_off(env: Environment, name: str, default: int) -> int | None:
    """Read a port, or None from `off`."""
    return None if env.get(name) == "off" else port(env, name, default)


def rate(env: Environment, name: str, _default: None) -> float | None:
    """Read a rate; None from 0, no limit."""
    return number(env, name, 0, fraction=True) or None


def milliseconds(env: Environment, name: str, default_s: float) -> float:
    """Read milliseconds, in seconds."""
    given_ms = int(number(env, name, default_s * 1000))
    if given_ms == 0:
        raise SettingsError(f"{name}=0: wanted milliseconds, at least 1; fix or unset it")
    return given_ms / 1000


def secret(env: Environment, name: str, default: bytes | None) -> bytes | None:
    """Read a secret, as a key of 32 bytes."""
    text = env.get(name)
    if not text:
        return default
    if len(text) < _LEAST_SECRET:
        raise SettingsError(
            f"{name}: wanted at least {_LEAST_SECRET} characters, such as of `openssl rand -hex 32`"
        )
    return hashlib.sha256(text.encode()).digest()
