"""Recipes for rollout controllers: by the controllers' own schemas, and asked as they ask."""

import gzip
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import jsonschema
import pytest
import yaml
from made_verdicts import made_verdict, registration, resting_on, send_pairs
from typer.testing import CliRunner

from collector.client import Client
from collector.client.asgi_transport import InProcessTransport
from collector.contract import Outcome
from collector.serving.app import create_app
from collector.settings import Settings
from draftgate.commands import app as commands

CONTROLLERS = Path(__file__).parents[2] / "deploy" / "controllers"
SCHEMAS = Path(__file__).parent / "schemas"
POLICY = registration("{}")


def manifests() -> list[Any]:
    files = sorted(CONTROLLERS.glob("*.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


def of_kind(kind: str) -> list[Any]:
    return [one for one in manifests() if one["kind"] == kind]


@pytest.mark.parametrize(
    "manifest", manifests(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}"
)
def test_a_manifest_is_what_its_controller_takes(manifest: Any) -> None:
    """Nothing that the controller's schema does not know, and nothing of another type."""
    schema = json.loads(gzip.decompress((SCHEMAS / f"{manifest['kind']}.json.gz").read_bytes()))
    jsonschema.Draft202012Validator(closed(schema)).validate(manifest)


def closed(schema: Any) -> Any:
    """Return the schema with unknown keys refused, as an API server prunes them.

    A field that holds any number or text is one, as Kubernetes reads it.
    """
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if "properties" in made and not made.get("x-kubernetes-preserve-unknown-fields"):
        named = isinstance(made["properties"], dict) and made.get("type") == "object"
        is_root = "metadata" in made["properties"] and "spec" in made["properties"]
        if named and not (is_root and "kind" not in made["properties"]):
            made.setdefault("additionalProperties", False)
    if made.pop("x-kubernetes-int-or-string", False):
        made.pop("type", None)
    return made


@pytest.mark.parametrize(
    ("outcome", "argo", "flagger"),
    [
        (Outcome.PASS, "Successful", (True, False)),
        (Outcome.FAIL, "Failed", (False, True)),
        (Outcome.INCONCLUSIVE, "Inconclusive", (False, False)),
        (None, "Inconclusive", (False, False)),
    ],
)
def test_a_decision_moves_a_controller_only_where_it_is_certain(
    tmp_path: Path, outcome: Outcome | None, argo: str, flagger: tuple[bool, bool]
) -> None:
    """Argo by the value at its path, Flagger by the status of its two hooks."""
    url = f"sqlite:///{tmp_path / 'd.db'}"
    if outcome is not None:
        with Client.local(url) as client:
            client.register_policy("support-k4", POLICY)
            send_pairs(client, "support-k4", 2)
            made = made_verdict(outcome, rollout="support-k4", policy_hash=POLICY.policy_hash)
            client.post_verdict(resting_on(client, made))
    app = create_app(Settings(database_url=url))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        assert measured(http) == argo
        assert tuple(hook_passes(http, hook) for hook in hooks()) == flagger


def measured(http: httpx.Client) -> str:
    """Return the phase that Argo Rollouts' web provider gives the measurement."""
    (metric,) = of_kind("AnalysisTemplate")[0]["spec"]["metrics"]
    web = metric["provider"]["web"]
    named = {"collector": "http://collector", "rollout": "support-k4", "max-age-s": "3600"}
    address = web["url"]
    for name, value in named.items():
        address = address.replace("{{args." + name + "}}", value)
    answer = http.get(address)
    if not answer.is_success:
        return "Error"
    assert web["jsonPath"] == "{$.decision}"
    result = answer.json()["decision"]
    conditions = {"Failed": metric["failureCondition"], "Successful": metric["successCondition"]}
    met = [phase for phase, text in conditions.items() if text == f'result == "{result}"']
    return met[0] if met else "Inconclusive"


def hooks() -> list[Any]:
    return list(of_kind("Canary")[0]["spec"]["analysis"]["webhooks"])


def hook_passes(http: httpx.Client, hook: Any) -> bool:
    """Post as Flagger does: its own JSON; more than 202 is a refusal."""
    parts = urlsplit(hook["url"])
    payload = {"name": "vllm", "namespace": "prod", "phase": "Progressing", "checksum": "1"}
    return http.post(f"{parts.path}?{parts.query}", json=payload).status_code <= 202


def test_the_job_runs_a_command_that_exists() -> None:
    """The gate knows its options."""
    (metric,) = of_kind("AnalysisTemplate")[1]["spec"]["metrics"]
    (container,) = metric["provider"]["job"]["spec"]["template"]["spec"]["containers"]
    command, _, *options = container["args"]
    shown = CliRunner().invoke(commands, [command, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert all(option in shown.output for option in options)
