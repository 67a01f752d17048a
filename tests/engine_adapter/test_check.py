"""`draftgate check`: each thing that spoils a comparison is found, on real servers and folders."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rollout_files import invoke, written
from scripted_server import Reply, Route, Step, chat, delta, event, events, json_reply, running

from collector.contract import Arm, Speculation
from engine_adapter.engines import Probe
from engine_adapter.engines.answer import SpeculationSetup
from engine_adapter.preflight.arm_checks import of_arm, of_sampling
from engine_adapter.preflight.arms import ArmFacts
from engine_adapter.preflight.pair_checks import of_load
from engine_adapter.routes import HttpRoute
from engine_adapter.run.requests import request_of
from engine_adapter.run.rollout_file import Rollout, Sampling
from engine_adapter.workload import Prompt

Findings = dict[str, dict[str, str]]


def check(
    folder: Path, baseline: object, candidate: object, **more: object
) -> tuple[int, Findings]:
    """Return the exit code and the findings by check."""
    prompts = [{"id": "p", "cohort": "c", "prompt": "the order was shipped"}]
    arms = {"baseline": baseline, "candidate": candidate}
    path = written(folder, arms | {"sampling": {"max_tokens": 40}} | more, prompts)
    result = invoke("check", path, "--json")
    if result.exit_code == 2:
        return 2, {"": {"message": result.stderr}}
    return result.exit_code, {
        found["check"]: found for found in json.loads(result.stdout)["findings"]
    }


def local(folder: Path, **more: object) -> dict[str, object]:
    return {"engine": "transformers", "model": str(folder)} | more


def copy_of(model: Path, folder: Path, file: str, change: Mapping[str, Any]) -> Path:
    """Copy a model's folder, with keys of one of its JSON files changed."""
    shutil.copytree(model, folder)
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    return folder


def test_a_sound_comparison_has_no_errors(random_pair: dict[str, Path], tmp_path: Path) -> None:
    """A target with and without a draft of its own family: exit code 0."""
    target = local(random_pair["target"])
    code, found = check(tmp_path, target, target | {"draft_model": str(random_pair["draft"])})
    assert (code, found) == (0, {})


@pytest.mark.parametrize(
    ("load", "shown"),
    [
        ({"concurrency": 4}, "`concurrency: 4`"),
        ({"mode": "poisson", "rate": 2}, "`mode: poisson`"),
        ({"concurrency": 1}, None),
        ({}, None),
    ],
)
def test_arms_that_slow_each_other_down_are_noted(
    random_pair: dict[str, Path], tmp_path: Path, load: dict[str, object], shown: str | None
) -> None:
    """One machine, and requests at both arms at once."""
    target = local(random_pair["target"])
    _, found = check(tmp_path, target, target, load=load)
    if shown is None:
        assert "shared_machine" not in found
    else:
        assert found["shared_machine"]["severity"] == "note"
        assert (
            found["shared_machine"]["evidence"] == f"both on this process's cpu, with load {shown}"
        )


def test_arms_on_machines_of_their_own_are_not_noted() -> None:
    """Hosts are compared; ports are not."""
    for urls, noted in (
        (("http://a:1/v1", "http://b:1/v1"), False),
        (("http://a:1/v1", "http://a:2/v1"), True),
    ):
        arms = {
            arm: {"engine": "vllm", "url": url, "model": "m"}
            for arm, url in zip(Arm, urls, strict=True)
        }
        document = {"rollout": "r", "workload": "w", "load": {"concurrency": 2}} | arms
        assert bool([*of_load(Rollout.model_validate(document))]) is noted


def test_models_that_differ_are_found(random_pair: dict[str, Path], tmp_path: Path) -> None:
    """Vocabulary, chat template, stop token, context and number format, each by its name."""
    target = random_pair["target"]
    code, found = check(tmp_path, local(target), local(random_pair["stranger"], dtype="bfloat16"))
    assert code == 1
    assert found["tokenizer"]["severity"] == "error"
    assert "vocabulary" in found["tokenizer"]["message"]
    assert found["dtype"]["evidence"] == "float32 and bfloat16"
    assert found["candidate_does_not_speculate"]["severity"] == "warning"
    other = copy_of(target, tmp_path / "other", "config.json", {"max_position_embeddings": 96})
    (other / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    generation = other / "generation_config.json"
    generation.write_text(json.dumps(json.loads(generation.read_text()) | {"eos_token_id": 2}))
    _, found = check(tmp_path, local(target), local(other))
    assert set(found) == {
        "chat_template",
        "context_length",
        "stop_tokens",
        "candidate_does_not_speculate",
    }


def test_a_short_context_and_short_answers_are_found(
    random_pair: dict[str, Path], tmp_path: Path
) -> None:
    """What cannot fit is an error; what speculation cannot help is a warning."""
    target = local(random_pair["target"])
    code, found = check(tmp_path, target, target, sampling={"max_tokens": 127})
    assert (code, "and a context of 128" in found["context_length"]["evidence"]) == (1, True)
    code, found = check(tmp_path, target, target, sampling={"max_tokens": 8})
    assert (code, found["max_tokens"]["severity"]) == (0, "warning")
    assert found["same_route"]["severity"] == "note"


def test_a_lossy_candidate_and_a_large_draft_are_found(
    random_pair: dict[str, Path], tmp_path: Path
) -> None:
    """A relaxed acceptance and a draft larger than its target are warnings."""
    small = local(random_pair["draft"])
    lossy = small | {"draft_model": str(random_pair["target"]), "relaxed_top_k": 4}
    code, found = check(tmp_path, small, lossy)
    assert (code, found["lossy"]["severity"], found["draft_size"]["severity"]) == (
        0,
        "warning",
        "warning",
    )


def served(*routes: Route, usage: int = 7) -> list[Route]:
    tokens = {"prompt_tokens": usage, "completion_tokens": 2}
    return [*routes, Route(chat(["a", "b"], usage=tokens))]


def checked(
    folder: Path,
    baseline: list[Route],
    candidate: list[Route],
    engine: str,
    extra_body: Mapping[str, object] | None = None,
    **more: object,
) -> tuple[int, Findings]:
    """Check two servers of a model."""
    with running(*baseline, models=["m"]) as left, running(*candidate, models=["m"]) as right:
        route = {"engine": engine, "model": "m", "extra_body": extra_body or {}}
        return check(folder, *(route | {"url": one.url} for one in (left, right)), **more)


def test_servers_that_read_differently_are_found(tmp_path: Path) -> None:
    """By their own /tokenize, and by how many tokens the same messages are."""
    one, two = (
        Route(json_reply({"tokens": tokens}), path="/tokenize") for tokens in ([1, 2], [1, 3])
    )
    with (
        running(*served(one), models=["m"]) as left,
        running(*served(two, usage=9), models=["m"]) as right,
    ):
        code, found = check(
            tmp_path,
            {"engine": "openai", "model": "m", "url": left.url},
            {"engine": "openai", "model": "m", "url": right.url, "extra_body": {"min_p": 0.1}},
        )
    assert code == 1
    assert found["tokenizer"]["severity"] == "error"
    assert found["prompt_tokens"]["evidence"] == "7 and 9 input tokens"
    assert found["parameters"]["severity"] == "warning"


def vllm(*, speculates: bool) -> list[Route]:
    """Return a vLLM as it describes itself in development mode."""
    metrics = (
        'vllm:num_requests_running{engine="0"} 0.0\n'
        'vllm:cache_config_info{enable_prefix_caching="True"} 1.0\n'
    )
    config = {}
    if speculates:
        metrics += "vllm:spec_decode_num_drafts_total 0.0\n"
        config = {"method": "ngram", "num_speculative_tokens": 3}
    page = Reply([Step.of(metrics.encode())], headers={"content-type": "text/plain"})
    info = {"vllm_config": {"speculative_config": config}}
    steps = [event(delta({"content": "a"})), event(delta({}, "stop")), event("[DONE]")]
    return [
        Route(page, path="/metrics"),
        Route(json_reply({"version": "0.33.0"}), path="/version"),
        Route(json_reply(info), path="/server_info?config_format=json"),
        Route(events(steps)),
    ]


def test_vllms_own_traps_are_found(tmp_path: Path) -> None:
    """Refused parameters, the prefix cache, and scheduling that only one side has."""
    plain, drafting = vllm(speculates=False), vllm(speculates=True)
    code, found = checked(tmp_path, plain, drafting, "vllm", {"min_p": 0.1})
    assert code == 1
    assert "refuses min_p when it speculates" in found["refused_parameters"]["message"]
    assert "--no-enable-prefix-caching" in found["prefix_cache"]["fix"]
    assert "method ngram" in found["async_scheduling"]["evidence"]


def test_a_request_that_is_refused_is_found(tmp_path: Path) -> None:
    """An arm that does not answer the trial is an error with the server's own words."""
    refusing = Route(json_reply({"error": {"message": "top_k is not allowed"}}, 400))
    code, found = checked(tmp_path, served(), [refusing], "openai")
    assert code in (1, 2)
    assert "top_k is not allowed" in json.dumps(found)


@pytest.mark.parametrize("kind", ["file", "route"])
def test_what_cannot_be_examined_is_exit_2(kind: str, tmp_path: Path) -> None:
    """Neither a bad file nor a server that is not there is a finding."""
    route = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:1/v1"}
    if kind == "file":
        route["enginee"] = "x"
    code, found = check(tmp_path, route, route)
    assert (code, "error:" in found[""]["message"]) == (2, True)


def arm_of(probe: Probe, drafted: Speculation | None = None) -> ArmFacts:
    """Return the facts of a candidate that says so of itself."""
    route = HttpRoute(engine="llamacpp", url="http://localhost:1/v1", model="m")
    return ArmFacts(
        name="candidate", route=route, probe=probe, files=None, draft_files=None, token_ids=None,
        trial=None, drafted=drafted, refusal=None, refused=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("accepted", "found"), [(3, ["acceptance_collapsed"]), (300, []), (None, [])]
)
def test_drafts_that_are_never_accepted_are_told(accepted: int | None, found: list[str]) -> None:
    """A warning with the share; a healthy draft, and unknown counts, have none."""
    drafted = Speculation(draft_tokens=400, accepted_tokens=accepted)
    assert [
        f.check for f in of_arm(arm_of(Probe(setup=SpeculationSetup(on=True)), drafted), 64)
    ] == found


@pytest.mark.parametrize(
    ("sampling", "named"),
    [
        ({"temperature": 0.0}, None),
        ({"temperature": 0.8}, "top_k 40, min_p 0.05"),
        ({"temperature": 0.8, "top_k": 20}, "min_p 0.05"),
        ({"temperature": 0.8, "top_k": 20, "min_p": 0.0}, None),
    ],
)
def test_sampling_defaults_that_requests_leave_out_are_noted(
    sampling: dict[str, float], named: str | None
) -> None:
    """Parameters that requests leave to the server are named with its values."""
    filled = Probe(sampling_defaults={"top_k": 40, "min_p": 0.05})
    arm = arm_of(filled)
    prompt = Prompt(id="p", cohort="c", prompt="the order")
    request = request_of(prompt, Sampling(max_tokens=8, **sampling), None)
    found = list(of_sampling(arm, [request]))
    assert [f.check for f in found] == ([] if named is None else ["sampler_defaults"])
    assert all(named is not None and f"samples by {named} if" in f.message for f in found)


@pytest.mark.parametrize(
    ("defaults", "added", "named"),
    [
        ({"top_k": 40, "min_p": 0.05}, {}, None),
        ({"repeat_penalty": 1.1}, {}, "repeat_penalty"),
        ({}, {"logit_bias": {"5": -100}, "response_format": {"type": "json_object"}},
         "grammar, logit_bias"),
        ({"repeat_penalty": 1.1}, {"temperature": 0}, None),
    ],
)  # fmt: skip
def test_steps_that_no_audit_computes_are_noted(
    defaults: dict[str, float], added: dict[str, object], named: str | None
) -> None:
    """Only if answers are sampled."""
    order = ("repeat_penalty", "top_k", "min_p", "temperature")
    arm = arm_of(Probe(sampling_defaults=defaults, sampling_order=order))
    route = HttpRoute(engine="llamacpp", url="http://localhost:1/v1", model="m", extra_body=added)
    arm = replace(arm, route=route)
    prompt = Prompt(id="p", cohort="c", prompt="the order")
    request = request_of(prompt, Sampling(max_tokens=8, temperature=0.8), None)
    found = [f for f in of_sampling(arm, [request]) if f.check == "sampler_not_modelled"]
    assert len(found) == (named is not None)
    assert all(f"also samples by {named}:" in f.message for f in found)


def listed(owner: str, *, parameters: int = 1000, kind: str = "F16") -> list[Route]:
    """Return a server that says who serves which model, and at which quantisation."""
    meta = {"n_params": parameters}
    models = {"data": [{"id": "m", "owned_by": owner, "meta": meta}]}
    props = {"build_info": "b1", "model_ftype": kind}
    return [
        Route(json_reply(models), path="/v1/models"),
        Route(json_reply(props), path="/props"),
        *served(),
    ]


def test_another_target_is_an_error(random_pair: dict[str, Path], tmp_path: Path) -> None:
    """A smaller one by its files, and by the number of parameters that servers count."""
    code, found = check(tmp_path, local(random_pair["target"]), local(random_pair["draft"]))
    assert (code, found["target"]["severity"]) == (1, "error")
    small = listed("llamacpp", parameters=10)
    code, found = checked(tmp_path, listed("llamacpp"), small, "llamacpp")
    assert (code, found["target"]["evidence"]) == (1, "1,000 parameters and 10 parameters")
    for change in ("quantization", "other"):
        code, found = checked(tmp_path, listed("llamacpp"), small, "llamacpp", change=change)
        assert (code, found["target"]["severity"]) == (1, "error")


def test_other_weights_of_one_size_are_an_error(
    random_pair: dict[str, Path], tmp_path: Path
) -> None:
    """A byte of the weights is enough, unless these are the change."""
    other = tmp_path / "other"
    shutil.copytree(random_pair["target"], other)
    weights = other / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    arms = local(random_pair["target"]), local(other)
    assert check(tmp_path, *arms)[1]["weights"]["severity"] == "error"
    assert "weights" not in check(tmp_path, *arms, change="quantization")[1]
    assert check(tmp_path, *arms, change="other")[1]["weights"]["severity"] == "warning"


def test_a_route_that_names_another_engine_is_an_error(tmp_path: Path) -> None:
    """`engine: vllm` on a llama.cpp server, which its list of models names."""
    code, found = checked(tmp_path, listed("llamacpp"), listed("llamacpp"), "vllm")
    assert (code, found["engine"]["severity"]) == (1, "error")
    assert found["engine"]["fix"].startswith("write `engine: llamacpp`")
    _, found = checked(tmp_path, listed("llamacpp"), listed("llamacpp"), "openai")
    assert "engine" not in found


@pytest.mark.parametrize(
    ("change", "differing", "alike"),
    [
        ("speculation", {"quantization": "error"}, set()),
        ("quantization", {}, {"change_absent"}),
        ("engine_upgrade", {"quantization": "error", "change_absent": "error"}, {"change_absent"}),
        ("kv_cache_dtype", {"quantization": "error", "change_unseen": "note"}, {"change_unseen"}),
        ("other", {"quantization": "warning"}, set()),
    ],
)
def test_arms_differ_in_the_change_alone(
    tmp_path: Path, change: str, differing: dict[str, str], alike: set[str]
) -> None:
    """Each other difference is an error; so is a change that is not there, if anything tells it."""
    names = {"quantization", "change_absent", "change_unseen", "engine", "target", "weights"}
    small = listed("llamacpp", kind="Q8_0")
    _, found = checked(tmp_path, listed("llamacpp"), small, "llamacpp", change=change)
    assert {name: one["severity"] for name, one in found.items() if name in names} == differing
    _, found = checked(tmp_path, listed("llamacpp"), listed("llamacpp"), "llamacpp", change=change)
    assert set(found) & names == alike


def test_a_narrower_number_format_is_a_quantization(
    random_pair: dict[str, Path], tmp_path: Path
) -> None:
    """Even of the same, unquantized weights."""
    target = local(random_pair["target"])
    assert check(tmp_path, target, target | {"dtype": "bfloat16"}, change="quantization") == (0, {})


def test_a_draft_swap_needs_drafts_on_both_arms(
    random_pair: dict[str, Path], tmp_path: Path
) -> None:
    """The baseline too; and speculation is no part of any other change."""
    target = local(random_pair["target"])
    drafting = target | {"draft_model": str(random_pair["draft"])}
    code, found = check(tmp_path, target, drafting, change="draft_swap")
    assert (code, found["baseline_does_not_speculate"]["severity"]) == (1, "error")
    wider = drafting | {"num_speculative_tokens": 2}
    drafting |= {"num_speculative_tokens": 3}
    assert check(tmp_path, drafting, wider, change="draft_swap") == (0, {})
    code, found = check(tmp_path, target, drafting, change="prefix_cache")
    assert (code, found["speculation"]["severity"]) == (1, "error")


def test_a_change_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    """The file, the key and what was wanted."""
    plain = {"engine": "transformers", "model": "m"}
    code, found = check(tmp_path, plain, plain, change="quantisation")
    assert code == 2
    assert "rollout.yaml: change:" in found[""]["message"]
