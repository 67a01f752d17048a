"""Start an engine's server by its route's `start` command, and stop it at the end."""

import contextlib
import os
import secrets
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from collector.contract import Arm
from engine_adapter.errors import EngineSetupError
from engine_adapter.routes import HttpRoute
from engine_adapter.run.rollout_file import Rollout

_ASK_EVERY_S = 0.25
_LOADING = (
    httpx.codes.BAD_GATEWAY,
    httpx.codes.SERVICE_UNAVAILABLE,
    httpx.codes.GATEWAY_TIMEOUT,
)
_STOPS_WITHIN_S = 15.0
_LAUNCH_BYTES = 6


@contextlib.contextmanager
def serving(route: HttpRoute, *, key: str, k: int, log: Path) -> Iterator[HttpRoute]:
    """Start a route's server; yield the route with the server's URL and a new launch name.

    `{port}` is replaced by a free port and `{k}` by the number of draft tokens. The command's
    output goes to the log. A route without `start` is yielded as it is. Raises `EngineSetupError`
    if the command ends, or does not answer within `start_timeout_s`; `key` is the command's place,
    such as `rollout.yaml: candidate.start`.
    """
    if route.start is None:
        yield route
        return
    port = str(_free_port())
    command = [_filled(part, port, k) for part in shlex.split(route.start)]
    filled = route.model_copy(
        update={
            "url": _filled(route.url, port, k),
            "start": None,
            "launch": secrets.token_hex(_LAUNCH_BYTES),
        }
    )
    with log.open("wb") as output:
        try:
            # Its own process group: engines leave workers behind if only the parent is stopped.
            process = subprocess.Popen(  # noqa: S603  # the user's own command, without a shell
                command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as exc:
            raise EngineSetupError(
                f"{key}: {command[0]!r} cannot be run: {exc.strerror}; give its whole path"
            ) from exc
        try:
            _await_answer(process, filled, route.start_timeout_s, key, log)
            yield filled
        finally:
            _stop(process)


@contextlib.contextmanager
def all_serving(file: Path, rollout: Rollout, *, launch: int = 0, k: int = 0) -> Iterator[Rollout]:
    """Start the servers of routes with a `start` command; yield the rollout with their URLs.

    All servers run at the same time. The arm that starts first takes turns from launch to launch.
    Output goes to `FILE.ARM.log`, such as `FILE.baseline.log`; from the second launch on, the name
    holds the launch's number, such as `FILE.baseline.3.log`. Raises as `serving`.
    """
    routes = dict(rollout.routes)
    names = list(routes)
    first = launch % len(names)
    number = f".{launch + 1}" if launch else ""
    with contextlib.ExitStack() as started:
        for name in names[first:] + names[:first]:
            route, drafts = routes[name], 0 if name == Arm.BASELINE else k
            if isinstance(route, HttpRoute) and route.start is not None:
                require_no_k(name, route.start, drafts)
                log = file.with_name(f"{file.name}.{name}{number}.log")
                key = f"{file}: {'arms.' if name in rollout.arms else ''}{name}.start"
                routes[name] = started.enter_context(serving(route, key=key, k=drafts, log=log))
        yield rollout.with_routes(routes)


def require_no_k(name: str, command: str, k: int) -> None:
    """Raise `EngineSetupError` if an arm's command needs a number of draft tokens and has none."""
    if "{k}" in command and k == 0:
        raise EngineSetupError(
            f"{name}: start holds {{k}}, which `draftgate sweep --k` fills in; "
            "write the number of draft tokens there"
        )


def _filled(text: str, port: str, k: int) -> str:
    # Not str.format: a command may contain other braces, such as JSON.
    return text.replace("{port}", port).replace("{k}", str(k))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_answer(
    process: "subprocess.Popen[bytes]", route: HttpRoute, within_s: float, key: str, log: Path
) -> None:
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            raise EngineSetupError(
                f"{key}: the server ended with exit code {process.returncode}: {_last_line(log)}; "
                f"see {log}"
            )
        with contextlib.suppress(httpx.HTTPError):
            # While it loads, an engine refuses connections or answers 503.
            answer = httpx.get(f"{route.url.rstrip('/')}/models", trust_env=False, timeout=5)
            if answer.status_code not in _LOADING:
                return
        time.sleep(_ASK_EVERY_S)
    raise EngineSetupError(
        f"{key}: nothing answers at {route.url}/models within {within_s:g} s; see {log}, or raise "
        "`start_timeout_s`"
    )


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_STOPS_WITHIN_S)
            return
