"""`draftgate gate --rescore` end to end: real models answer, and the baseline's logits judge.

The models are tiny and random. In the twin two words have one row of output weights, so that their
logits are equal wherever they stand; a candidate that prefers the other one has changed nothing
that greedy decoding of the baseline would not.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Pair
from demo.collector_process import running
from draftgate.commands import app
from evals import rederivation

POLICY = """
version: 1
name: lossless
lossless: {greedy: {max_tie_gap: auto, hazard_ratio_max: 1.5}}
prove:
  - {metric: failures, stat: diff, max: 0.10, scope: pooled}
"""
PROMPTS = 36
TWINS = ("north", "way")
WORDS = "the order was shipped on monday by north way and will arrive soon"


class Judge:
    """Runs candidates beside the twin, and judges them by the commands."""

    def __init__(self, folder: Path, url: str, target: Path, prompts: list[dict[str, str]]) -> None:
        self.folder, self.url, self.target, self.prompts = folder, url, target, prompts
        self.dtype = "float32"
        self._ran: set[str] = set()

    def __call__(self, name: str, candidate: dict[str, Any], *options: str) -> dict[str, Any]:
        if name not in self._ran:
            self.run(name, candidate)
        zipped = str(self.folder / "b.zip")
        found = self._invoke(
            "gate", name, "--policy", str(self.folder / "policy.yaml"), "--collector", self.url,
            "--json", "--rescore", str(self.target), "--bundle", zipped, *options,
        )  # fmt: skip
        assert self._invoke("verify", zipped).exit_code == 0
        findings = json.loads(found.stdout)["findings"]
        (said,) = (f for f in findings if f["metric"] == "greedy_divergence")
        return {"exit": found.exit_code} | said

    def run(self, name: str, candidate: dict[str, Any]) -> None:
        """Answer the prompts on both routes by `draftgate run`."""
        target = {"engine": "transformers", "model": str(self.target), "dtype": self.dtype}
        lines = "\n".join(map(json.dumps, self.prompts))
        (self.folder / "prompts.jsonl").write_text(lines)
        path = self.folder / f"{name}.yaml"
        document = {
            "rollout": name, "workload": "prompts.jsonl", "baseline": target,
            "candidate": target | candidate, "sampling": {"max_tokens": 16},
            "load": {"warmup": 0},
        }  # fmt: skip
        path.write_text(yaml.safe_dump(document))
        policy = str(self.folder / "policy.yaml")
        command = ("run", str(path), "--collector", self.url, "--no-journal", "--policy", policy)
        ran = self._invoke(*command)
        assert ran.exit_code == 0, ran.stderr
        self._ran.add(name)

    def differing(self, name: str) -> list[str]:
        """Return the prompts whose two texts differ."""
        with Client(self.url) as client:
            pairs = client.pairs(name, content=True, limit=PROMPTS).pairs
        return [p.prompt_id for p in pairs if p.prompt_id is not None and _texts_differ(p)]

    @staticmethod
    def _invoke(*arguments: str) -> Any:
        return CliRunner().invoke(app, [*arguments])


def _texts_differ(pair: Pair) -> bool:
    sides = (pair.baseline, pair.candidate)
    texts = [None if s is None or s.content is None else s.content.output_messages for s in sides]
    assert None not in texts
    return texts[0] != texts[1]


@pytest.fixture(scope="module")
def models(random_pair: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the twin, one that prefers its second twin, and one with noise on all its logits."""
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    folder, made = tmp_path_factory.mktemp("twins"), {}
    for name, scale in (("twin", 1.0), ("other", 1.0 + 3e-7), ("near", 1.0)):
        model = LlamaForCausalLM.from_pretrained(random_pair["target"])
        first, second = AutoTokenizer.from_pretrained(random_pair["target"]).convert_tokens_to_ids(
            list(TWINS)
        )
        with torch.no_grad():
            rows = model.lm_head.weight
            rows[second] = rows[first] * scale
            if name == "near":
                torch.manual_seed(7)
                rows *= 1 + 0.02 * torch.randn_like(rows)
        made[name] = shutil.copytree(random_pair["target"], folder / name)
        model.save_pretrained(made[name])
    return made


@pytest.fixture(scope="module")
def judge(
    models: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Judge]:
    """Give what runs a candidate beside the twin and judges it by the commands."""
    folder, words = tmp_path_factory.mktemp("rescoring"), WORDS.split()
    prompts = [
        {"id": f"p{i:02}", "cohort": "c",
         "prompt": " ".join([words[i % 13], words[i // 13], words[i % 7]])}
        for i in range(PROMPTS)
    ]  # fmt: skip
    (folder / "policy.yaml").write_text(POLICY)
    with running(folder / "d.db", folder / "log") as url:
        yield Judge(folder, url, models["twin"], prompts)


def test_speculation_that_changes_nothing_passes(
    judge: Judge, random_pair: dict[str, Path]
) -> None:
    """A draft whose tokens are verified exactly: every text is the same."""
    found = judge("exact", {"draft_model": str(random_pair["draft"]), "num_speculative_tokens": 3})
    assert (found["exit"], found["outcome"]) == (0, "pass")
    assert f"{PROMPTS} of {PROMPTS} are the same" in found["message"]


def test_a_relaxed_acceptance_fails_by_the_baselines_logits(
    judge: Judge, random_pair: dict[str, Path]
) -> None:
    """Tokens that are no tie are named with prompt, position, both tokens and the gap."""
    draft = {"draft_model": str(random_pair["draft"]), "num_speculative_tokens": 3}
    found = judge("lossy", draft | {"relaxed_top_k": 4})
    assert (found["exit"], found["outcome"]) == (1, "fail")
    assert "are no ties, such as prompt p" in found["message"]
    assert " at token " in found["message"]
    assert ", gap " in found["message"]


def test_ties_are_no_loss(judge: Judge, models: dict[str, Path]) -> None:
    """Texts differ, in words whose logits the baseline holds equal: pass, and it says so.

    The release stays open all the same: a candidate of another model that drafts nothing is none.
    """
    found = judge("tied", {"model": str(models["other"])})
    assert (found["exit"], found["outcome"]) == (3, "pass")
    assert "ties under the baseline" in found["message"]
    assert f"{PROMPTS} of {PROMPTS}" not in found["message"]


def test_a_rescored_verdict_is_derived_again_with_the_model(
    judge: Judge, models: dict[str, Path]
) -> None:
    """As `promote --rescore` does; without the model its ties are unknown, and it differs."""
    judge("again", {"model": str(models["other"])})
    with Client(judge.url) as client:
        stored = client.newest_verdict("again")
        assert stored is not None
        unknown = rederivation.why_not(client, stored)
        assert rederivation.why_not(client, stored, str(judge.target)) is None
    assert unknown is not None
    assert unknown.startswith("derived again it says: inconclusive")


@pytest.mark.slow
def test_the_noise_of_the_control_counts_as_a_tie(
    judge: Judge, models: dict[str, Path], random_pair: dict[str, Path]
) -> None:
    """Gaps as large as between the control's arms are this machine's; larger ones are not."""
    near = {"model": str(models["near"])}
    draft = {"draft_model": str(random_pair["draft"]), "num_speculative_tokens": 3}
    judge("noisy", near)
    assert judge("near", near)["outcome"] == "fail"
    assert judge("near", near, "--control", "noisy")["outcome"] == "pass"
    lossy = judge("lossy", draft | {"relaxed_top_k": 4}, "--control", "noisy")
    assert lossy["outcome"] == "fail"


@pytest.mark.slow
def test_bf16_routes_that_differ_in_one_text_of_twenty(
    models: dict[str, Path], judge: Judge, tmp_path: Path
) -> None:
    """Both routes compute in bfloat16; the one text is shown, and told to be a tie of that dtype.

    The candidate's output weights are off by less than a rounding, as another order of adding is.
    """
    import torch
    from transformers import AutoModelForCausalLM

    folders = {name: shutil.copytree(models["twin"], tmp_path / name) for name in ("one", "two")}
    for name, folder in folders.items():
        model = AutoModelForCausalLM.from_pretrained(models["twin"]).to(torch.bfloat16)
        if name == "two":
            torch.manual_seed(5)
            with torch.no_grad():
                rows = model.lm_head.weight
                rows *= 1 + 2.0**-8 * torch.randn_like(rows)
        model.save_pretrained(folder)
    other = Judge(tmp_path, judge.url, folders["one"], judge.prompts)
    other.dtype = "bfloat16"
    (tmp_path / "policy.yaml").write_text(POLICY)
    candidate = {"model": str(folders["two"])}
    other.run("many", candidate)
    differ = other.differing("many")
    same = [p for p in judge.prompts if p["id"] not in differ]
    assert differ
    assert len(same) >= 19
    other.prompts = [*same[:19], *(p for p in judge.prompts if p["id"] == differ[0])]
    found = other("bf16", candidate)
    assert "19 of 20 are the same (95.0%)" in found["message"]
    assert f"such as prompt {differ[0]} at token" in found["message"]
    assert (found["outcome"], found["reason"], found["n_needed"]) == ("inconclusive", "n", 10)
    assert "1 is a tie under the baseline" in found["message"]
