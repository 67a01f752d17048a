"""Run the dashboard as a child process: start it, wait until it answers, stop it."""

import errno
import ipaddress
import os
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from dashboard.errors import DashboardStartError, PortInUseError
from dashboard.source import DATABASE_VARIABLE, URL_VARIABLE

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8501
_SECRETS = ".streamlit/secrets.toml"
_PROGRAM = Path(__file__).with_name("program.py")
_OPTIONS = {
    "server.headless": "true",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    # The menu of a viewer, with the choice of light or dark.
    "client.toolbarMode": "viewer",
    # Tracebacks go to the log, not to the viewer.
    "client.showErrorDetails": "none",
    "client.showErrorLinks": "false",
    # Enough contrast on white and on black for small text.
    "theme.light.primaryColor": "#0B62A8",
    "theme.dark.primaryColor": "#5AA9E6",
    "logger.level": "warning",
    # With Rich, logs would go to standard output, which is discarded.
    "logger.enableRich": "false",
}


class DashboardProcess:
    """A running dashboard; as a context manager, it is stopped at exit."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.url = url
        self._process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def wait(self) -> int:
        """Wait until the process ends; return its exit status."""
        return self._process.wait()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop the process, killing it after the timeout; do nothing if it has ended."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def await_ready(self, timeout_s: float) -> None:
        """Wait until the dashboard answers; raises `DashboardStartError` on exit or timeout."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            status = self._process.poll()
            if status is not None:
                raise DashboardStartError(
                    f"the dashboard ended with status {status} while starting; its log is above"
                )
            if _answers(f"{self.url}/_stcore/health"):
                return
            time.sleep(0.1)
        self.stop()
        raise DashboardStartError(f"the dashboard did not answer at {self.url} in {timeout_s:g} s")


def start(
    *,
    collector_url: str | None = None,
    database_url: str | None = None,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    timeout_s: float = 180.0,
) -> DashboardProcess:
    """Start a dashboard and return it once it answers; the caller must stop it.

    Without a URL, the address comes from the environment. Raises `PortInUseError`, or
    `DashboardStartError` if the process ends, does not answer in time, or would be reachable from
    other machines without sign-in.
    """
    require_free(host, port)
    _require_sign_in(host)
    command = [sys.executable, str(_PROGRAM)]
    options = _OPTIONS | {"server.address": host, "server.port": str(port)}
    command += [f"--{name}={value}" for name, value in options.items()]
    # The command is this interpreter and our own file; host and port are checked above.
    process = subprocess.Popen(  # noqa: S603
        command, env=_environment(collector_url, database_url), stdout=subprocess.DEVNULL
    )
    dashboard = DashboardProcess(process, f"http://{_reachable(host)}:{port}")
    try:
        dashboard.await_ready(timeout_s)
    except BaseException:
        dashboard.stop()
        raise
    return dashboard


def _environment(collector_url: str | None, database_url: str | None) -> dict[str, str]:
    """Return our environment with the given address in place of any that it has."""
    environment = dict(os.environ)
    if collector_url is not None or database_url is not None:
        environment.pop(URL_VARIABLE, None)
        environment.pop(DATABASE_VARIABLE, None)
    if collector_url is not None:
        environment[URL_VARIABLE] = collector_url
    if database_url is not None:
        environment[DATABASE_VARIABLE] = database_url
    return environment


def _require_sign_in(host: str) -> None:
    """Raise `DashboardStartError` if other machines could reach it without signing in."""
    if host == "localhost" or _is_loopback(host) or _has_sign_in():
        return
    raise DashboardStartError(
        f"other machines could reach {host}, and nobody would have to sign in; configure OpenID "
        f"Connect under [auth] in {_SECRETS}, or listen on 127.0.0.1"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _has_sign_in() -> bool:
    """Return whether Streamlit's secrets, in this folder or the home folder, configure sign-in."""
    for folder in (Path.cwd(), Path.home()):
        try:
            with (folder / _SECRETS).open("rb") as file:
                if isinstance(tomllib.load(file).get("auth"), dict):
                    return True
        except FileNotFoundError:
            continue
        except (OSError, tomllib.TOMLDecodeError) as exc:
            raise DashboardStartError(f"{folder / _SECRETS}: cannot be read: {exc}") from exc
    return False


def require_free(host: str, port: int) -> None:
    """Raise `PortInUseError` or `DashboardStartError` if the port cannot be listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the server does: a port in TIME_WAIT counts as free, one with a listener does not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise PortInUseError(host, port) from exc
            raise DashboardStartError(
                f"cannot listen on {host} port {port}: {exc.strerror}; choose with --host, --port"
            ) from exc


def _reachable(host: str) -> str:
    """Return the host to browse to; a wildcard address such as 0.0.0.0 becomes 127.0.0.1."""
    if host in ("0.0.0.0", "::"):  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False
