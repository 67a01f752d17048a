"""The wheel holds all that the checkout runs on."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import base_install
import pytest

from collector.client import Client
from collector.client.otlp_json import traces
from collector.contract import Arm
from demo.collector_process import running
from tests.evals.conftest import make_generation

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "collector",
    "dashboard",
    "demo",
    "draftgate",
    "engine_adapter",
    "evals",
    "listening",
)


def built(folder: Path, source: Path = ROOT, **variables: str) -> Path:
    """Build the wheel of a source into a folder."""
    build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    env = os.environ | variables
    subprocess.run([sys.executable, *build], check=True, capture_output=True, env=env)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and install it, without its dependencies, into a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    target = folder / "site"
    with zipfile.ZipFile(built(folder)) as archive:
        archive.extractall(target)
    return target


@pytest.mark.slow
def test_what_an_index_takes(tmp_path: Path) -> None:
    """A compiled wheel for the Linuxes of its glibc, at most 13 MB, and a pure one for the rest."""
    compiled = built(tmp_path / "compiled")
    tools = str(Path(sys.executable).parent)
    repair = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(tmp_path / "index")]
    env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run([*repair, str(compiled)], check=True, capture_output=True, env=env)
    (tagged,) = (tmp_path / "index").glob("*.whl")
    assert "-manylinux_2_" in tagged.name
    pure = built(tmp_path / "pure", DRAFTGATE_PURE="1")
    assert pure.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(pure) as archive:
        assert [name for name in archive.namelist() if name.endswith(".so")] == []
    assert max(tagged.stat().st_size, pure.stat().st_size) <= 13_000_000


@pytest.mark.slow
def test_the_weights_have_a_wheel_of_their_own(tmp_path: Path) -> None:
    """All that the evaluator reads is in it."""
    source = ROOT / "packages" / "groundedness_model"
    with zipfile.ZipFile(built(tmp_path, source)) as archive:
        held = {Path(name).name for name in archive.namelist() if "dist-info" not in name}
    assert held == {"__init__.py", "blend.json", "lower.onnx", "tokenizer.json", "upper.onnx"}


@pytest.mark.slow
def test_vllms_plugin_has_a_wheel_of_its_own(tmp_path: Path) -> None:
    """It holds the plugin alone, by the entry point that vLLM loads, and needs nothing."""
    with zipfile.ZipFile(built(tmp_path, ROOT / "packages" / "vllm")) as archive:
        held = {name for name in archive.namelist() if "dist-info" not in name}
        (declared,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        assert "[vllm.general_plugins]\ndraftgate = " in archive.read(declared).decode()
        assert "Requires-Dist" not in archive.read(metadata).decode()
    assert held == {f"draftgate_vllm/{name}.py" for name in ("__init__", "attributes", "plugin")}


@pytest.mark.slow
def test_every_file_of_the_packages_is_in_the_wheel(installed: Path) -> None:
    """Style sheets, policies, models and migrations travel too; nothing else does."""
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES, "migrations"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    wanted = {path.replace("migrations/", "collector/store/migrations/", 1) for path in tracked}
    held = {
        str(path.relative_to(installed))
        for path in installed.rglob("*")
        if path.is_file() and "dist-info" not in str(path)
    }
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    modules = ["collector/otlp/_span_reader", "collector/contract/_laws", "collector/store/_rows"]
    if sys.platform == "linux":
        modules.append("engine_adapter/transport/_arrivals")
    assert held == wanted | {module + suffix for module in modules}


@pytest.mark.slow
def test_the_installed_command_stores_and_judges(installed: Path, tmp_path: Path) -> None:
    """Away from the checkout, the packaged migrations make the database; an error is a line."""
    environment = os.environ | {"PYTHONPATH": str(installed)}

    def draftgate(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "draftgate", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    made = draftgate("db", "upgrade")
    assert (made.returncode, made.stderr) == (0, "")
    assert (tmp_path / "draftgate.db").is_file()
    judged = draftgate("gate", "nothing")
    assert judged.returncode == 2
    assert "the collector holds no such rollout" in judged.stderr
    where = [sys.executable, "-c", "import collector; print(collector.__file__)"]
    found = subprocess.check_output(where, cwd=tmp_path, env=environment, text=True)
    assert found.startswith(str(installed))


@pytest.mark.slow
def test_a_gate_runs_on_the_base_install_alone(installed: Path, tmp_path: Path) -> None:
    """At most 300 MB of dependencies; a bundle is written and verified, and an extra is named."""
    base = tmp_path / "base"
    assert base_install.link(base) <= 300_000_000
    environment = os.environ | {"PYTHONPATH": f"{installed}{os.pathsep}{base}"}

    def draftgate(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-S", "-m", "draftgate", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    made = [
        make_generation(
            2 * number + turn, "yes", rollout="k4", repeat=0, arm=arm, prompt_id=f"p{number}"
        )
        for number in range(1, 5)
        for turn, arm in enumerate(Arm)
    ]
    with running(tmp_path / "team.db", tmp_path / "log") as url:
        with Client(url) as client:
            client.post_traces(traces(made), content_type="application/json")
        judged = draftgate("gate", "k4", "--collector", url, "--bundle", "k4.zip")
        exported = draftgate("export", "k4", "--collector", url, "--to", "k4.jsonl")
        unpaired = draftgate("unpaired", "k4", "--collector", url)
    assert judged.returncode == 3, judged.stderr
    assert (unpaired.returncode, unpaired.stderr) == (0, "")
    verified = draftgate("verify", "k4.zip")
    assert (verified.returncode, verified.stderr) == (0, "")
    assert "pyarrow is not installed; pip install 'draftgate[arrow]'" in exported.stderr
