"""An engine's span and its client's generation: two exports, one generation."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_generations
import pytest
from chdb_processes import run_steps
from made_generations import generation_of
from otlp_bodies import received
from sqlalchemy import func, select

from collector.contract import Generation, Span, Speculation, encode
from collector.ingest.preparation import prepare
from collector.settings import Settings
from collector.store import Batch, Store, rollouts
from collector.store.evidence import generations
from collector.store.tables import engine_span
from collector.store.upkeep import rollup_check

ENGINE = {
    "gen_ai.latency.time_to_first_token": 0.07,
    "gen_ai.latency.time_in_queue": 0.01,
    "gen_ai.latency.time_in_model_prefill": 0.05,
    "gen_ai.latency.time_in_model_decode": 0.4,
    "gen_ai.usage.prompt_tokens": 12,
    "gen_ai.usage.completion_tokens": 11,
}


@pytest.fixture(params=["sqlite", "clickhouse", "clickhouse-http"])
def store(
    new_settings: Callable[[str], Settings], request: pytest.FixtureRequest
) -> Iterator[Store]:
    settings = new_settings(request.param)
    opened = Store.open(settings.database_url, analytics_url=settings.analytics_url)
    with contextlib.closing(opened):
        yield opened


def engine_span_of(client: Generation, **fields: Any) -> Span:
    """Make vLLM's own span of the client's request."""
    return made_generations.engine_span_of(client, **({"attributes": ENGINE} | fields))


def write(store: Store, *spans: Span) -> None:
    store.write(Batch(spans=prepare(received(spans))))


def stored(store: Store, rollout: str = "k4") -> tuple[Generation, ...]:
    with store.read() as connection:
        wanted = generations.GenerationFilter(rollout)
        return generations.page(connection, wanted, content_of=None, limit=9).records


def waiting(store: Store) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(engine_span)) or 0


@pytest.mark.parametrize("engine_first", [True, False])
def test_whichever_arrives_first_there_is_one_generation(
    store: Store, *, engine_first: bool
) -> None:
    """The engine's times fill fields that the client cannot know, and count in rollups once."""
    client = generation_of(1, service_name=None)
    spans = [encode(client), engine_span_of(client)]
    for span in reversed(spans) if engine_first else spans:
        write(store, span)
    times = {"server_ttft_s": 0.07, "queue_s": 0.01, "prefill_s": 0.05, "decode_s": 0.4}
    assert stored(store) == (replace(client, **times),)
    assert waiting(store) == 0
    for span in spans:  # a retry adds nothing
        write(store, span)
    with store.read() as connection:
        (arm,) = rollouts.summary(connection, "k4")
    counted = {metric.metric: (metric.n, metric.sum) for metric in arm.metrics}
    assert (arm.generations, arm.output_tokens) == (1, 11)
    assert (counted["server_ttft_s"], counted["queue_s"]) == ((1, 0.07), (1, 0.01))
    assert counted["ttft_s"] == (1, 0.5)


COUNTED = {
    "spec_decode.source": "request",
    "spec_decode.num_speculative_tokens": 4,
    "spec_decode.num_steps": 3,
    "spec_decode.num_draft_tokens": 12,
    "spec_decode.num_accepted_tokens": 7,
    "spec_decode.num_accepted_tokens_per_pos": (3, 2, 1, 1),
    "spec_decode.acceptance_histogram": (0, 1, 1, 0, 1),
}
SAID = Speculation(
    source="request",
    num_speculative_tokens=4,
    steps=3,
    draft_tokens=12,
    accepted_tokens=7,
    accepted_tokens_per_pos=(3, 2, 1, 1),
    acceptance_histogram=(0, 1, 1, 0, 1),
)


def counted(store: Store) -> tuple[int | None, ...]:
    """Return a rollout's steps, drafted and accepted tokens."""
    with store.read() as connection:
        assert list(rollup_check.differences(connection)) == []
        (arm,) = rollouts.summary(connection, "k4")
    return arm.spec_steps, arm.spec_draft_tokens, arm.spec_accepted_tokens


@pytest.mark.parametrize("engine_first", [True, False])
@pytest.mark.parametrize("failed", [None, "timeout"])
def test_the_engines_counts_are_the_generations(
    store: Store, failed: str | None, *, engine_first: bool
) -> None:
    """A client that reads no acceptance gets it from the engine's span, counted in rollups once."""
    client = generation_of(1, service_name=None, speculation=None, error_type=failed)
    spans = [encode(client), engine_span_of(client, attributes=ENGINE | COUNTED)]
    for span in reversed(spans) if engine_first else spans:
        write(store, span)
        write(store, span)
    (found,) = stored(store)
    assert found.speculation == SAID
    assert counted(store) == (3, 12, 7)


@pytest.mark.parametrize(
    ("client", "engine"),
    [
        ({"speculation": Speculation(draft_tokens=8, accepted_tokens=2)}, COUNTED),
        ({"speculation": Speculation(draft_tokens=8, accepted_tokens=9)}, COUNTED),
        ({"speculation": None, "output_tokens": 12}, COUNTED),
        ({"speculation": None}, COUNTED | {"spec_decode.num_accepted_tokens": 13}),
    ],
    ids=["client counts", "client counts wrongly", "several choices", "engine counts wrongly"],
)
def test_counts_that_are_not_of_this_answer_stay_out(
    store: Store, client: dict[str, Any], engine: dict[str, Any]
) -> None:
    """The client's own counts stand, and one choice's are not those of all."""
    sent = generation_of(1, service_name=None, **client)
    write(store, encode(sent), engine_span_of(sent, attributes=ENGINE | engine))
    (found,) = stored(store)
    assert (found.speculation, found.queue_s) == (sent.speculation, 0.01)
    counted(store)


def test_many_joined_counts_stay_with_their_answers(store: Store) -> None:
    """One commit joins several engine spans, each to its own client's generation."""
    clients = [generation_of(n, service_name=None, speculation=None) for n in (1, 2)]
    engines = [
        engine_span_of(
            client,
            attributes={
                **ENGINE,
                "spec_decode.num_draft_tokens": 8,
                "spec_decode.num_accepted_tokens": n,
            },
        )
        for n, client in enumerate(clients)
    ]
    write(store, *map(encode, clients), *engines)
    counts = [one.speculation and one.speculation.accepted_tokens for one in stored(store)]
    assert counts == [0, 1]
    assert counted(store) == (None, 16, 1)


def test_what_the_client_said_itself_stays(store: Store) -> None:
    """A time that the client's span has is not replaced by the engine's."""
    client = generation_of(1, server_ttft_s=0.2, service_name=None)
    write(store, encode(client), engine_span_of(client))
    (found,) = stored(store)
    assert (found.server_ttft_s, found.queue_s) == (0.2, 0.01)


def test_spans_between_lead_to_the_nearest_generation(store: Store) -> None:
    """Of two generations in a trace, the one above the engine's span is its client."""
    client, other = (
        generation_of(n, trace_id="a" * 32, service_name=None, prompt_id=f"p{n}") for n in (1, 2)
    )
    between = engine_span_of(client, span_id="b" * 16, name="POST", attributes={})
    engine = engine_span_of(client, parent_span_id=between.span_id)
    write(store, encode(client), encode(other), between, engine)
    assert [found.queue_s for found in stored(store)] == [0.01, None]


def test_a_request_without_a_clients_span_counts_in_the_end(store: Store) -> None:
    """Behind a gateway nobody instrumented, the engine's span is all there is of the request."""
    attributes = ENGINE | {"draftgate.rollout": "k4", "draftgate.arm": "candidate"}
    write(store, engine_span_of(generation_of(1), attributes=attributes))
    with pytest.raises(Exception, match="no rollout"):
        stored(store)
    assert waiting(store) == 1
    assert store.promote_engine_spans(2**40, at_most=10) == 1
    assert waiting(store) == 0
    (found,) = stored(store)
    assert (found.output_tokens, found.queue_s, found.arm) == (11, 0.01, "candidate")


_LATER = """
import os, signal, sys
sys.path[:0] = ["tests/collector", "tests/support"]
from made_generations import generation_of
from test_engine_spans import engine_span_of, stored, waiting
from collector.contract import encode
from collector.settings import Settings
from collector.ingest.preparation import prepare
from collector.store import Batch, Store, rollouts
from collector.store.clickhouse import ClickHouse
from collector.store.upkeep import rollup_check
from chdb_processes import run_steps
from otlp_bodies import received

place, place_of = sys.argv[3], {"insert": "rollup_delta", "alter": "generation"}
store = Store.open(sys.argv[1], analytics_url=sys.argv[2])
client = generation_of(1, service_name=None)
if place != "none":
    store.write(Batch(spans=prepare(received([encode(client)]))))

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def dying(step):
    def then_die(self, table_name, what):
        step(self, table_name, what)
        if table_name == place_of[name] and after:
            die()
    def die_before(self, table_name, what):
        die() if table_name == place_of[name] else step(self, table_name, what)
    return then_die if after else die_before

if place != "none":
    after, name = place.startswith("after"), place.split()[1]
    setattr(ClickHouse, name, dying(getattr(ClickHouse, name)))
store.write(Batch(spans=prepare(received([engine_span_of(client)]))))
store.promote_engine_spans(0, at_most=10)
with store.read() as connection:
    differences = list(rollup_check.differences(connection))
    (arm,) = rollouts.summary(connection, "k4")
counted = [m.n for m in arm.metrics if m.metric in ("server_ttft_s", "queue_s")]
(one,) = stored(store)
print(differences, counted, one.server_ttft_s, one.queue_s, waiting(store))
store.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["before insert", "after insert", "before alter", "after alter"])
def test_a_collector_killed_while_it_joins(tmp_path: Path, place: str) -> None:
    """Wherever it dies on ClickHouse, the times are in the row and in the rollups in the end, once.

    Sent again where it was not acknowledged; upkeep does what is left of a join that was.
    """
    pytest.importorskip("chdb")
    done = run_steps(_LATER, tmp_path, (place, "none"))
    assert done[0].returncode == -signal.SIGKILL, done[0].stderr
    assert done[1].stdout == "[] [1, 1] 0.07 0.01 0\n", done[1].stderr
