"""The import rules hold, and refuse planted violations."""

import subprocess
import sys
import tomllib
from copy import deepcopy
from pathlib import Path

import grimp
import pytest
from importlinter.application.use_cases import (
    _register_contract_types,
    create_report,
    read_user_options,
)
from importlinter.application.user_options import UserOptions
from importlinter.configuration import configure
from importlinter.domain.contract import registry

ROOT = Path(__file__).parent.parent
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
FREE = {
    "RestrictedPython", "aiohappyeyeballs", "anyio", "backports", "jsonschema_rs", "litellm",
    "multidict", "pytest", "re2", "uvloop", "yarl",
}  # fmt: skip
"""Third parties that one module or two rest on, whichever these are."""
PLANTED = [
    ("evals.stats.bets", "collector.serving.server", "Other packages know the collector"),
    ("evals.stats.bets", "collector.api", "Other packages know the collector"),
    ("evals.stats.bets", "fastapi", "Importers of fastapi"),
    ("evals.stats.bets", "streamlit", "Importers of streamlit"),
    ("evals.stats.bets", "evals.gate.cells", "Layers of the evaluation"),
    ("evals.stats.bets", "evals.stats.drift", "Layers of evals.stats"),
    ("evals.stats.bets", "engine_adapter.routes", "The demo stands on"),
    ("evals.stats.bets", "sqlalchemy", "Importers of alembic"),
    ("engine_adapter.engines.base", "collector.serving.connections", "Other packages know"),
    ("engine_adapter.engines.base", "collector.client", "The engine adapter asks the collector"),
    ("engine_adapter.engines.base", "engine_adapter.run.replay", "Layers of the engine adapter"),
    ("engine_adapter.run.traces", "torch", "Importers of safetensors"),
    ("engine_adapter.router.decision", "engine_adapter.router.proxy", "Layers of the router"),
    ("engine_adapter.transport.stamped_socket", "engine_adapter.transport.exchanges", "No circles"),
    ("dashboard.words", "numpy", "Importers of numpy"),
    ("dashboard.words", "dashboard.frame", "Layers of the dashboard"),
    ("dashboard.words", "demo.story", "The demo stands on"),
    ("dashboard.charts.look", "dashboard.charts.live", "Layers of dashboard.charts"),
    ("collector.contract.records", "pydantic", "Importers of pydantic"),
    ("collector.contract.records", "collector.settings", "Layers of the collector"),
    ("collector.access.authority", "collector.api.problems", "Layers of the collector"),
    ("collector.store.tables", "collector.store.engine", "Layers of the store"),
    ("collector.store.tables", "collector.otlp.received", "Layers of the collector"),
    ("collector.store.tables", "collector.dialects.vllm", "Importers of the dialects"),
    ("collector.otlp.received", "collector.store.tables", "Layers of the collector"),
    ("collector.api.ids", "clickhouse_connect", "Importers of alembic"),
    ("demo.story", "demo.cli", "Layers of the demo"),
    ("listening.open_connections", "collector.errors", "The demo stands on"),
    ("demo.story", "training.groundedness.fit", "The demo stands on"),
]


@pytest.fixture(scope="module")
def options() -> UserOptions:
    """Return the rules of the project."""
    configure()
    options = read_user_options(str(ROOT / "pyproject.toml"))
    _register_contract_types(options)
    return options


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return the project's imports."""
    return grimp.build_graph(
        *RULES["root_packages"], include_external_packages=True, cache_dir=None
    )


def is_kept(graph: grimp.ImportGraph, options: UserOptions, name: str) -> bool:
    """Say whether the contract is kept; its name, or the beginning of it."""
    begins = [one for one in options.contracts_options if one["name"].startswith(name)]
    found = min(begins, key=lambda one: len(one["name"]))
    contract = registry.get_contract_class(found["type"])(
        name=found["name"], session_options=options.session_options, contract_options=found
    )
    return bool(contract.check(deepcopy(graph), verbose=False).kept)


def test_every_rule_is_kept(options: UserOptions) -> None:
    """The packages import nothing that the rules refuse."""
    assert not create_report(options).contains_failures


@pytest.mark.parametrize(("importer", "imported", "name"), PLANTED)
def test_a_planted_import_falls(
    importer: str, imported: str, name: str, graph: grimp.ImportGraph, options: UserOptions
) -> None:
    """An import against a rule breaks it."""
    planted = deepcopy(graph)
    assert is_kept(planted, options, name)
    planted.add_import(importer=importer, imported=imported)
    assert not is_kept(planted, options, name)


@pytest.mark.parametrize(
    "container",
    [one["containers"][0] for one in RULES["contracts"] if one.get("exhaustive")],
)
def test_a_new_module_falls(container: str, graph: grimp.ImportGraph, options: UserOptions) -> None:
    """A module that no layer names breaks its package's rule."""
    (rule,) = [one for one in RULES["contracts"] if one.get("containers") == [container]]
    planted = deepcopy(graph)
    planted.add_module(f"{container}.planted")
    assert not is_kept(planted, options, rule["name"])


def test_every_package_has_layers() -> None:
    """Each package of the project, within others too, has layers that name all of its modules."""
    files = subprocess.run(
        ["git", "ls-files", "*/__init__.py"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    packages = {
        ".".join(Path(file).parent.parts)
        for file in files
        if Path(file).parts[0] not in {"benchmarks", "packages", "tests"}
    }
    assert {name for name in packages if "." not in name} == set(RULES["root_packages"])
    assert packages == {one["containers"][0] for one in RULES["contracts"] if one.get("exhaustive")}


def test_every_third_party_has_importers(graph: grimp.ImportGraph) -> None:
    """A library that is new to the project is refused until the rules say who may import it."""
    protected = {
        name
        for one in RULES["contracts"]
        for name in one.get("protected_modules", ())
        if "." not in name
    }
    external = {name for name in graph.modules if graph.is_module_squashed(name)}
    assert external - set(sys.stdlib_module_names) - protected == FREE
