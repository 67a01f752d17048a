"""What engines say of their own load while a run lasts, from their pages into the collector."""

import pytest
from metric_samples import sampled
from scripted_server import Reply, Route, Step
from scripted_server import running as serving

from collector.client import Client
from collector.contract import Arm
from engine_adapter.engines.gpu_samples import GpuReader
from engine_adapter.run.engine_samples import MetricsPage, exported

NOBODY = "http://127.0.0.1:1"
NO_GPUS = GpuReader(lambda: None)
PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 900.0
"""


def page(text: str) -> Route:
    reply = Reply([Step.of(text.encode())], headers={"content-type": "text/plain"})
    return Route(reply, path="/metrics")


def vllm_page(root: str) -> MetricsPage:
    return MetricsPage(Arm.CANDIDATE, f"{root}/metrics", "vllm")


def test_gauges_become_samples_of_the_rollout_and_arm(url: str) -> None:
    """Stored with engine, instance, labels, rollout and arm; counters are not asked for."""
    with serving(page(PAGE)) as server:
        tally = sampled(url, vllm_page(server.root), gpus=NO_GPUS, at_least=4)
        assert tally.sent >= 4
        assert tally.failed == 0
        with Client(url) as client:
            found = list(client.samples("vllm:kv_cache_usage_perc"))
    first = found[0]
    assert (first.value, first.service_name, first.instance) == (
        0.25,
        "vllm",
        server.root.removeprefix("http://"),
    )
    assert first.attributes == {
        "engine": "0",
        "model_name": "m",
        "draftgate.rollout": "r",
        "draftgate.arm": "candidate",
    }


def test_a_page_that_fails_is_counted_and_ends_nothing(url: str) -> None:
    """No server, a page that is no metrics, a collector that is gone: each a failed scrape."""
    with serving(page("no {metrics")) as server:
        assert sampled(url, vllm_page(NOBODY), gpus=NO_GPUS, at_least=2).sent == 0
        assert sampled(url, vllm_page(server.root), gpus=NO_GPUS, at_least=2).sent == 0
    with serving(page(PAGE)) as server:
        tally = sampled(NOBODY, vllm_page(server.root), gpus=NO_GPUS, at_least=2)
    assert (tally.sent, tally.failed >= 2) == (0, True)


def test_a_page_that_is_none_is_refused() -> None:
    """Anything but the text format is an error of the scrape."""
    with pytest.raises(ValueError, match=r".+"):
        exported("no {metrics", MetricsPage(Arm.BASELINE, "http://a/metrics", "vllm"), "r", 1)
