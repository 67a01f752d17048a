"""GuideLLM and AIPerf, each in its own environment, installed on demand with pip."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks.streams.truth import Answer

_TOKENIZER = Path(__file__).resolve().parents[2] / "demo" / "models" / "target"
_TOKENIZER_NAME = "draftgate/demo"
_REVISION = "0" * 40
_WITHIN_S = 400
_NOTHING: Mapping[str, str] = MappingProxyType({})


class RivalError(Exception):
    """A rival could not be installed or run; the message ends with its output."""


class Found(NamedTuple):
    """A rival's measurements."""

    version: str
    cpu_s: float
    """CPU time of the process and its children, from start to end."""
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Rival:
    """Another load generator."""

    name: str
    folder: Path
    command: Callable[[str, int, int, Path], list[str]]
    """Returns the command line for a URL, streams, requests and an output folder."""
    read: Callable[[Path], list[Answer]]

    def measure(self, url: str, streams: int, requests: int) -> Found:
        """Run it; raises `RivalError`."""
        environment = self.folder / self.name
        version = _install(environment, self.name)
        with tempfile.TemporaryDirectory() as work:
            program, *arguments = self.command(url, streams, requests, Path(work))
            before_s = _children_cpu_s()
            _run([str(environment / "bin" / program), *arguments], Path(work), _hub(Path(work)))
            cpu_s = _children_cpu_s() - before_s
            try:
                answers = self.read(Path(work))
            except (OSError, ValueError, KeyError, TypeError, IndexError) as exc:
                raise RivalError(f"{self.name}: its report could not be read: {exc!r}") from exc
        if not answers:
            raise RivalError(f"{self.name}: its report holds no answer")
        return Found(version, cpu_s, answers)


def known(folder: Path) -> list[Rival]:
    """Return the rivals, in environments under the folder."""
    return [
        Rival("guidellm", folder, _guidellm, _read_guidellm),
        Rival("aiperf", folder, _aiperf, _read_aiperf),
    ]


def _install(environment: Path, package: str) -> str:
    """Return the package's version, installing it if it is missing."""
    python = environment / "bin" / "python"
    if not python.exists():
        print(f"installing {package} into {environment}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)  # noqa: S603
        # Their dependency trees are large: pip took over 15 minutes to resolve one, uv seconds.
        _run([str(python), "-m", "pip", "install", "--quiet", "uv"], environment)
        uv = str(environment / "bin" / "uv")
        _run([uv, "pip", "install", "--quiet", "--python", str(python), package], environment)
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return _run([str(python), "-c", code], environment).strip()


def _hub(folder: Path) -> dict[str, str]:
    """Return variables by which a rival finds our tokenizer by name: AIPerf accepts no folder."""
    cached = folder / "hub" / f"models--{_TOKENIZER_NAME.replace('/', '--')}"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(_REVISION)
    snapshot = cached / "snapshots" / _REVISION
    snapshot.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (snapshot / name).symlink_to(_TOKENIZER / name)
    return {"HF_HUB_CACHE": str(folder / "hub")}


def _run(command: Sequence[str], folder: Path, more: Mapping[str, str] = _NOTHING) -> str:
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "COLUMNS": "200"}
    try:
        done: subprocess.CompletedProcess[str] = subprocess.run(  # noqa: S603
            command,
            cwd=folder,
            env={**os.environ, **quiet, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=_WITHIN_S,
        )
    except subprocess.TimeoutExpired as exc:
        raise RivalError(f"{command[0]}: no end within {_WITHIN_S} s") from exc
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-400:]
        raise RivalError(f"{Path(command[0]).name}: exit code {done.returncode}: {said}")
    return done.stdout


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _guidellm(url: str, streams: int, requests: int, folder: Path) -> list[str]:
    return [
        *("guidellm", "run", "--backend"),
        f"kind=openai_http,target={url.removesuffix('/v1')},model=m",
        *("--profile", f"kind=concurrent,streams={streams}"),
        *("--constraint", f"kind=max_requests,count={requests}"),
        *("--data", "kind=synthetic_text,prompt_tokens=16,output_tokens=100"),
        *("--tokenizer", f"kind=hf_auto,model={_TOKENIZER}"),
        *("--output", f"kind=json,path={folder / 'report.json'}", "--disable-console"),
    ]


def _read_guidellm(folder: Path) -> list[Answer]:
    (path,) = folder.glob("*.json")
    report = json.loads(path.read_text())
    done: list[dict[str, Any]] = report["benchmarks"][0]["requests"]["successful"]
    return [
        Answer(entry["time_to_first_token_ms"] / 1e3, (entry["inter_token_latency_ms"] / 1e3,))
        for entry in done
    ]


def _aiperf(url: str, streams: int, requests: int, folder: Path) -> list[str]:
    return [
        *("aiperf", "profile", "--model", "m", "--url", url.removesuffix("/v1")),
        *("--endpoint-type", "chat", "--streaming", "--concurrency", str(streams)),
        *("--request-count", str(requests), "--tokenizer", _TOKENIZER_NAME),
        *("--synthetic-input-tokens-mean", "16", "--output-tokens-mean", "100"),
        *("--artifact-dir", str(folder), "--ui", "none"),
    ]


def _read_aiperf(folder: Path) -> list[Answer]:
    (path,) = folder.rglob("profile_export.jsonl")
    answers = []
    for line in path.read_text().splitlines():
        metrics = json.loads(line)["metrics"]
        gap_ms = metrics["inter_token_latency"]["value"]
        answers.append(Answer(metrics["time_to_first_token"]["value"] / 1e3, (gap_ms / 1e3,)))
    return answers
