"""Recipes for rollout controllers: by the controllers' own schemas, and asked as they ask."""

import gzip
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import jsonschema
import kubernetes_validate
import pytest
import yaml
from made_verdicts import made_verdict, registration, resting_on, send_pairs
from typer.testing import CliRunner

from collector.client import Client
from collector.client.asgi_transport import InProcessTransport
from collector.contract import Outcome
from collector.serving.app import create_app
from collector.settings import Settings
from demo.collector_process import running
from draftgate.commands import app as commands

CONTROLLERS = Path(__file__).parents[2] / "deploy" / "controllers"
SCHEMAS = Path(__file__).parent / "schemas"
POLICY = registration("{}")
_OF_KUBERNETES = {"CronJob", "Role", "RoleBinding", "ServiceAccount"}


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
    if manifest["kind"] in _OF_KUBERNETES:
        kubernetes_validate.validate(manifest, "1.30", strict=True)
        return
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
            decide(client, outcome)
    app = create_app(Settings(database_url=url))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        assert measured(http) == argo
        assert tuple(hook_passes(http, hook) for hook in hooks()) == flagger


def decide(client: Client, outcome: Outcome) -> None:
    """Store a verdict on pairs, under the policy that was registered before them."""
    client.register_policy("support-k4", POLICY)
    send_pairs(client, "support-k4", 2)
    made = made_verdict(outcome, rollout="support-k4", policy_hash=POLICY.policy_hash)
    client.post_verdict(resting_on(client, made))


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


class Cluster(NamedTuple):
    """What an API server was asked to change: path, content type, token, body."""

    patches: list[tuple[str, str | None, str | None, Any]]
    url: str


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Run a server that takes patches as an API server does."""
    patches: list[tuple[str, str | None, str | None, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kind, token = (self.headers[name] for name in ("Content-Type", "Authorization"))
            patches.append((self.path, kind, token, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield Cluster(patches, f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("outcome", "step"),
    [
        (Outcome.PASS, "FORWARD"),
        (Outcome.FAIL, "BACK"),
        (Outcome.INCONCLUSIVE, None),
        (None, None),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_a_step_is_taken_where_the_decision_is_certain(
    tmp_path: Path, cluster: Cluster, outcome: Outcome | None, step: str | None, number: int
) -> None:
    """The job's own shell, against a collector and an API server; otherwise it holds."""
    (container,) = _pod(of_kind("CronJob")[number])["containers"]
    (tmp_path / "token").write_text("cluster-token")
    with running(tmp_path / "d.db", tmp_path / "log") as url, Client(url) as client:
        if outcome is not None:
            decide(client, outcome)
        held = _stepped(container, f"{url}/api/v1/rollouts/support-k4/decision", cluster, tmp_path)
    given = {one["name"]: one.get("value") for one in container["env"]}
    target = f"/prod/{given['RESOURCE']}"
    wanted = [] if step is None else [(target, given["PATCH"], json.loads(str(given[step])))]
    assert [(path, kind, body) for path, kind, _, body in cluster.patches] == wanted
    assert {token for _, _, token, _ in cluster.patches} <= {"Bearer cluster-token"}
    assert held == (step is None)


def test_a_step_waits_for_a_collector_that_is_down(tmp_path: Path, cluster: Cluster) -> None:
    """Nobody answers, so that nothing is certain."""
    (container,) = _pod(of_kind("CronJob")[0])["containers"]
    assert _stepped(container, "http://127.0.0.1:1/decision", cluster, tmp_path)
    assert cluster.patches == []


def _stepped(container: Any, decision: str, cluster: Cluster, folder: Path) -> bool:
    """Run the job's shell; return whether it held."""
    given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    given |= {"DECISION": decision, "RESOURCES": cluster.url, "ACCOUNT": str(folder)}
    given |= {"NAMESPACE": "prod", "DRAFTGATE_API_KEY": "key", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [*container["command"], *container["args"]],
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout == "hold\n"


def test_a_job_may_patch_what_it_names_alone() -> None:
    """Role, address and patches are of the resource that stands beside them."""
    for job, role, kind in zip(
        of_kind("CronJob"), of_kind("Role"), ("HTTPRoute", "InferenceService"), strict=True
    ):
        (resource,) = of_kind(kind)
        ((rule,), pod) = role["rules"], _pod(job)
        given = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
        group, version = resource["apiVersion"].split("/")
        assert rule["apiGroups"] == [group]
        assert rule["verbs"] == ["patch"]
        assert given["RESOURCE"] == f"{rule['resources'][0]}/{resource['metadata']['name']}"
        assert rule["resourceNames"] == [resource["metadata"]["name"]]
        assert str(given["RESOURCES"]).endswith(f"/apis/{group}/{version}/namespaces")
        assert pod["serviceAccountName"] == role["metadata"]["name"]


def test_patches_fit_their_resources() -> None:
    """A patched resource is one that the schema knows, with weights that make a whole."""
    route, service = of_kind("HTTPRoute")[0], of_kind("InferenceService")[0]
    of_route, of_service = (_pod(job)["containers"][0]["env"] for job in of_kind("CronJob"))
    for name in ("FORWARD", "BACK"):
        (merge,) = (json.loads(one["value"]) for one in of_service if one["name"] == name)
        assert merge["spec"]["predictor"].keys() <= service["spec"]["predictor"].keys()
        (operations,) = (json.loads(one["value"]) for one in of_route if one["name"] == name)
        backends = route["spec"]["rules"][0]["backendRefs"]
        places = [f"/spec/rules/0/backendRefs/{i}/weight" for i in range(len(backends))]
        assert [(one["op"], one["path"]) for one in operations] == [("replace", p) for p in places]
        assert sum(one["value"] for one in operations) == 100


def _pod(job: Any) -> Any:
    return job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
