"""Differences of `/metrics` are taken as one request's counts only if no other request ran."""

import pytest
from recorded_answers import exposition

from engine_adapter.engines import llamacpp, lmdeploy, sglang, tensorrt_llm, tgi, vllm
from engine_adapter.engines.scrape import Scrape, ScrapedCounts, counts_between, request_counts


def test_the_recorded_llamacpp_run_drafted_1695_and_accepted_820_tokens_each_time() -> None:
    """20 prompts were answered twice: 3390 and 1640, and 2560 tokens in all."""
    before = Scrape.parse(exposition("llamacpp/draft_metrics_before.txt"))
    after = Scrape.parse(exposition("llamacpp/draft_metrics_after_40.txt"))
    counts = counts_between(before, after, llamacpp.COUNTERS)
    assert (counts.draft_tokens, counts.accepted_tokens) == (2 * 1695, 2 * 820)
    assert counts.steps == 872
    assert counts.accepted_tokens_per_pos == (620, 466, 318, 236)
    assert sum(counts.accepted_tokens_per_pos) == 2 * 820


def test_the_recorded_vllm_run_drafted_four_tokens_in_each_of_440_steps() -> None:
    """20 prompts of 64 tokens; the per-position counts sum to the total."""
    before = Scrape.parse(exposition("vllm/draft_metrics_before.txt"))
    after = Scrape.parse(exposition("vllm/draft_metrics_after_20.txt"))
    assert counts_between(before, after, vllm.COUNTERS) == ScrapedCounts(
        steps=440,
        draft_tokens=1760,
        accepted_tokens=853,
        draft_tokens_per_pos=None,
        accepted_tokens_per_pos=(313, 241, 171, 128),
    )
    # Twenty requests are not one, so they are nobody's.
    assert request_counts(before, after, vllm.COUNTERS, 1280) is None


VLLM = """
vllm:num_requests_running{{engine="0"}} {running}
vllm:num_requests_waiting{{engine="0"}} 0
vllm:generation_tokens_total{{engine="0"}} {tokens}
vllm:request_success_total{{finished_reason="stop"}} {stopped}
vllm:request_success_total{{finished_reason="length"}} {cut}
vllm:spec_decode_num_drafts_total{{engine="0"}} {steps}
vllm:spec_decode_num_draft_tokens_total{{engine="0"}} {drafted}
vllm:spec_decode_num_accepted_tokens_total{{engine="0"}} {accepted}
"""
BEFORE = {
    "running": 0,
    "tokens": 100,
    "stopped": 3,
    "cut": 1,
    "steps": 40,
    "drafted": 160,
    "accepted": 60,
}
AFTER = BEFORE | {"tokens": 120, "cut": 2, "steps": 48, "drafted": 192, "accepted": 71}


def scraped(values: dict[str, int]) -> Scrape:
    return Scrape.parse(VLLM.format(**values))


def test_one_request_of_the_answers_tokens_between_idle_scrapes_is_the_answers() -> None:
    """Steps, drafted and accepted tokens are the differences."""
    counts = request_counts(scraped(BEFORE), scraped(AFTER), vllm.COUNTERS, 20)
    assert counts == ScrapedCounts(8, 32, 11, None, None)


@pytest.mark.parametrize(
    "change",
    [
        {"running": 1},  # another one still runs
        {"cut": 3},  # another one ended
        {"tokens": 121},  # another one generated
        {"tokens": 100, "cut": 1},  # not counted yet
        {"tokens": 19, "cut": 0},  # the engine began anew
    ],
)
def test_whatever_else_ran_leaves_the_counts_absent(change: dict[str, int]) -> None:
    """Nothing is shared out between requests."""
    after = scraped(AFTER | change)
    assert request_counts(scraped(BEFORE), after, vllm.COUNTERS, 20) is None
    busy = scraped(BEFORE | {"running": 1})
    assert request_counts(busy, scraped(AFTER), vllm.COUNTERS, 20) is None
    assert request_counts(scraped(BEFORE), scraped(AFTER), vllm.COUNTERS, None) is None


def test_tgi_counts_a_step_a_sample_and_the_prefill_is_one() -> None:
    """The metric is named after requests; its count is of steps, its sum of accepted tokens."""
    page = """
# TYPE tgi_request_skipped_tokens summary
tgi_request_skipped_tokens{{quantile="0.5"}} 1
tgi_request_skipped_tokens_sum {accepted}
tgi_request_skipped_tokens_count {steps}
tgi_request_generated_tokens_sum {tokens}
tgi_request_generated_tokens_count {requests}
tgi_batch_current_size 0
tgi_queue_size 0
"""
    before = Scrape.parse(page.format(accepted=10, steps=30, tokens=40, requests=2))
    after = Scrape.parse(page.format(accepted=19, steps=41, tokens=60, requests=3))
    # 20 tokens = 11 forward passes, the prefill's among them, + 9 accepted.
    counts = request_counts(before, after, tgi.COUNTERS, 20)
    assert counts == ScrapedCounts(10, None, 9, None, None)


def test_sglang_counts_verify_calls_and_no_more() -> None:
    """Its draft-token metric is the configured width; accepted tokens have no counter."""
    page = """
sglang:num_running_reqs{{model_name="m"}} 0
sglang:num_queue_reqs{{model_name="m"}} 0
sglang:generation_tokens_total{{model_name="m"}} {tokens}
sglang:num_requests_total{{model_name="m"}} {requests}
sglang:spec_verify_calls_total{{model_name="m"}} {steps}
sglang:spec_num_draft_tokens{{model_name="m"}} 4
"""
    before = Scrape.parse(page.format(tokens=5, requests=1, steps=3))
    after = Scrape.parse(page.format(tokens=25, requests=2, steps=11))
    counts = request_counts(before, after, sglang.COUNTERS, 20)
    assert counts == ScrapedCounts(8, None, None, None, None)


def test_tensorrt_llm_and_lmdeploy_count_drafted_and_accepted_tokens() -> None:
    """By their own names; positions are sorted as numbers."""
    page = """
trtllm_num_requests_running{{model_name="m"}} 0
trtllm_generation_tokens_total{{model_name="m"}} {tokens}
trtllm_e2e_request_latency_seconds_count{{model_name="m"}} {requests}
trtllm_spec_decode_num_draft_tokens_total{{model_name="m"}} {drafted}
trtllm_spec_decode_num_accepted_tokens_total{{model_name="m"}} {accepted}
trtllm_spec_decode_accepted_tokens_total{{model_name="m",token_position="10"}} 0
trtllm_spec_decode_accepted_tokens_total{{model_name="m",token_position="2"}} {accepted}
"""
    first = {"tokens": 1, "requests": 1, "drafted": 8, "accepted": 2}
    second = {"tokens": 21, "requests": 2, "drafted": 40, "accepted": 13}
    pages = [page.format(**values) for values in (first, second)]
    before, after = map(Scrape.parse, pages)
    assert request_counts(before, after, tensorrt_llm.COUNTERS, 20) == ScrapedCounts(
        None, 32, 11, None, (11, 0)
    )
    renamed = [
        text.replace("trtllm_", "lmdeploy:").replace("token_position", "position") for text in pages
    ]
    assert request_counts(*map(Scrape.parse, renamed), lmdeploy.COUNTERS, 20) == ScrapedCounts(
        None, 32, 11, None, None
    )


def test_a_page_that_is_no_exposition_is_refused() -> None:
    """HTML of a proxy is not an engine without counters."""
    with pytest.raises(ValueError, match="html"):
        Scrape.parse("<html><body>502 Bad Gateway</body></html>")
