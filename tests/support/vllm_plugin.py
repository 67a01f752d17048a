"""`draftgate-vllm`, installed into a folder from which vLLM finds its entry point."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "packages" / "vllm"


def install(folder: Path) -> dict[str, str]:
    """Install the plugin into the folder; return the variables with which vLLM finds it there."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--disable-pip-version-check", "--no-index", "--target", str(folder), str(SOURCE)],
        check=True,
    )
    return {"PYTHONPATH": str(folder)}
