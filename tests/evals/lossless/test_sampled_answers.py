"""`draftgate audit`: samples of the baseline are quiet, and those of another model alarm."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from twenty_prompts import MODELS, ROOT
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, Content
from demo.collector_process import running
from draftgate.commands import app
from evals.errors import RescoringError
from evals.lossless.rescoring import TransformersRescorer
from evals.lossless.sampled_answers import CUT, ArmAudit
from evals.lossless.sampler_law import law
from evals.lossless.sampling_audit import ALARM
from evals.lossless.seeded_draws import draws

SEED = 45
"""Draws no special token."""
TEMPERATURE = (("temperature", 0.9),)


@pytest.fixture
def audited(
    client: Client,
    random_pair: dict[str, Path],
    generation_of: Any,
    otlp_of: Any,
    tmp_path: Path,
) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Give a function that stores two answers of two words each and audits them."""

    def stored(ids: str | None = None, **fields: Any) -> tuple[int, dict[str, Any]]:
        asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "the order"}]}])
        made = []
        for i in range(2):
            plain = {
                "rollout": "s", "arm": Arm.CANDIDATE, "prompt_id": f"{i}", "repeat": 0,
                "cohort": "c", "temperature": 0.9, "seed": i, "output_tokens": 2,
                "finish_reasons": ("length",), "ttft_s": 0.1,
            }  # fmt: skip
            one = generation_of(i + 1, "thank you", **(plain | fields))
            assert one.content is not None
            content = Content(
                input_messages=asked,
                output_messages=one.content.output_messages,
                output_token_ids=ids,
            )
            made.append(replace(one, content=content))
        client.post_traces(otlp_of(made), content_type="application/json")
        command = ["audit", "s", "--rescore", str(random_pair["target"]), "--json"]
        database = f"sqlite:///{tmp_path / 'draftgate.db'}"
        found = CliRunner().invoke(app, [*command, "--database", database])
        return found.exit_code, json.loads(found.stdout)

    return stored


@pytest.mark.parametrize(
    ("fields", "answers", "left_out"),
    [
        ({}, 2, {}),
        ({"seed": 5}, 1, {"with the seed of an earlier answer": 1}),
        ({"temperature": 0.0}, 0, {"greedy, or of unknown temperature": 2}),
        ({"error_type": "timeout"}, 0, {"failed": 2}),
        ({"output_tokens": 7}, 0, {"cut into other tokens than were sampled": 2}),
        ({"sampler": "top_p=0.9 min_p=0.05 temperature=0.9"}, 2, {}),
        ({"sampler": "temperature=0.9 xtc=0.5 dry=1"}, 0, {"sampled by dry, xtc": 2}),
        ({"sampler": "temperature=0"}, 0, {"with a sampler that cannot be read": 2}),
        ({"sampler": "warm"}, 0, {"with a sampler that cannot be read": 2}),
        ({"sampler": "temperature=1 min_p=nan"}, 0, {"with a sampler that cannot be read": 2}),
        ({"output_tokens": 7, "ids": "1,2"}, 0, {"cut into other tokens than were sampled": 2}),
        ({"ids": "1,999999"}, 0, {"with token ids that the model does not have": 2}),
        ({"ids": "1,-2"}, 2, {}),
    ],
)
def test_what_cannot_be_used_is_left_out_and_counted(
    audited: Callable[..., Any], fields: Any, answers: int, left_out: Any
) -> None:
    """And being quiet over few tokens is inconclusive, never a pass."""
    code, document = audited(**fields)
    assert (code, document["outcome"]) == (3, "inconclusive")
    assert (document["answers"], document["left_out"]) == (answers, left_out)
    assert document["tokens"] == 2 * answers


@pytest.mark.slow
def test_real_samples_of_a_speculating_route(tmp_path: Path) -> None:
    """They are quiet under the target that verified them, and alarm under the draft alone."""
    document = {
        "rollout": "sampled",
        "workload": str(ROOT / "demo" / "workload.jsonl"),
        "baseline": {"engine": "transformers", "model": str(MODELS / "target")},
        "candidate": {"engine": "transformers", "model": str(MODELS / "target"),
                      "draft_model": str(MODELS / "draft"), "num_speculative_tokens": 3},
        "sampling": {"max_tokens": 40, "temperature": 1.2},
        "load": {"warmup": 0, "max_prompts": 24},
    }  # fmt: skip
    file = tmp_path / "rollout.yaml"
    file.write_text(yaml.safe_dump(document))
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        ran = CliRunner().invoke(app, ["run", str(file), "--collector", url, "--no-journal"])
        assert ran.exit_code == 0, ran.stderr
        command = ["audit", "sampled", "--collector", url, "--rescore"]
        own = CliRunner().invoke(app, [*command, str(MODELS / "target")])
        other = CliRunner().invoke(app, [*command, str(MODELS / "draft")])
    assert own.exit_code == 3, own.stdout
    assert "candidate: quiet over" in own.stdout
    assert other.exit_code == 3, other.stdout
    assert "the baseline's own alarm, too" in other.stdout


def test_the_engine_s_own_tokens_are_audited(audited: Callable[..., Any]) -> None:
    """Though the text would be cut into fewer."""
    _, document = audited(ids="1,2,3", output_tokens=3)
    assert (document["answers"], document["tokens"], document["left_out"]) == (2, 6, {})


def drawn(rescorer: TransformersRescorer, prompt: list[int], seed: int) -> str:
    """Return the text of twelve tokens that llama.cpp would draw with the seed."""
    tokens: list[int] = []
    for number in draws(seed, 12):
        logits = rescorer.next_logits([*prompt, *tokens])[None]
        tokens.append(int(np.searchsorted(law(logits, TEMPERATURE)[0].cumsum(), number)))
    return " ".join(rescorer.shown(token).strip("'") for token in tokens)


@pytest.mark.parametrize(("other", "answers"), [(None, 1), ("north", 0)])
def test_tokens_that_the_seed_confirms_are_audited_whatever_the_engine_counts(
    random_pair: dict[str, Path], generation_of: Any, other: str | None, answers: int
) -> None:
    """A wrong count is then the engine's. With a word that the seed does not give, none is."""
    rescorer = TransformersRescorer(random_pair["target"])
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "the order"}]}])
    prompt = rescorer.prompt_tokens(asked)
    assert prompt is not None
    words = drawn(rescorer, prompt, SEED).split()
    assert len(words) == 12
    words[6] = other or words[6]
    one = generation_of(
        1, " ".join(words), provider="llama_cpp", seed=SEED, sampler="temperature=0.9",
        temperature=0.9, output_tokens=14, finish_reasons=("length",),
    )  # fmt: skip
    assert one.content is not None
    one = replace(one, content=replace(one.content, input_messages=asked))
    found = ArmAudit(rescorer, 0.005).take(one)
    assert (found.tokens, found.seeded_tokens) == ((12, 12) if answers else (None, None))
    assert found.left_out == (None if answers else CUT)
    if answers:
        tokens = rescorer.tokens(" ".join(words))
        laws = law(rescorer.answer_logits(prompt, tokens), TEMPERATURE)
        assert found.uncertain == pytest.approx(sum(1 - max(row) for row in laws))
        assert 0 < found.uncertain < 12


def sampled(
    target: TransformersRescorer, draft: TransformersRescorer, prompt: list[int], seed: int
) -> str:
    """Return the ids of twelve tokens whose rejected drafts are drawn again from the target."""
    rng, tokens = np.random.default_rng(seed), list[int]()
    while len(tokens) < 12:
        p, q = (
            law(one.next_logits([*prompt, *tokens])[None], TEMPERATURE)[0]
            for one in (target, draft)
        )
        token = int(rng.choice(len(q), p=q))
        accepted = rng.random() < p[token] / q[token]
        tokens.append(token if accepted else int(rng.choice(len(p), p=p)))
    return ",".join(map(str, tokens))


@pytest.mark.slow
def test_the_draft_model_shows_what_the_tokens_alone_do_not(
    random_pair: dict[str, Path], generation_of: Any
) -> None:
    """A rejected draft token drawn again from the target: too many tokens are the draft's."""
    target = TransformersRescorer(random_pair["target"])
    draft = target.draft(random_pair["draft"])
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "the order"}]}])
    prompt = target.prompt_tokens(asked)
    assert prompt is not None
    alone, both = ArmAudit(target, 0.005), ArmAudit(target, 0.005, draft=draft)
    for seed in range(60):
        one = generation_of(
            1, "", provider="transformers", seed=seed, sampler="temperature=0.9",
            temperature=0.9, output_tokens=12, finish_reasons=("length",),
        )  # fmt: skip
        ids = sampled(target, draft, prompt, seed)
        content = Content(input_messages=asked, output_messages=one.content.output_messages,
                          output_token_ids=ids)  # fmt: skip
        tokens, drafted = (audit.take(replace(one, content=content)) for audit in (alone, both))
    assert tokens.log_e is not None
    assert drafted.log_e is not None
    assert tokens.log_e < np.log(ALARM) < drafted.log_e


def test_a_draft_with_another_tokenizer_is_refused(random_pair: dict[str, Path]) -> None:
    """Its distributions would be of other tokens."""
    target = TransformersRescorer(random_pair["target"])
    with pytest.raises(RescoringError, match="its tokenizer is not"):
        target.draft(random_pair["stranger"])


@pytest.mark.slow
def test_a_candidate_that_samples_from_another_model_fails(tmp_path: Path) -> None:
    """By `audit` and by `gate --rescore`, which without the model decides nothing and says why."""
    target = {"engine": "transformers", "model": str(MODELS / "target")}
    document = {
        "rollout": "other",
        "workload": str(ROOT / "demo" / "workload.jsonl"),
        "baseline": target,
        "candidate": target | {"model": str(MODELS / "draft")},
        "sampling": {"max_tokens": 40, "temperature": 0.8},
        "load": {"warmup": 0, "max_prompts": 24},
    }
    file, rules = tmp_path / "rollout.yaml", tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(document))
    rules.write_text(
        "version: 1\nname: p\nvalidity: {speculation: optional}\n"
        "lossless: {sampled: {tolerance: 0.005}}\n"
        "prove: [{metric: failures, stat: diff, max: 0.30, scope: pooled}]\n"
    )
    with running(tmp_path / "d.db", tmp_path / "log") as url:
        ran = CliRunner().invoke(app, ["run", str(file), "--collector", url, "--no-journal"])
        assert ran.exit_code == 0, ran.stderr
        gate = ["gate", "other", "--policy", str(rules), "--collector", url]
        plain = CliRunner().invoke(app, gate)
        zipped, model = str(tmp_path / "b.zip"), ["--rescore", str(MODELS / "target")]
        rescored = CliRunner().invoke(app, [*gate, *model, "--bundle", zipped, "--json"])
        audited = CliRunner().invoke(app, ["audit", "other", "--collector", url, *model])
    assert plain.exit_code == 3, plain.stdout
    assert "nobody audited the tokens of 24 sampled pairs" in " ".join(plain.stdout.split())
    assert rescored.exit_code == 1, rescored.stdout
    (found,) = (f for f in json.loads(rescored.stdout)["findings"] if f["stat"] == "e_value")
    assert found["outcome"] == "fail"
    assert "ALARM over" in found["message"]
    assert CliRunner().invoke(app, ["verify", zipped]).exit_code == 0
    assert audited.exit_code == 1, audited.stdout
    assert "ALARM over" in audited.stdout
