"""The wheel holds all that the checkout runs on."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("collector", "dashboard", "demo", "draftgate", "engine_adapter", "evals")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and install it, without its dependencies, into a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run([sys.executable, *build], check=True, capture_output=True)
    (wheel,) = folder.glob("draftgate-*.whl")
    target = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


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
    if os.name == "posix":
        modules.append("collector/store/_sqlite_rows")
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
