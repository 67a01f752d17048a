"""Probes: the facts a running engine reports, and the advice on options to switch on."""

from dataclasses import replace
from typing import Any

import pytest
from recorded_answers import SGLANG_0_5_23, answered, chat, document, events, exposition

from collector.contract import Speculation
from engine_adapter.engines.answer import Answer, SpeculationSetup
from engine_adapter.engines.base import Probe
from engine_adapter.engines.llamacpp import LlamaCppEngine, LlamaCppReader
from engine_adapter.engines.lmdeploy import LmdeployEngine
from engine_adapter.engines.scrape import Scrape
from engine_adapter.engines.self_description import SelfDescription, server_root
from engine_adapter.engines.sglang import SglangEngine, SglangReader
from engine_adapter.engines.tensorrt_llm import TensorRtLlmEngine
from engine_adapter.engines.tgi import TgiEngine
from engine_adapter.engines.vllm import VllmEngine, VllmReader


def advised(probe: Probe, words: str) -> bool:
    return any(words in advice for advice in probe.advice)


def vllm(metrics: str, answer: Answer, flags: Any = None) -> SelfDescription:
    documents = {"/version": document("vllm/version.json"), "/models": document("vllm/models.json")}
    if flags is not None:
        documents[VllmEngine.own_routes[1]] = {"vllm_config": {"speculative_config": flags}}
    return SelfDescription(
        documents=documents,
        metrics=Scrape.parse(exposition(metrics)),
        metrics_url="http://h/metrics",
        answer=answer,
        again=answer,
    )


def test_vllm_speculates_where_its_counters_are_and_says_what_it_shows() -> None:
    """Without development mode neither the method nor a lossy rule is visible: both are absent."""
    answer = answered(VllmReader(), *events("vllm/draft.sse"))
    found = VllmEngine.interpret(vllm("vllm/draft_metrics_before.txt", answer))
    assert replace(found, advice=()) == Probe(
        version="0.32.0",
        setup=SpeculationSetup(on=True, configured=Speculation(num_speculative_tokens=4)),
        prefix_cache=True,
        per_request_metrics=True,
        metrics_url="http://h/metrics",
        context_length=1024,
        kv_cache_dtype="auto",
    )
    assert advised(found, "VLLM_SERVER_DEV_MODE=1")


def test_vllm_that_does_not_speculate_has_no_such_counters() -> None:
    """Off is a fact here, not an absence."""
    answer = answered(VllmReader(), document("vllm/baseline.json"))
    found = VllmEngine.interpret(vllm("vllm/baseline_metrics.txt", answer))
    assert found.speculates is False
    assert not advised(found, "--per-request-spec-decode-metrics")


@pytest.mark.parametrize(
    ("rule", "lossless", "synthetic"),
    [
        ("standard", True, False),
        ("block", True, False),
        ("fly", False, False),
        ("synthetic", False, True),
        ("a later one", None, False),
    ],
)
def test_vllm_in_development_mode_shows_its_rule_of_acceptance(
    rule: str, lossless: bool | None, synthetic: bool
) -> None:
    """A lossy or made-up acceptance is recorded, and said in plain words."""
    flags = {"method": "draft_model", "model": "/models/draft", "num_speculative_tokens": 4}
    answer = answered(VllmReader(), *events("vllm/draft.sse"))
    said = vllm("vllm/draft_metrics_before.txt", answer, flags | {"rejection_sample_method": rule})
    probe = VllmEngine.interpret(said)
    configured = probe.setup.configured
    assert (configured.lossless, probe.synthetic_acceptance) == (lossless, synthetic)
    assert (configured.method, configured.draft_model) == ("draft_model", "draft")
    assert advised(probe, rule) == (rule in ("fly", "synthetic"))


def test_vllm_is_told_which_flags_make_each_request_reported() -> None:
    """Speculation without a word in the answer: the flag's name is in the advice."""
    answer = answered(VllmReader(), chat("x"))
    probe = VllmEngine.interpret(vllm("vllm/draft_metrics_before.txt", answer))
    assert advised(probe, "--per-request-spec-decode-metrics summary")
    assert advised(probe, "--enable-per-request-metrics")
    assert probe.per_request_metrics is False


def llamacpp(side: str, cached: int = 0) -> SelfDescription:
    answer = answered(LlamaCppReader(), *events("llamacpp/draft_timings_per_token.sse"))
    return SelfDescription(
        documents={
            "/props": document(f"llamacpp/{side}_props.json"),
            "/slots": document(f"llamacpp/{side}_slots.json"),
        },
        answer=answer,
        again=replace(answer, cached_input_tokens=cached),
    )


def test_llamacpp_slots_say_whether_and_how_it_speculates() -> None:
    """`/slots` has the truth; without `/metrics` the flag that starts them is named."""
    found = LlamaCppEngine.interpret(llamacpp("draft"))
    assert (found.speculates, found.setup.configured.method) == (True, "draft_model")
    assert (found.version, found.context_length) == ("b1-0c1e570", 2048)
    assert (found.prefix_cache, found.setup.configured.lossless) == (False, None)
    assert advised(found, "--metrics")


def test_llamacpp_whose_draft_was_loaded_in_vain_is_told_the_flag() -> None:
    """A draft model without a type of speculation is silently unused."""
    probe = LlamaCppEngine.interpret(llamacpp("baseline"))
    assert probe.speculates is False
    assert advised(probe, "--spec-type draft-simple")


def test_llamacpp_without_slots_is_unknown_and_its_zeros_stay_absent() -> None:
    """Unknown is neither on nor off."""
    said = replace(llamacpp("draft"), documents={})
    found = LlamaCppEngine.interpret(said)
    assert found.speculates is None
    assert advised(found, "--slots")


def test_llamacpp_prefix_cache_shows_in_a_repeated_prompt() -> None:
    """The second of two equal prompts began from the first."""
    probe = LlamaCppEngine.interpret(llamacpp("draft", cached=36))
    assert probe.prefix_cache is True
    assert advised(probe, "--no-cache-prompt")


def test_llamacpp_tells_what_it_samples_by_unasked() -> None:
    """Values that change nothing are left out, and a server without `/props` tells none."""
    found = LlamaCppEngine.interpret(llamacpp("draft"))
    assert found.sampling_defaults == {"top_k": 40, "top_p": 0.95, "min_p": 0.05}
    silent = replace(llamacpp("draft"), documents={})
    assert LlamaCppEngine.interpret(silent).sampling_defaults == {}


def test_llamacpp_tells_the_order_of_its_steps() -> None:
    """A step's parameters stand in its place; without a list the order is unknown."""
    order = LlamaCppEngine.interpret(llamacpp("draft")).sampling_order
    kept = [name for name in order if name in ("top_k", "top_p", "min_p", "temperature")]
    assert kept == ["top_k", "top_p", "min_p", "temperature"]
    assert order.index("repeat_penalty") < order.index("dry_multiplier") < order.index("top_k")
    silent = replace(llamacpp("draft"), documents={})
    assert LlamaCppEngine.interpret(silent).sampling_order is None


SGLANG = {
    "version": "0.5.23",
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_model_path": "/models/eagle",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
    "speculative_accept_threshold_single": 1.0,
    "speculative_accept_threshold_acc": 1.0,
    "disable_radix_cache": True,
    "context_length": 4096,
    "internal_states": [{"avg_spec_accept_length": 2.5}],
}


def sglang(**flags: Any) -> SelfDescription:
    body = chat("x", sglext={"spec_tokens_details": SGLANG_0_5_23})
    answer = answered(SglangReader(), body)
    return SelfDescription(documents={"/server_info": SGLANG | flags}, answer=answer, again=answer)


def test_sglang_chain_has_a_width_that_each_step_proposes() -> None:
    """Top-k 1 without adaptive steps: 4 tokens verified a step are 3 drafts and the last one."""
    found = SglangEngine.interpret(sglang())
    assert found.setup == SpeculationSetup(
        on=True,
        configured=Speculation(
            method="eagle3", draft_model="eagle", num_speculative_tokens=3, lossless=None
        ),
        fixed_width=3,
    )
    assert (found.version, found.prefix_cache) == ("0.5.23", False)
    assert advised(found, "SGLANG_SIMULATE_ACC_LEN")


@pytest.mark.parametrize(
    "flags",
    [
        {"speculative_eagle_topk": 4},
        {"speculative_adaptive": True},
        {"speculative_algorithm": "NGRAM"},
        {"speculative_num_draft_tokens": None},
    ],
)
def test_sglang_trees_ngrams_and_adaptive_steps_have_no_width(flags: dict[str, Any]) -> None:
    """What it calls proposed is then wrong, and left out."""
    found = SglangEngine.interpret(sglang(**flags))
    assert (found.setup.fixed_width, found.speculates) == (None, True)
    assert advised(found, "are left out")


def test_sglang_thresholds_that_were_changed_while_it_ran_are_seen() -> None:
    """The flags at its start say 1; the state now says lossy."""
    changed = [{"speculative_accept_threshold_single": 0.6}]
    found = SglangEngine.interpret(sglang(internal_states=changed))
    assert found.setup.configured.lossless is False
    assert advised(found, "lossy")


def test_sglang_without_an_algorithm_does_not_speculate_and_without_flags_is_unknown() -> None:
    """A null is a no; a route that does not answer is no answer."""
    assert SglangEngine.interpret(sglang(speculative_algorithm=None)).speculates is False
    assert SglangEngine.interpret(SelfDescription()).speculates is None


@pytest.mark.parametrize(
    ("engine", "metric"),
    [
        (TgiEngine, "tgi_request_skipped_tokens_sum"),
        (TensorRtLlmEngine, "trtllm_spec_decode_num_draft_tokens_total"),
        (LmdeployEngine, "lmdeploy:spec_decode_num_drafts_total"),
    ],
)
def test_engines_that_only_count_speculate_once_they_have_counted(engine: Any, metric: str) -> None:
    """A counter at zero says nothing of the flags."""
    for value, speculates in ((3, True), (0, None)):
        said = SelfDescription(metrics=Scrape.parse(f"{metric} {value}\n"), metrics_url="http://h")
        probe = engine.interpret(said)
        assert (probe.speculates, probe.per_request_metrics) == (speculates, False)
        assert advised(probe, "concurrency 1")
    assert engine.interpret(SelfDescription()).speculates is None


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://h:8000/v1", "http://h:8000"),
        ("http://h:8000/v1/", "http://h:8000"),
        ("https://h/team/v1", "https://h/team"),
        ("http://h", "http://h"),
    ],
)
def test_an_engines_own_routes_stand_beside_v1(url: str, root: str) -> None:
    """Also behind a gateway's path."""
    assert server_root(url) == root
