"""Each compiled module has an equivalent in Python, which the tests run once without it."""

import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
UNCOMPILED = ROOT / "tests" / "support" / "uncompiled"
COMPILED = {
    "collector/contract/_laws.c": "tests/collector/test_contract_conservation.py",
    "collector/otlp/_span_reader.c": "tests/collector/test_otlp.py",
    "collector/store/_rows.c": "tests/collector/test_store_conformance.py",
    "engine_adapter/transport/_arrivals.c": "tests/engine_adapter/test_transport.py",
}
"""Every source, and the tests that run with its twin in Python."""


def sources() -> set[str]:
    return {str(path.relative_to(ROOT)) for path in ROOT.glob("[!.]*/**/*.c")}


@pytest.mark.skipif(sys.platform != "linux", reason="fewer are compiled elsewhere")
def test_every_source_is_built_and_runs_uncompiled_in_tests() -> None:
    """A new one is named to the build, and `make test-uncompiled` has tests of its twin."""
    hatch_build = pytest.importorskip("hatch_build")
    assert sources() == set(COMPILED) == {str(source) for source in hatch_build._SOURCES}
    run = ["make", "--dry-run", "test-uncompiled"]
    recipe = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for tests in COMPILED.values():
        assert any(fnmatch(tests, word) for word in recipe.split()), tests
    assert "make test-uncompiled\n" in (ROOT / ".ci" / "run").read_text()


def test_nothing_compiled_is_imported_where_it_is_hidden() -> None:
    """Importing what has a compiled twin works without it."""
    modules = [source.removesuffix(".c").replace("/", ".") for source in COMPILED]
    code = (
        "import sys, importlib, collector.cli.serve, engine_adapter.transport.client\n"
        "from collector.otlp import native\n"
        f"print(native.is_compiled(), [sys.modules[name] for name in {modules}])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(UNCOMPILED)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"False {[None] * len(modules)}\n"
