"""The parts of vLLM's plugin that need no vLLM; test_real_vllm_plugin.py runs it in one."""

import logging
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import CountSource, Span, conservation
from collector.contract.codec import decode
from collector.contract.proposed import PROPOSED
from draftgate_vllm import attributes, plugin

MODULE = "vllm.v1.engine.output_processor"


@dataclass
class RequestSpecDecodeMetrics:
    """vLLM's, as far as it is read."""

    num_spec_tokens: int = 2
    histogram: list[int] = field(default_factory=lambda: [1, 0, 2])
    num_draft_tokens: int = 6


@dataclass
class State:
    """A finished request's state, as far as it is read."""

    spec_decode_metrics: Any = field(default_factory=RequestSpecDecodeMetrics)
    parent_req: object = None


def output_processor(sent: list[dict[str, Any]]) -> ModuleType:
    """Return a module with what vLLM 0.32.0's has: a method that hands a span's parts on."""
    module = ModuleType(MODULE)

    def instrument_manual(**parts: Any) -> None:
        sent.append(parts)

    class OutputProcessor:
        def do_tracing(self, output: object, state: State, stats: object) -> None:
            del output, state, stats
            module.instrument_manual(span_name="llm_request", attributes={"gen_ai.request.n": 1})  # type: ignore[attr-defined]

    for item in (RequestSpecDecodeMetrics, OutputProcessor, instrument_manual):
        setattr(module, item.__name__, item)
    return module


@pytest.fixture
def sent() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def module(sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = output_processor(sent)
    for name in ("vllm", "vllm.v1", "vllm.v1.engine"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, MODULE, made)
    monkeypatch.setattr(sys.modules["vllm.v1.engine"], "output_processor", made, raising=False)
    monkeypatch.delenv("DRAFTGATE_PROPOSED_CONVENTIONS", raising=False)
    plugin._warn_once.cache_clear()
    return made


def traced(module: ModuleType, state: object) -> None:
    module.OutputProcessor().do_tracing(None, state, None)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_the_attributes_keep_the_contracts_laws(steps: list[tuple[int, int]]) -> None:
    """The collector reads each of them, and finds nothing wrong with any steps."""
    histogram = [0] * 6
    drafted = 0
    for more, accepted in steps:
        histogram[accepted] += 1
        drafted += accepted + more
    counts = RequestSpecDecodeMetrics(5, histogram, drafted)
    named = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in attributes.attributes_of(counts, proposed=True).items()
    }
    decoded = decode(
        Span(
            trace_id="a" * 32,
            span_id="b" * 16,
            name="llm_request",
            start_unix_ns=0,
            end_unix_ns=1,
            attributes=named,
        )
    )
    said = decoded.generation.speculation
    assert (decoded.problems, decoded.generation.quality) == ((), ())
    assert (said.steps, said.draft_tokens, said.num_speculative_tokens) == (len(steps), drafted, 5)
    assert said.accepted_tokens == sum(accepted for _, accepted in steps)
    assert said.accepted_tokens_per_pos == tuple(
        sum(accepted > place for _, accepted in steps) for place in range(5)
    )
    assert said.source == CountSource.REQUEST
    assert conservation.counts_usable(decoded.generation)


def test_proposed_names_are_the_projects() -> None:
    """The package stands alone, so it repeats them."""
    assert attributes.PROPOSED == PROPOSED


@pytest.mark.parametrize("switch", ["", "false", "true"])
def test_a_requests_counts_are_on_its_span(
    module: ModuleType, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    """Beside vLLM's own attributes, once, however often vLLM loads the plugin."""
    monkeypatch.setenv("DRAFTGATE_PROPOSED_CONVENTIONS", switch)
    plugin.register()
    plugin.register()
    traced(module, State())
    wanted = attributes.attributes_of(RequestSpecDecodeMetrics(), proposed=switch == "true")
    assert sent == [
        {"span_name": "llm_request", "attributes": {"gen_ai.request.n": 1, **wanted}},
    ]


@pytest.mark.parametrize(
    "state",
    [State(spec_decode_metrics=None), State(parent_req=object())],
    ids=["no counts", "one of several choices"],
)
def test_absent_counts_stay_absent(
    module: ModuleType, sent: list[dict[str, Any]], state: State
) -> None:
    """Nor does a request keep the counts of the one before it."""
    plugin.register()
    traced(module, State())
    traced(module, state)
    assert sent[1]["attributes"] == {"gen_ai.request.n": 1}


def test_a_count_of_nothing_is_a_count(module: ModuleType, sent: list[dict[str, Any]]) -> None:
    """Nothing was drafted for a request of a server that speculates."""
    plugin.register()
    traced(module, State(RequestSpecDecodeMetrics(2, [0, 0, 0], 0)))
    assert sent[0]["attributes"]["spec_decode.num_draft_tokens"] == 0
    assert sent[0]["attributes"]["spec_decode.num_steps"] == 0


def test_counts_of_another_form_leave_the_span_as_it_was(
    module: ModuleType, sent: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    """A warning, once, and each request is served."""
    plugin.register()
    for _ in range(2):
        traced(module, State(RequestSpecDecodeMetrics(2, "none", 0)))  # type: ignore[arg-type]
        traced(module, object())
    assert [parts["attributes"] for parts in sent] == [{"gen_ai.request.n": 1}] * 4
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize(
    "lacking", ["OutputProcessor", "instrument_manual", "RequestSpecDecodeMetrics", None]
)
def test_another_vllm_is_left_alone(
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    lacking: str | None,
) -> None:
    """One warning says what it lacks; without the module, too."""
    if lacking is None:
        monkeypatch.setitem(sys.modules, "vllm.v1.engine", None)
    else:
        monkeypatch.delattr(module, lacking)
    before = dict(vars(module))
    plugin.register()
    assert vars(module) == before
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert (lacking or "vllm.v1.engine") in record.getMessage()
