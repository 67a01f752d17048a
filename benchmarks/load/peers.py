"""Other LLM trace stores, each in its own environment, created on demand with pip.

Arize Phoenix responds before it stores, so its spans are counted in its database, which this
process opens as well. MLflow stores before it responds.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.load.targets import Running, Target, command, count, found, size_of

_PHOENIX = {
    "PHOENIX_WORKING_DIR": "{folder}",
    "PHOENIX_HOST": "127.0.0.1",
    "PHOENIX_PORT": "{port}",
    "PHOENIX_GRPC_PORT": "{port2}",
    "PHOENIX_TELEMETRY_ENABLED": "false",
}


def known(folder: Path) -> dict[str, Target]:
    """Return the peers that can be selected by name, installed under `folder`."""
    return {
        "phoenix": lambda work: _phoenix(work, folder),
        "mlflow": lambda work: _mlflow(work, folder),
    }


def installed_version(folder: Path, package: str, requirement: str | None = None) -> str:
    """Return the version of a peer's package, installing it if it is missing.

    `requirement` adds extras, such as `litellm[proxy]`.
    """
    environment = folder / package
    if not (environment / "bin" / "python").exists():
        print(f"installing {package} into {environment}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)  # noqa: S603
        _python(environment, "-m", "pip", "install", "--quiet", requirement or package)
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return _python(environment, "-c", code).strip()


PACKAGES = {"phoenix": "arize-phoenix", "mlflow": "mlflow"}


@contextmanager
def _phoenix(work: Path, folder: Path) -> Iterator[Running]:
    program = folder / PACKAGES["phoenix"] / "bin" / "phoenix"
    database_url = f"sqlite:///file:{work / 'phoenix.db'}?mode=ro&uri=true"

    def running(health: str, processes: Callable[[], list[psutil.Process]]) -> Running:
        address = health.removesuffix("/healthz")
        spans = f"{address}/v1/projects/default/spans"
        return Running(
            url=f"{address}/v1/traces",
            processes={"server": processes},
            stored=lambda: count(database_url, "SELECT count(*) FROM spans"),
            answers_once_stored=False,
            shows=lambda id_: found(f"{spans}?limit=1&trace_id={id_}"),
            size_bytes=lambda: size_of(work),
            headers={},
        )

    address = "http://127.0.0.1:{port}/healthz"
    with command(work, f"{program} serve", address=address, running=running, env=_PHOENIX) as peer:
        yield peer


@contextmanager
def _mlflow(work: Path, folder: Path) -> Iterator[Running]:
    program = folder / PACKAGES["mlflow"] / "bin" / "mlflow"
    line = (
        f"{program} server --host 127.0.0.1 --port {{port}}"
        " --backend-store-uri sqlite:///{folder}/mlflow.db"
        " --artifacts-destination {folder}/artifacts"
    )
    database_url = f"sqlite:///file:{work / 'mlflow.db'}?mode=ro&uri=true"

    def running(health: str, processes: Callable[[], list[psutil.Process]]) -> Running:
        address = health.removesuffix("/health")
        return Running(
            url=f"{address}/v1/traces",
            processes={"server": processes},
            stored=lambda: count(database_url, "SELECT count(*) FROM spans"),
            shows=lambda id_: found(
                f"{address}/api/3.0/mlflow/traces/get?trace_id=tr-{id_}&allow_partial=true"
            ),
            size_bytes=lambda: size_of(work),
            headers={"x-mlflow-experiment-id": "0"},
        )

    address = "http://127.0.0.1:{port}/health"
    env = {"MLFLOW_DISABLE_TELEMETRY": "true"}
    with command(work, line, address=address, running=running, env=env) as peer:
        yield peer


def _python(environment: Path, *arguments: str) -> str:
    python = str(environment / "bin" / "python")
    done = subprocess.run([python, *arguments], check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    return done.stdout
