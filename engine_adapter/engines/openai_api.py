"""Build the HTTP client and the fingerprint of a rollout file's route."""

import hashlib
import json
import os
from collections.abc import Mapping

from engine_adapter.errors import EngineSetupError
from engine_adapter.routes import HttpRoute
from engine_adapter.transport import HttpClient, Timeouts


def client_of(route: HttpRoute) -> HttpClient:
    """Return the route's HTTP client; raises `EngineSetupError` if its key's variable is unset."""
    headers = dict(route.headers)
    if route.api_key_env is not None:
        key = os.environ.get(route.api_key_env)
        if not key:
            raise EngineSetupError(
                f"api_key_env: the environment variable {route.api_key_env} is not set; "
                "export the key under that name"
            )
        headers["authorization"] = f"Bearer {key}"
    timeouts = Timeouts(
        first_byte_s=route.first_byte_timeout_s,
        idle_s=route.idle_timeout_s,
        total_s=route.timeout_s,
    )
    return HttpClient(route.url, headers=headers, timeouts=timeouts)


def fingerprint(route: HttpRoute, facts: Mapping[str, object]) -> str:
    """Return a SHA-256 over the route's engine, model and extra body and the engine's facts."""
    asked = route.model_dump(mode="json", include={"engine", "model", "extra_body"})
    return hashlib.sha256(json.dumps([asked, facts], sort_keys=True).encode()).hexdigest()
