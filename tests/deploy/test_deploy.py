"""What is deployed fits what is: options, variables, metrics, and the schemas of each format."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from collector.client.asgi_transport import InProcessTransport
from collector.serving.app import create_app
from collector.settings import Settings
from draftgate import commands

sys.path.insert(0, str(Path(__file__).parent))

from chart import CHART, TemplateError, rendered

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
EVERYTHING = {
    "clickhouse": True,
    "image": {"pullSecrets": ["registry"]},
    "collector": {"captureContent": True, "autoscaling": {"enabled": True}},
    "dashboard": {"signInSecret": "draftgate-sign-in"},
    "router": {"enabled": True},
    "evaluators": [
        {"name": "k4", "rollout": "support-k4", "replicas": 2, "workers": 1, "lease": 60},
        {"name": "k8", "rollout": "support-k8", "replicas": 1, "workers": 2, "lease": 600},
    ],
    "networkPolicy": {"clients": {"matchLabels": {"team": "serving"}}},
}
NOTHING = {
    "dashboard": {"enabled": False},
    "networkPolicy": {"enabled": False},
}


def documents() -> Iterator[tuple[str, Any]]:
    """Yield every Kubernetes object of the chart, as it is by default and with all switched on."""
    for values in (None, EVERYTHING, NOTHING):
        for name, found in rendered(values).items():
            yield from ((name, one) for one in found)


def containers() -> Iterator[tuple[str, list[str], set[str]]]:
    """Yield each container of Draftgate with its arguments and environment."""
    for name, one in documents():
        template = one["spec"].get("template")
        for container in template["spec"]["containers"] if template else ():
            yield name, container["args"], {entry["name"] for entry in container.get("env", ())}
    for file in compose_files():
        services = yaml.safe_load(file.read_text())["services"]
        for name, service in services.items():
            if name not in ("postgres", "clickhouse") and "command" in service:
                yield file.name, service["command"], set(service.get("environment", ()))


def compose_files() -> list[Path]:
    return sorted(DEPLOY.glob("compose*.yaml"))


def known_variables() -> set[str]:
    """Return the variables that the code reads."""
    packages = ("collector", "dashboard", "engine_adapter", "evals")
    sources = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    return set[str]().union(
        *(re.findall(r"\"(DRAFTGATE_[A-Z_]+)\"", path.read_text()) for path in sources)
    )


def test_every_command_that_is_deployed_is_one() -> None:
    """Each container's arguments are read by the command line, every option and value of them."""
    seen = set()
    for where, arguments, _ in containers():
        name, *rest = map(str, arguments)
        command = commands.load(name)
        while hasattr(command, "commands") and rest[0] in command.commands:
            name, command, rest = rest[0], command.commands[rest[0]], rest[1:]
        assert not hasattr(command, "commands"), f"{where}: {rest[0]} is no command"
        command.make_context(name, rest)
        seen.add(name)
    assert {"serve", "dashboard", "evaluate", "route", "upgrade"} <= seen


def test_images_are_pinned_by_digest() -> None:
    """Of whatever the build and Compose pull; the chart's image, if a digest is given."""
    services = [yaml.safe_load(file.read_text())["services"] for file in compose_files()]
    pulled = [s[name]["image"] for s in services for name in s if "image" in s[name]]
    pulled = [image for image in pulled if "DRAFTGATE_IMAGE" not in image]
    pulled += re.findall(r"^ARG PYTHON=(.*)", containerfile(), re.M)
    assert len(pulled) == 3
    assert all(re.search(r":[\d.]+[a-z-]*@sha256:[0-9a-f]{64}$", image) for image in pulled)
    assert set(re.findall(r"^FROM (\S+)", containerfile(), re.M)) == {"${PYTHON}"}
    digest = f"sha256:{'0' * 64}"
    for found in rendered({"image": {"digest": digest}}).values():
        for one in found:
            template = one["spec"].get("template")
            for container in template["spec"]["containers"] if template else ():
                assert container["image"] == f"draftgate@{digest}"


def test_every_variable_that_is_deployed_is_read() -> None:
    """No container is given a DRAFTGATE_ variable that nothing reads, nor is the image."""
    known = known_variables()
    image = set(re.findall(r"^ +(DRAFTGATE_[A-Z_]+)=", containerfile(), re.M))
    given = image.union(*(names for _, _, names in containers()))
    assert {name for name in given if name.startswith("DRAFTGATE_")} - known == set()


def containerfile() -> str:
    return (DEPLOY / "Containerfile").read_text()


def test_every_object_of_the_chart_is_one_of_kubernetes() -> None:
    """Strictly by Kubernetes's own schema: no key that it does not know."""
    kinds = set()
    for _, one in documents():
        kubernetes_validate.validate(one, "1.30", strict=True)
        kinds.add(one["kind"])
    assert kinds == {
        "Deployment",
        "HorizontalPodAutoscaler",
        "Job",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
    }


def test_no_container_runs_as_root_or_writes_beside_its_mounts() -> None:
    """Of the chart and of Compose alike, and the image's own user is not root."""
    for _, one in documents():
        template = one["spec"].get("template")
        if template is None:
            continue
        assert template["spec"]["securityContext"]["runAsNonRoot"] is True
        for container in template["spec"]["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        assert name == "postgres" or service["read_only"] is True
    assert re.findall(r"^USER (.*)$", containerfile(), re.M) == ["10001:10001"]
    assert "HEALTHCHECK" in containerfile()


def test_selectors_and_references_of_the_chart_meet() -> None:
    """A service, an autoscaler and a policy are about pods that the chart makes."""
    every = [one for found in rendered(EVERYTHING).values() for one in found]
    pods = [o["spec"]["template"]["metadata"]["labels"] for o in every if o["kind"] == "Deployment"]
    names = {o["metadata"]["name"] for o in every if o["kind"] == "Deployment"}
    for one in every:
        spec = one["spec"]
        if one["kind"] == "Service":
            wanted = spec["selector"]
        elif one["kind"] in ("Deployment", "PodDisruptionBudget"):
            wanted = spec["selector"]["matchLabels"]
        elif one["kind"] == "NetworkPolicy":
            wanted = spec["podSelector"]["matchLabels"]
        else:
            continue
        assert any(wanted.items() <= pod.items() for pod in pods), one["metadata"]["name"]
    (scaled,) = [o for o in every if o["kind"] == "HorizontalPodAutoscaler"]
    assert scaled["spec"]["scaleTargetRef"]["name"] in names
    assert len({(o["kind"], o["metadata"]["name"]) for o in every}) == len(every)


def test_no_dashboard_is_reached_where_nobody_signs_in() -> None:
    """It would refuse to start: without sign-in it listens on its own machine's address alone."""
    for _, arguments, _ in containers():
        if "dashboard" not in arguments:
            continue
        host = arguments[arguments.index("--host") + 1] if "--host" in arguments else "127.0.0.1"
        assert host in ("127.0.0.1", "0.0.0.0")  # noqa: S104  # what a pod with sign-in listens on
    for values, reached in ((None, False), (EVERYTHING, True)):
        every = rendered(values)["dashboard.yaml"]
        (pod,) = [o["spec"]["template"]["spec"] for o in every if o["kind"] == "Deployment"]
        (container,) = pod["containers"]
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert ("0.0.0.0" in container["args"]) is reached  # noqa: S104
        assert ("/tmp/.streamlit" in mounted) is reached
        assert ("Service" in {o["kind"] for o in every}) is reached
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert services["dashboard"]["network_mode"] == "host"
    assert "--host" not in services["dashboard"]["command"]


def test_secrets_stand_in_no_file() -> None:
    """The chart takes each from a secret by its name, Compose from the shell's environment."""
    for _, one in documents():
        assert one["kind"] != "Secret"
        template = one["spec"].get("template")
        for container in template["spec"]["containers"] if template else ():
            for entry in container.get("env", ()):
                if entry["name"].endswith(("_KEY", "_DATABASE_URL", "_ANALYTICS_URL")):
                    assert "secretKeyRef" in entry["valueFrom"]
    for file in compose_files():
        for value in re.findall(r"(?:PASSWORD|API_KEY): (.*)", file.read_text()):
            assert value.startswith("${DRAFTGATE_")


def test_a_value_that_the_chart_does_not_know_is_an_error() -> None:
    """What renders the chart here would otherwise pass what Helm would not."""
    with pytest.raises(TemplateError, match="no colector"):
        rendered({"colector": {"replicas": 3}})


@pytest.fixture(scope="module")
def metric_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Ask a collector for the names of its metrics, as Prometheus stores them."""
    database = f"sqlite:///{tmp_path_factory.mktemp('metrics') / 'draftgate.db'}"
    app = create_app(Settings(database_url=database))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        text = http.get("/metrics").text
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    return {
        family.name + ending
        for family in text_string_to_metric_families(text)
        for ending in endings.get(family.type, ("",))
    }


def test_every_metric_that_is_drawn_or_alerted_on_exists(metric_names: set[str]) -> None:
    """In Grafana's dashboard, in the alerts and in the autoscaler."""
    board = json.loads((DEPLOY / "grafana" / "collectors.json").read_text())
    drawn = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    alerts = yaml.safe_load((DEPLOY / "prometheus-alerts.yaml").read_text())["groups"]
    alerted = [rule["expr"] for group in alerts for rule in group["rules"]]
    scaled = [
        metric["pods"]["metric"]["name"]
        for _, one in documents()
        for metric in one["spec"].get("metrics", ())
    ]
    used = set(re.findall(r"draftgate_\w+", " ".join([*drawn, *alerted, *scaled])))
    assert len(drawn) > 10
    assert used - metric_names == set()
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_compose_files_name_services_that_there_are() -> None:
    """Together: what is depended on, mounted and filled in stands in one of them."""
    services: dict[str, Any] = {}
    volumes: set[str] = set()
    for file in compose_files():
        document = yaml.safe_load(file.read_text())
        volumes |= set(document["volumes"])
        for name, service in document["services"].items():
            services[name] = services.get(name, {}) | service
            assert set(service.get("depends_on", ())) <= {*services, *document["services"]}
    for service in services.values():
        for mount in service.get("volumes", ()):
            assert mount.partition(":")[0] in volumes
        assert "image" in service


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("hadolint", ["deploy/Containerfile"]),
        ("promtool", ["check", "rules", "deploy/prometheus-alerts.yaml"]),
        ("promtool", ["check", "rules", "deploy/prometheus-rollout-alerts.yaml"]),
        ("helm", ["lint", str(CHART)]),
    ],
)
def test_a_format_s_own_linter_finds_nothing(program: str, arguments: list[str]) -> None:
    """Where the program is installed; hadolint comes with the development packages."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which(program, path=os.pathsep.join([beside, os.environ["PATH"]]))
    if found is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run(
        [found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
