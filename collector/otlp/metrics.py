"""OTLP metric bodies to engine samples: the points of engines' gauges and sums."""

import json
import math
from collections.abc import Mapping
from typing import NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    DataPointFlags,
    Metric,
    NumberDataPoint,
)

from collector.contract import AttributeValue, EngineSample, SampleKind
from collector.contract import attributes as a
from collector.contract.names import WANTED_NAME, is_name
from collector.contract.span_json import attributes_to_json
from collector.errors import OtlpError, RejectedError
from collector.otlp import body as otlp_body
from collector.otlp.body import Encoding
from collector.otlp.engine_metrics import is_engine_metric
from collector.protobuf.values import read_attributes

MAX_ATTRIBUTES_CHARACTERS = 4096
"""Longest attributes of one point, as JSON."""

_MAX_UNIX_NS = 2**63 - 1
_NO_VALUE = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
_DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
_SAMPLED = ("gauge", "sum")


class ReceivedSamples(NamedTuple):
    """The decoded samples of one body."""

    samples: tuple[EngineSample, ...]
    ignored: int
    """Number of points of other metrics, of histograms and summaries, and without a value."""
    rejected: tuple[str, ...]
    """The reason for each point that cannot be stored."""


class _Source(NamedTuple):
    """The exporter of a metric."""

    service_name: str | None
    instance: str | None


def decode_metrics(body: bytes, encoding: Encoding) -> ReceivedSamples:
    """Return the engine samples of an export request.

    Raises `OtlpError` if the body cannot be decoded at all. A point that cannot be stored (no
    finite number, no time, names too long) is rejected without affecting the others.
    """
    message = otlp_body.parse(body, encoding, ExportMetricsServiceRequest(), _drop_exemplars)
    samples: list[EngineSample] = []
    rejected: list[str] = []
    ignored = 0
    for resource_metrics in message.resource_metrics:
        source = _source(read_attributes(resource_metrics.resource.attributes))
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                points = _points(metric)
                if metric.WhichOneof("data") not in _SAMPLED or not is_engine_metric(metric.name):
                    ignored += len(points)
                    continue
                for point in points:
                    if point.flags & _NO_VALUE:
                        ignored += 1
                        continue
                    try:
                        samples.append(_sample(point, metric, source))
                    except (RejectedError, OtlpError) as exc:
                        rejected.append(str(exc))
    return ReceivedSamples(tuple(samples), ignored, tuple(rejected))


def _drop_exemplars(document: otlp_body.JsonObject) -> None:
    """Drop exemplars, which are not used: their hexadecimal ids would not parse as protobuf's."""
    for metric in otlp_body.objects(document, "resourceMetrics", "scopeMetrics", "metrics"):
        for data in metric.values():
            if isinstance(data, dict):
                for point in otlp_body.objects(data, "dataPoints"):
                    point.pop("exemplars", None)


def _points(metric: Metric) -> list[NumberDataPoint]:
    kind = metric.WhichOneof("data")
    return list(getattr(metric, kind).data_points) if kind is not None else []


def _source(resource: Mapping[str, AttributeValue]) -> _Source:
    instance = resource.get(a.SERVICE_INSTANCE_ID) or resource.get(a.HOST_NAME)
    service_name = resource.get(a.SERVICE_NAME)
    return _Source(
        _as_text(service_name) if service_name is not None else None,
        _as_text(instance) if instance is not None else None,
    )


def _sample(point: NumberDataPoint, metric: Metric, source: _Source) -> EngineSample:
    for name, text in (
        ("metric name", metric.name),
        ("unit", metric.unit),
        (a.SERVICE_NAME, source.service_name or ""),
        (f"{a.SERVICE_INSTANCE_ID} or {a.HOST_NAME}", source.instance or ""),
    ):
        if not is_name(text):
            raise RejectedError(f"{name}: {WANTED_NAME}")
    if not 0 < point.time_unix_nano <= _MAX_UNIX_NS:
        raise RejectedError("time_unix_nano: wanted Unix nanoseconds from 1 to 2^63 - 1")
    return EngineSample(
        time_unix_ns=point.time_unix_nano,
        service_name=source.service_name,
        instance=source.instance,
        metric=metric.name,
        kind=_kind(metric),
        value=_value(point),
        unit=metric.unit or None,
        attributes=_labels(point),
    )


def _kind(metric: Metric) -> SampleKind:
    if metric.WhichOneof("data") == "gauge":
        return SampleKind.GAUGE
    if metric.sum.aggregation_temporality == _DELTA:
        return SampleKind.DELTA
    return SampleKind.COUNTER if metric.sum.is_monotonic else SampleKind.GAUGE


def _value(point: NumberDataPoint) -> float:
    kind = point.WhichOneof("value")
    if kind is None:
        raise RejectedError("value: absent, and the point is not flagged as carrying none")
    value = float(getattr(point, kind))
    if not math.isfinite(value):
        raise RejectedError("value: wanted a finite number, got NaN or an infinity")
    return value


def _labels(point: NumberDataPoint) -> dict[str, str]:
    values = read_attributes(point.attributes)
    labels = {name: _as_text(value) for name, value in sorted(values.items())}
    if sum(map(len, labels)) + sum(map(len, labels.values())) > MAX_ATTRIBUTES_CHARACTERS:
        raise RejectedError(
            f"attributes: wanted up to {MAX_ATTRIBUTES_CHARACTERS} characters in all"
        )
    return labels


def _as_text(value: AttributeValue) -> str:
    """Return a string unchanged, anything else as JSON, because labels are text."""
    if isinstance(value, str):
        return value
    return json.dumps(attributes_to_json({"": value})[""], ensure_ascii=False, sort_keys=True)
