"""Capacity model: the cores, disk and money per month that Draftgate needs at a request rate.

This is a model, not a measurement: it multiplies figures measured on one machine, each with its
source, by rates and prices given as options. Nothing is guessed: a backend without figures has no
row. Prints a table of rates, and one JSON document last.

    python -m benchmarks.capacity --requests-per-s 1000000 --mirrored 0.1
    python -m benchmarks.capacity --clickhouse-cpu-us 60 --clickhouse-bytes 900
"""

import argparse
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

DAY_S: Final = 86_400
MONTH_DAYS: Final = 30
_LADDER: Final = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_GB: Final = 1e9
_MEASURED_SPAN_BYTES: Final = 3_392
"""Size of the spans of `benchmarks.load.spans`, with which `benchmarks/ingest.py` measured."""
_BESIDE_TEXT_BYTES: Final = 1_024
"""Of these, the bytes that are not prompt or answer."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """One factor of the model."""

    value: float
    unit: str
    source: str
    """Where it was measured, or a note that it was not."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The costs of a span with one database."""

    name: str
    collector_us: Assumption
    database_us: Assumption
    bytes_a_span: Assumption
    spans_per_s: Assumption | None
    """Highest measured rate of one database, over all its collectors; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load to plan for."""

    requests_per_s: float
    mirrored: float
    spans_a_generation: float
    span_bytes: float
    evaluated: float
    retention_days: float
    tokens: float
    usd_a_million_tokens: float | None

    @property
    def mirrored_usd_a_month(self) -> float | None:
        """The cost of the second answers to mirrored requests."""
        if self.usd_a_million_tokens is None:
            return None
        tokens = self.requests_per_s * self.mirrored * self.tokens * DAY_S * MONTH_DAYS
        return tokens / 1e6 * self.usd_a_million_tokens

    @property
    def spans_per_s(self) -> float:
        """Spans of both arms: a mirrored request has two answers."""
        return self.requests_per_s * self.mirrored * 2 * self.spans_a_generation

    @property
    def evaluated_per_s(self) -> float:
        """Answers scored by evaluators."""
        return self.requests_per_s * self.mirrored * 2 * self.evaluated


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The resources that a load needs on one backend."""

    backend: str
    requests_per_s: float
    spans_per_s: float
    collector_cores: float
    database_cores: float
    evaluator_cores: float
    databases: int | None
    """Databases that share the rollouts, each with its own collectors; None if unknown."""
    disk_gb: float
    network_mb_per_s: float
    usd_a_month: float
    """Cost of cores and disk."""
    mirrored_usd_a_month: float | None
    """Cost of the second answers' tokens; None if no price is given."""


def backends(options: argparse.Namespace) -> list[Backend]:
    """Return the backends with measured figures."""
    where = "docs/measurements.md, Collector: benchmarks/ingest.py, spans of 3.4 kB, text kept"
    found = [
        Backend(
            "SQLite",
            Assumption(33, "µs of CPU a span", where),
            Assumption(0, "µs of CPU a span", "in the collector's process"),
            Assumption(2_021, "bytes a span", where),
            Assumption(29_078, "spans/s", where + "; one collector, and no more are possible"),
        ),
        Backend(
            "PostgreSQL",
            Assumption(29, "µs of CPU a span", where),
            Assumption(16, "µs of CPU a span", where),
            Assumption(3_806, "bytes a span", where),
            Assumption(
                23_511, "spans/s", where + "; one collector on two cores: more is not known"
            ),
        ),
    ]
    if options.clickhouse_cpu_us is not None and options.clickhouse_bytes is not None:
        given = "option; docs/scaling.md, Backends measured, has figures of chdb"
        found.append(
            Backend(
                "ClickHouse",
                Assumption(29, "µs of CPU a span", where + "; PostgreSQL's, insert included"),
                Assumption(options.clickhouse_cpu_us, "µs of CPU a span", given),
                Assumption(options.clickhouse_bytes, "bytes a span", given),
                None,
            )
        )
    return found


def shared(options: argparse.Namespace) -> dict[str, Assumption]:
    """Return the assumptions common to all backends."""
    chosen = "option; a choice, not measured"
    return {
        "evaluator_ms": Assumption(
            options.evaluator_ms,
            "ms of CPU an answer",
            "option; docs/evaluators.md, Speed: groundedness in RAGTruth pairs, 6.4 ms; "
            "docs/measurements.md, How right the graders are: a program in the sandbox 47 ms",
        ),
        "utilisation": Assumption(options.utilisation, "of a core's time", chosen),
        "replicas": Assumption(options.replicas, "copies of each byte", chosen),
        "disk_fill": Assumption(options.disk_fill, "of a disk", chosen),
        "usd_core_hour": Assumption(options.usd_core_hour, "US dollars", chosen),
        "usd_gb_month": Assumption(options.usd_gb_month, "US dollars", chosen),
        "growth": Assumption(
            1.0,
            "exponent",
            "CPU and disk grow in proportion to a span's bytes: not measured, and too much for "
            "spans that are longer by text alone, which is compressed",
        ),
    }


def need(load: Load, backend: Backend, common: Mapping[str, Assumption]) -> Need:
    """Return the resources that the load needs."""
    size = (load.span_bytes / _MEASURED_SPAN_BYTES) ** common["growth"].value
    used = common["utilisation"].value
    collector = load.spans_per_s * backend.collector_us.value * size / 1e6 / used
    database = load.spans_per_s * backend.database_us.value * size / 1e6 / used
    evaluator = load.evaluated_per_s * common["evaluator_ms"].value / 1e3 / used
    stored_gb = (
        load.spans_per_s * DAY_S * load.retention_days * backend.bytes_a_span.value * size / _GB
    )
    disk_gb = stored_gb * common["replicas"].value / common["disk_fill"].value
    database *= common["replicas"].value
    cores = collector + database + evaluator
    ceiling = backend.spans_per_s
    return Need(
        backend=backend.name,
        requests_per_s=load.requests_per_s,
        spans_per_s=load.spans_per_s,
        collector_cores=collector,
        database_cores=database,
        evaluator_cores=evaluator,
        databases=None if ceiling is None else math.ceil(load.spans_per_s * size / ceiling.value),
        disk_gb=disk_gb,
        network_mb_per_s=load.spans_per_s * load.span_bytes / 1e6,
        usd_a_month=cores * 24 * MONTH_DAYS * common["usd_core_hour"].value
        + disk_gb * common["usd_gb_month"].value,
        mirrored_usd_a_month=load.mirrored_usd_a_month,
    )


def span_bytes(options: argparse.Namespace) -> float:
    """Return a span's size: as given, or from its tokens of text and its other bytes."""
    if options.span_bytes is not None:
        return float(options.span_bytes)
    return _BESIDE_TEXT_BYTES + float(options.tokens) * float(options.bytes_a_token)


def rows(options: argparse.Namespace) -> Iterator[Need]:
    """Yield the needs of each rate on each backend."""
    rates = _LADDER if options.requests_per_s is None else (options.requests_per_s,)
    common = shared(options)
    for backend in backends(options):
        for rate in rates:
            load = Load(
                requests_per_s=rate,
                mirrored=options.mirrored,
                spans_a_generation=options.spans_a_generation,
                span_bytes=span_bytes(options),
                evaluated=options.evaluated,
                retention_days=options.retention_days,
                tokens=options.tokens,
                usd_a_million_tokens=options.usd_a_million_tokens,
            )
            yield need(load, backend, common)


def table(needs: list[Need]) -> str:
    """Return the rows as a Markdown table."""
    columns = (
        "Backend", "requests/s", "spans/s", "collector cores", "database cores", "evaluator cores",
        "databases", "disk, TB", "in, MB/s", "US dollars a month",
    )  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for one in needs:
        many = "not known" if one.databases is None else f"{one.databases:,}"
        lines.append(
            f"| {one.backend} | {one.requests_per_s:,.0f} | {one.spans_per_s:,.0f} | "
            f"{_number(one.collector_cores)} | {_number(one.database_cores)} | "
            f"{_number(one.evaluator_cores)} | {many} | {_number(one.disk_gb / 1e3)} | "
            f"{_number(one.network_mb_per_s)} | {_number(one.usd_a_month)} |"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    """Return the number with two significant digits, the model's precision."""
    if value == 0:
        return "–"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--requests-per-s", type=float, help="one rate; default: rates from 10 to 1,000,000")
    add("--mirrored", type=float, default=0.1, help="share of requests that both arms answer")
    add("--spans-a-generation", type=float, default=1.0)
    add("--tokens", type=float, default=500, help="tokens of prompt and answer, whose text is kept")
    add("--bytes-a-token", type=float, default=4.4, help="of English text; not measured")
    add("--span-bytes", type=float, help="size of a span in protobuf, instead of the tokens")
    add("--retention-days", type=float, default=30)
    add("--evaluated", type=float, default=1.0, help="share of answers that are scored")
    add("--evaluator-ms", type=float, default=6.4)
    add("--utilisation", type=float, default=0.5)
    add("--replicas", type=float, default=2, help="copies of the database and its disk")
    add("--disk-fill", type=float, default=0.7)
    add("--usd-core-hour", type=float, default=0.04)
    add("--usd-gb-month", type=float, default=0.10)
    add("--usd-a-million-tokens", type=float, help="price of a mirrored request's tokens")
    add("--clickhouse-cpu-us", type=float, help="ClickHouse's CPU time per span")
    add("--clickhouse-bytes", type=float, help="bytes of disk per span in ClickHouse")
    return parser.parse_args(arguments)


def main() -> None:
    """Print the table and the document."""
    options = parsed()
    needs = list(rows(options))
    print(table(needs))
    document = {
        "benchmark": "capacity",
        "options": vars(options),
        "span_bytes": span_bytes(options),
        "assumptions": {
            "shared": {name: asdict(one) for name, one in shared(options).items()},
            "backends": [asdict(one) for one in backends(options)],
        },
        "needs": [asdict(one) for one in needs],
    }
    print(json.dumps(document, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
