"""The servers of the arms, kept running from cell to cell, and started again if they died."""

import contextlib
from pathlib import Path
from typing import Any

import httpx

from collector.contract import Arm
from engine_adapter.routes import HttpRoute
from engine_adapter.run.server_process import serving


class Servers:
    """One server at most for each arm."""

    def __init__(self, logs: Path, first_port: int) -> None:
        """Start without servers; `logs` is the folder of their logs.

        Ports are fixed, so that a rollout that goes on has the same routes.
        """
        self._logs, self._first_port = logs, first_port
        self._open: dict[Arm, tuple[str, HttpRoute, contextlib.ExitStack]] = {}

    def route(self, arm: Arm, route: dict[str, Any], name: str) -> dict[str, Any]:
        """Return the route with the address of its server, which is started if it does not run.

        Raises `EngineSetupError` if it does not start.
        """
        if "start" not in route:
            return route
        command = str(route["start"])
        if arm not in self._open or self._open[arm][0] != command or not self.alive(arm):
            self.stop(arm)
            port = str(self._first_port + list(Arm).index(arm))
            filled = {key: str(route[key]).replace("{port}", port) for key in ("url", "start")}
            wanted = HttpRoute.model_validate(route | filled)
            started = contextlib.ExitStack()
            log = self._logs / f"{name}.{arm.value}.log"
            running = started.enter_context(
                serving(wanted, key=f"{name}: {arm.value}.start", k=0, log=log)
            )
            self._open[arm] = command, running, started
        return self._open[arm][1].model_dump(mode="json", exclude_defaults=True)

    def alive(self, arm: Arm) -> bool:
        """Return whether the arm's server answers; true without a server."""
        if arm not in self._open:
            return True
        with contextlib.suppress(httpx.HTTPError):
            url = f"{self._open[arm][1].url}/models"
            return httpx.get(url, timeout=10, trust_env=False).is_success
        return False

    def stop(self, *arms: Arm) -> None:
        """Stop the arms' servers."""
        for arm in arms:
            if arm in self._open:
                self._open.pop(arm)[2].close()
