"""vLLM's own HTTP server in a process of its environment."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import engine_environments
import httpx

DRAFT_TOKENS = 4
_COMPACT_JSON = '{"backend": "xgrammar", "disable_any_whitespace": true}'
_START_S = 900
"""Half a minute alone on two cores, several where they are shared."""
SETTINGS = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_SERVER_DEV_MODE": "1",
}


@contextmanager
def serving(
    model: Path,
    *,
    speculation: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    collector_url: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Serve the model on a free port and yield the server's URL."""
    python = engine_environments.python_of("vllm")
    if python is None:
        raise RuntimeError("vLLM is not installed for the tests; run `make engines`")
    port = _free_port()
    command = command_of(python, model, str(port), speculation=speculation, dtype=dtype)
    environment = dict(os.environ) | SETTINGS | dict(variables or {})
    if collector_url is not None:
        command += ["--otlp-traces-endpoint", f"{collector_url}/v1/traces"]
        environment["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            root = f"http://127.0.0.1:{port}"
            if not _ready(process, root):
                log.seek(0)
                raise RuntimeError(f"vLLM did not start: {log.read()[-3000:]}")
            yield root
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def command_of(
    python: Path,
    model: Path,
    port: str,
    *,
    speculation: Mapping[str, Any] | None = None,
    dtype: str = "float32",
) -> list[str]:
    """Return the command that serves the model, which needs the environment `SETTINGS`."""
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--served-model-name", "served", "--host", "127.0.0.1", "--port", port]
    command += ["--dtype", dtype, "--max-model-len", "1024", "--max-num-seqs", "4"]
    command += ["--max-num-batched-tokens", "1024", "--enforce-eager"]
    command += ["--no-enable-prefix-caching", "--enable-per-request-metrics"]
    # A tiny model would write white space between JSON's tokens until the answer is cut.
    command += ["--structured-outputs-config", _COMPACT_JSON]
    if speculation is not None:
        command += ["--per-request-spec-decode-metrics", "detailed"]
        command += ["--speculative-config", json.dumps(speculation)]
    return command


def _ready(process: "subprocess.Popen[bytes]", root: str) -> bool:
    """Wait until the server answers; return false if it ended or took too long."""
    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s and process.poll() is None:
        try:
            if httpx.get(f"{root}/health").is_success:
                return True
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
