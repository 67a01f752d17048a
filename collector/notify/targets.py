"""The targets file: the webhooks, with their events, payload form and secret."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from collector import config_file
from collector.contract import NotificationType
from collector.errors import SettingsError
from collector.notify.forms import PayloadForm

_KEYS: Final = ("name", "url", "url_env", "form", "events", "secret_env", "secret_file")
_EVENTS: Final = tuple(one for one in NotificationType if one is not NotificationType.TEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A webhook to send notifications to."""

    name: str
    """The key of its stored position in the outbox."""
    url: str = field(repr=False)
    """May itself be a secret, like Slack's."""
    form: PayloadForm
    events: tuple[NotificationType, ...]
    secret: str | None = field(repr=False)
    """None: bodies are not signed."""


def read(path: Path, environment: Mapping[str, str] | None = None) -> tuple[Target, ...]:
    """Return the targets of a YAML or TOML file; raises `SettingsError` with the file and key."""
    env = os.environ if environment is None else environment
    document = config_file.load(path)
    given = document.get("targets") if isinstance(document, Mapping) else None
    if not isinstance(given, list) or not given or set(document) != {"targets"}:
        raise SettingsError(f"{path}: wanted one key, `targets:`, with a list of them")
    targets = tuple(_target(f"{path}: targets[{i}]", one, env) for i, one in enumerate(given))
    names = [target.name for target in targets]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"{path}: two targets are named {name!r}; names tell them apart")
    return targets


def _target(where: str, given: object, env: Mapping[str, str]) -> Target:
    if not isinstance(given, Mapping):
        raise SettingsError(f"{where}: wanted keys such as `name:` and `url:`")
    for key in given:
        if key not in _KEYS:
            raise SettingsError(f"{where}.{key}: unknown key; wanted {', '.join(_KEYS)}")
    texts = {key: _text(f"{where}.{key}", given[key]) for key in given if key != "events"}
    if "name" not in texts:
        raise SettingsError(f"{where}: wanted a `name:`")
    return Target(
        name=texts["name"],
        url=_url(where, texts, env),
        form=_form(f"{where}.form", texts.get("form", PayloadForm.JSON.value)),
        events=_events(f"{where}.events", given.get("events")),
        secret=_secret(where, texts, env),
    )


def _text(where: str, given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise SettingsError(f"{where}: wanted a text, got {given!r}")
    return given


def _form(where: str, text: str) -> PayloadForm:
    try:
        return PayloadForm(text)
    except ValueError as exc:
        raise SettingsError(f"{where}: {text!r}: wanted one of {', '.join(PayloadForm)}") from exc


def _events(where: str, given: object) -> tuple[NotificationType, ...]:
    if given is None:
        return _EVENTS
    if not isinstance(given, list) or not given or any(one not in _EVENTS for one in given):
        raise SettingsError(f"{where}: wanted a list of {', '.join(_EVENTS)}")
    return tuple(NotificationType(one) for one in given)


def _url(where: str, texts: Mapping[str, str], env: Mapping[str, str]) -> str:
    """Return the URL; errors do not show it, because it may be a secret."""
    if ("url" in texts) == ("url_env" in texts):
        raise SettingsError(f"{where}: wanted `url:` or, if it is a secret, `url_env:`")
    key = "url" if "url" in texts else "url_env"
    url = texts["url"] if key == "url" else _variable(f"{where}.url_env", texts["url_env"], env)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable():
        raise SettingsError(f"{where}.{key}: wanted a URL such as https://hooks.example/draftgate")
    return url


def _secret(where: str, texts: Mapping[str, str], env: Mapping[str, str]) -> str | None:
    if "secret_env" in texts:
        return _variable(f"{where}.secret_env", texts["secret_env"], env)
    if "secret_file" not in texts:
        return None
    try:
        found = Path(texts["secret_file"]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{where}.secret_file: {texts['secret_file']}: cannot be read") from exc
    if not found:
        raise SettingsError(f"{where}.secret_file: {texts['secret_file']}: is empty")
    return found


def _variable(where: str, name: str, env: Mapping[str, str]) -> str:
    if not env.get(name):
        raise SettingsError(f"{where}: the environment has no {name}; set it")
    return env[name]
