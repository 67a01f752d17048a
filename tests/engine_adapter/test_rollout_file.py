"""Rollout files, good and bad."""

from collections import Counter
from pathlib import Path

import pytest

from collector.contract import Arm, RoutePrice, price_of
from engine_adapter import workload
from engine_adapter.errors import RolloutFileError
from engine_adapter.routes import TransformersRoute
from engine_adapter.run import rollout_file
from engine_adapter.run.load_shape import Load
from engine_adapter.run.rollout_file import CollectorAddress, Rollout, Sampling

GOOD = """
rollout: support-k4
workload: prompts.jsonl
baseline: {engine: transformers, model: target}
candidate: {engine: transformers, model: target, draft_model: draft, num_speculative_tokens: 4}
sampling: {temperature: 0, max_tokens: 64, seed: 7}
load: {concurrency: 2, repeats: 3, order: random, warmup: 1}
collector: {url: "http://localhost:9999"}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "rollout.yaml"
    path.write_text(text)
    return path


def test_paths_are_beside_the_file(tmp_path: Path) -> None:
    """Folders that stand beside the file are found from anywhere; other names stay hub names."""
    (tmp_path / "target").mkdir()
    assert rollout_file.read(write(tmp_path, GOOD)) == Rollout(
        rollout="support-k4",
        workload=str(tmp_path / "prompts.jsonl"),
        baseline=TransformersRoute(model=str(tmp_path / "target")),
        candidate=TransformersRoute(
            model=str(tmp_path / "target"),
            draft_model="draft",
            num_speculative_tokens=4,
        ),
        sampling=Sampling(temperature=0, max_tokens=64, seed=7),
        load=Load(concurrency=2, repeats=3, order="random", warmup=1),
        collector=CollectorAddress(url="http://localhost:9999"),
    )


def test_a_shipped_workload_is_named_like_a_shipped_policy(tmp_path: Path) -> None:
    """It has the three cohorts; a file of that name beside the rollout's wins."""
    text = GOOD.replace("prompts.jsonl", "structured")
    prompts = workload.read(Path(rollout_file.read(write(tmp_path, text)).workload))
    assert Counter(prompt.cohort for prompt in prompts) == {"json": 59, "tool_call": 59, "chat": 59}
    schemas = [prompt.asked_schema for prompt in prompts if prompt.cohort == "json"]
    assert None not in schemas
    assert {prompt.tool_choice for prompt in prompts if prompt.tools} == {"required"}
    (tmp_path / "structured").touch()
    assert rollout_file.read(write(tmp_path, text)).workload == str(tmp_path / "structured")


def test_the_digest_is_of_the_experiment(tmp_path: Path) -> None:
    """A comment changes nothing; a setting does."""
    digest = rollout_file.read(write(tmp_path, GOOD)).digest
    assert rollout_file.read(write(tmp_path, "# why\n" + GOOD)).digest == digest
    changed = GOOD.replace("tokens: 4", "tokens: 5")
    assert rollout_file.read(write(tmp_path, changed)).digest != digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rollout: support-k4", "", "rollout.yaml: rollout: required key is missing"),
        ("warmup: 1", "warmpu: 1", "load.warmpu: unknown key; did you mean `warmup`?"),
        ("engine: transformers", "engine: vllmm", r"baseline.engine: .* \(got 'vllmm'\)"),
        ("repeats: 3", "repeats: 0", r"load.repeats: .*greater than 0 \(got 0\)"),
        ("temperature: 0", "temperature: hot", r"sampling.temperature: .* \(got 'hot'\)"),
        ("http://localhost:9999", "localhost", r"collector.url: .* \(got 'localhost'\)"),
        (
            "model: target}",
            "model: target, num_speculative_tokens: 4}",
            "`num_speculative_tokens` needs a `draft_model`",
        ),
        (
            "model: target}",
            "model: target, relaxed_top_k: 4}",
            "`relaxed_top_k` needs a `draft_model`",
        ),
        (
            "draft_model: draft",
            "draft_model: draft, prompt_lookup_num_tokens: 2",
            "give `draft_model` or `prompt_lookup_num_tokens`, not both",
        ),
    ],
)
def test_a_bad_key_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    """The error is one line with file, key, and the value or the nearest key."""
    with pytest.raises(RolloutFileError, match=message) as caught:
        rollout_file.read(write(tmp_path, GOOD.replace(old, new, 1)))
    assert "\n" not in str(caught.value)


HOUR = "{per_accelerator_hour: 2.5, accelerators: 2}"


def priced(**changes: str) -> str:
    """Return a rollout file with prices, of which some are replaced."""
    keys = {"currency": "USD", "baseline": HOUR, "candidate": HOUR} | changes
    return GOOD + f"prices: {{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}\n"


def test_prices_are_of_the_arms_routes(tmp_path: Path) -> None:
    """By hour or by token, in one currency; the experiment is the same without them."""
    by_token = "{per_million_input_tokens: 0.15, per_million_output_tokens: 0.6}"
    read = rollout_file.read(write(tmp_path, priced(candidate=by_token)))
    assert price_of(read.prices.of(Arm.BASELINE)).per_hour == 5.0
    assert price_of(read.prices.of(Arm.CANDIDATE)) == RoutePrice(
        currency="USD", per_million_input_tokens=0.15, per_million_output_tokens=0.6
    )
    assert read.digest == rollout_file.read(write(tmp_path, GOOD)).digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"currency": "~"}, r"rollout.yaml: prices.currency: .*string"),
        ({"currency": "dollars"}, r"prices.currency: .*\(got 'dollars'\)"),
        ({"canary": HOUR}, "prices.canary: unknown key"),
        ({"candidate": "{per_accelerator_hour: -1}"}, r"prices.candidate.per_.*greater than 0"),
        ({"baseline": "{per_accelerator_hour: .nan}"}, r"prices.baseline.per_.* \(got nan\)"),
        ({"baseline": "{per_accelerator_hour: .inf}"}, r"prices.baseline.per_.*finite"),
        ({"baseline": "{per_hour: 2}"}, r"prices.baseline.per_hour: unknown key"),
        ({"baseline": "{accelerators: 2}"}, "prices.baseline: wanted a price by hour"),
        ({"baseline": "{}"}, "prices.baseline: wanted a price by hour"),
        ({"baseline": "{per_million_output_tokens: 1}"}, "prices.baseline: wanted a price by hour"),
    ],
)
def test_a_bad_price_is_named(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    """The error names the file and the key."""
    with pytest.raises(RolloutFileError, match=message):
        rollout_file.read(write(tmp_path, priced(**changes)))


@pytest.mark.parametrize("missing", ["currency: USD, ", f", candidate: {HOUR}"])
def test_a_missing_price_is_named(tmp_path: Path, missing: str) -> None:
    """Nothing is assumed: no currency, and no price of the other arm."""
    key = missing.strip(", ").split(":")[0]
    with pytest.raises(RolloutFileError, match=f"prices.{key}: required key is missing"):
        rollout_file.read(write(tmp_path, priced().replace(missing, "", 1)))


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: [", "is not YAML"), ("- a", "wanted keys such as `rollout:`"), ("", "wanted keys")],
)
def test_files_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    """A file that is not a YAML mapping is refused in one line."""
    with pytest.raises(RolloutFileError, match=message) as caught:
        rollout_file.read(write(tmp_path, text))
    assert "\n" not in str(caught.value)
    with pytest.raises(RolloutFileError, match="cannot be read: No such file"):
        rollout_file.read(tmp_path / "absent.yaml")
