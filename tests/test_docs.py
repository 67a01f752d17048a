"""The docs are complete: every command, option, setting, attribute and route is written down."""

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from typer import Context as TyperContext

from collector.client import Client
from collector.contract import attributes
from collector.contract.fields import WIRE
from collector.serving.app import create_app
from collector.settings import VARIABLES, Settings
from demo.collector_process import running
from deploy.site import files, reference
from deploy.site.markdown import cell
from draftgate.commands import load
from engine_adapter import workload
from engine_adapter.router import routes_file
from engine_adapter.run import rollout_file
from evals import policy as policies

ROOT = Path(__file__).parent.parent
DOCS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
TUTORIAL = "Tutorial: your own vLLM server, start to verdict"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return the site's pages that are made of the code, by file name."""
    return {name: made() for name, made in reference.PAGES.items()}


def section(page: str, heading: str) -> str:
    """Return the page's text from the heading to the next of its level."""
    match = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^\1 |\Z)", page, re.M | re.S)
    assert match, f"no heading {heading!r}"
    return match.group(2)


def is_a_sentence(text: str | None) -> bool:
    """Return whether a help text says something in whole words."""
    return text is not None and re.fullmatch(r"[A-Z`0-9.].{9,}[.)]", text, re.S) is not None


def test_every_command_and_option_is_described(pages: dict[str, str]) -> None:
    """Each option helps with a sentence, which stands in the command's section of the site."""
    missing = []
    for name, command in reference.every_command():
        text = section(pages["commands.md"], f"`{name}`")
        rows = dict(re.findall(r"^\| (`.*?) \| .*? \| (.*) \|$", text, re.M))
        for one in command.params:
            names = [*one.opts, *one.secondary_opts]
            if one.param_type_name == "argument":
                names = [reference.argument(one)]
            shown = rows.get(", ".join(f"`{option}`" for option in names))
            if not is_a_sentence(one.help) or not shown:
                missing.append(f"{name} {names}: {one.help}")
    assert missing == []


def test_every_command_helps_with_an_example() -> None:
    """`--help` of each command shows how to call it."""
    every = reference.every_command()
    assert [name for name, command in every if "Example" not in (command.help or "")] == []


def test_every_route_is_described(pages: dict[str, str]) -> None:
    """Each route has a summary, and each of its parameters a description, on the site's page."""
    missing = []
    for path, operations in create_app(Settings()).openapi()["paths"].items():
        for method, route in operations.items():
            text = section(pages["http.md"], f"`{method.upper()} {path}`")
            if not is_a_sentence(route["summary"]) or (
                "scope" not in text and "no key" not in text
            ):
                missing.append(f"{method} {path}")
            missing += [
                f"{method} {path} {one['name']}"
                for one in route.get("parameters", ())
                if not is_a_sentence(one.get("description")) or f"| `{one['name']}` |" not in text
            ]
    assert missing == []


@pytest.mark.parametrize("name", files.FILES)
def test_every_key_of_a_file_is_described(name: str, pages: dict[str, str]) -> None:
    """Each key of a file has a sentence, which stands in the file's section of the site."""
    title, model = files.FILES[name]
    text, schema = section(pages["files.md"], title), files.schema_of(model)
    every = [item for keys in files.sections(schema) for item in keys.schema["properties"].items()]
    shared = files.schema_of(files.Parameters)["properties"] if name != "parameters" else {}
    missing = [
        key
        for key, value in every
        if not is_a_sentence(value.get("description"))
        or (shared.get(key) != value and f"| {cell(value['description'])}" not in text)
    ]
    assert every
    assert missing == []


@pytest.mark.parametrize(
    "file",
    [*(ROOT / "docs/examples").glob("*.yaml"), *(ROOT / "evals/policies").glob("*.yaml")],
    ids=lambda file: file.name,
)
def test_editors_find_no_fault_in_files_that_are_read(file: Path) -> None:
    """The published schemas accept the examples and the shipped policies."""
    kind = "policy" if file.parent.name == "policies" else "rollout"
    validator = jsonschema_rs.validator_for(files.schemas()[kind])
    given = yaml.safe_load(file.read_text())
    assert [error.message for error in validator.iter_errors(given)] == []
    assert not validator.is_valid(given | {"no_such_key": 1})


def test_the_examples_of_the_reference_are_read(tmp_path: Path) -> None:
    """Each file on the page is valid, for the program and by the schema for editors."""
    page = section((ROOT / "docs" / "reference.md").read_text(), "Files")
    texts = re.findall(r"```(?:yaml|json) title=\"(\S+)\"\n(.*?)```", page, re.S)
    for name, text in texts:
        (tmp_path / name).write_text(text)
    assert len(workload.read(tmp_path / "workload.jsonl")) > 1
    assert rollout_file.read(tmp_path / "rollout.yaml").workload == str(tmp_path / "workload.jsonl")
    assert routes_file.read(tmp_path / "routes.yaml").rollout
    assert policies.load(tmp_path / "policy.yaml").rules
    for name, schema in files.schemas().items():
        given = yaml.safe_load((tmp_path / f"{name}.yaml").read_text())
        assert [e.message for e in jsonschema_rs.validator_for(schema).iter_errors(given)] == []


def test_every_attribute_is_in_the_contract_page() -> None:
    """The page of the wire contract names every attribute of the code."""
    page = (ROOT / "docs" / "telemetry.md").read_text()
    names = [v for k, v in vars(attributes).items() if k.isupper() and k != "SCHEMA_URL"]
    names += [wire.attribute for wire in WIRE.values()]
    assert [name for name in names if f"`{name}" not in page] == []


def test_every_environment_variable_is_described(pages: dict[str, str]) -> None:
    """No variable is read that the site's page of settings does not describe in a sentence."""
    rows = re.findall(r"^\| `([A-Z_]+)` \|(?:.*\|)? (.*) \|$", pages["settings.md"], re.M)
    described = {name for name, text in rows if is_a_sentence(text)}
    packages = ("collector", "dashboard", "demo", "draftgate", "engine_adapter", "evals")
    sources = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    read = {
        name
        for path in sources
        for name in re.findall(r"\"(DRAFTGATE_[A-Z_]+)\"", path.read_text())
    }
    assert sorted(read - described) == []


def test_every_setting_of_the_collector_is_in_the_help_of_serve() -> None:
    """As an option or, without one, among the environment variables at the end."""
    command = load("serve")
    helped = " ".join([command.epilog, *(one.help for one in command.params)])
    assert [one.name for one in VARIABLES.values() if one.name not in helped] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    headings = re.findall(r"^#+ (.*)$", prose, re.M)
    words = [re.sub(r"[^\w -]", "", re.sub(r"\]\([^)]*\)", "", h)).lower() for h in headings]
    return {word.replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A relative link or picture of the docs exists, and so does the heading that it names."""
    lost = []
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for file, anchor in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", prose):
        target = page.parent / file if file else page
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors(target)
        ):
            lost.append(f"{file}#{anchor}")
    assert lost == []


def shell_commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each `draftgate` command in the page's shell blocks."""
    for block in re.findall(r"```(?:sh|bash)\n(.*?)```", page.read_text(), re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip().startswith("draftgate "):
                yield shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_commands_in_the_docs_are_understood(page: Path) -> None:
    """Each sub-command and option that a shell block shows exists."""
    for words in shell_commands(page):
        command: Any = load(words.pop(0))
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        command.make_parser(TyperContext(command)).parse_args(words)


def test_the_tutorials_files_are_valid(tmp_path: Path) -> None:
    """The rollout file and the policy that the tutorial writes are read without complaint."""
    tutorial = section((ROOT / "docs" / "tutorial.md").read_text(), TUTORIAL)
    files = dict(re.findall(r"cat > (\S+) <<'YAML'\n(.*?)YAML\n", tutorial, re.S))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    experiment = rollout_file.read(tmp_path / "rollout.yaml")
    assert experiment.policy in files
    assert policies.by_name(str(tmp_path / "policy.yaml")).name == "first"


@pytest.mark.parametrize(
    "package", ["collector.contract", "engine_adapter.engines", "evals.evaluators"]
)
def test_public_names_are_sorted_and_exist(package: str) -> None:
    """A package's door lists its names once, in order."""
    module = import_module(package)
    assert sorted(set(module.__all__)) == list(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_the_example_of_a_stock_sdk_is_stored(tmp_path: Path) -> None:
    """The code on the page of the wire contract runs, and its generation is there."""
    page = (ROOT / "docs" / "telemetry.md").read_text()
    code, _ = re.findall(r"```python\n(.*?)```", page, re.S)
    with running(tmp_path / "docs.db", tmp_path / "log") as url:
        exec(code.replace("http://localhost:4318", url), {})  # noqa: S102  # our own page
        with Client(url) as client:
            (stored,) = client.generations("support-k4")
    assert (stored.cohort, stored.quality) == ("rag", ())
    assert stored.speculation is not None
    assert stored.speculation.accepted_tokens == 31
