"""Whether a collector's address is reachable by other machines, so that it needs keys."""

import ipaddress
import time

from collector.errors import SettingsError
from collector.store import Store, keys


def needs_keys(host: str, *, require: bool, no_keys: bool) -> bool:
    """Return whether requests need a key: if required, or if others can reach the address.

    Raises `SettingsError` if keys are both required and waived.
    """
    if require and no_keys:
        raise SettingsError(
            "--no-keys: keys are required too, by --require-keys or DRAFTGATE_REQUIRE_KEYS; "
            "give one of the two"
        )
    return require or not (no_keys or is_loopback(host))


def check_keys(store: Store, host: str) -> None:
    """Raise `SettingsError` if the database has no usable key."""
    now_unix_ns = time.time_ns()
    with store.read() as connection:
        usable = [key for key in keys.newest_first(connection) if key.is_usable(now_unix_ns)]
    if not usable:
        raise SettingsError(
            f"--host {host}: requests need an API key, and the database holds none that is valid; "
            "create one with `draftgate keys create NAME --scope ingest --scope read`, "
            "or pass --no-keys to let in whoever can reach the port"
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
