"""The targets: the upstream itself and the proxies in front of it, each in its own process."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import psutil

from benchmarks.load.peers import installed_version

ROOT = Path(__file__).resolve().parents[2]
_LITELLM = "litellm[proxy]"
_LITELLM_ENV = {
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # disables key checks
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
}
_STARTS_S = 180.0


@dataclass(frozen=True)
class Running:
    """A running target."""

    name: str
    url: str
    process: psutil.Process | None = None

    def cpu_s(self) -> float:
        """Return its CPU time so far, including its workers."""
        if self.process is None:
            return 0.0
        family = [self.process, *self.process.children(recursive=True)]
        return sum(sum(one.cpu_times()[:2]) for one in family)

    def rss_bytes(self) -> int:
        """Return its resident memory."""
        if self.process is None:
            return 0
        family = [self.process, *self.process.children(recursive=True)]
        return sum(one.memory_info().rss for one in family)


@contextmanager
def module(name: str, *arguments: str, called: str | None = None) -> Iterator[Running]:
    """Run one of the benchmarks' own proxies."""
    command = [sys.executable, "-m", f"benchmarks.routing.{name}", *arguments]
    process = subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        yield Running(called or name, f"{url}/v1", psutil.Process(process.pid))
    finally:
        process.kill()
        process.wait()


@contextmanager
def litellm(upstream: str, folder: Path, work: Path) -> Iterator[Running]:
    """Run LiteLLM's proxy from its own environment, created if it is missing."""
    version = installed_version(folder, "litellm", _LITELLM)
    config = work / "litellm.yaml"
    config.write_text(
        "model_list:\n- model_name: m\n  litellm_params:\n"
        f"    {{model: openai/m, api_base: '{upstream}', api_key: none}}\n"
        "litellm_settings: {telemetry: false, set_verbose: false}\n"
    )
    port = _free_port()
    command = [str(folder / "litellm" / "bin" / "litellm"), "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    with (work / "litellm.log").open("w") as log:
        process = subprocess.Popen(  # noqa: S603
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=work,
            env=os.environ | _LITELLM_ENV,
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/health/liveliness", process)
            url = f"http://127.0.0.1:{port}/v1"
            yield Running(f"LiteLLM {version}", url, psutil.Process(process.pid))
        finally:
            process.kill()
            process.wait()


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    until_s = time.monotonic() + _STARTS_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            with urlopen(url) as answer:  # noqa: S310
                answer.read()
                return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"{url} does not answer (exit status {process.poll()})")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
