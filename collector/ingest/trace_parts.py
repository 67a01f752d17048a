"""Part-by-part decoding of trace bodies; spans that cannot be decoded do not affect others."""

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from collector.content import DROP, ContentPolicy
from collector.errors import OtlpError
from collector.otlp import weight, wire
from collector.otlp.body import Encoding
from collector.otlp.body_parts import PROTOBUF, ResourceSpans, parts
from collector.otlp.json_parts import JSON
from collector.otlp.traces import decode_traces
from collector.store import SpanRows, prepare

_FORMS: Final = {Encoding.PROTOBUF: PROTOBUF, Encoding.JSON: JSON}
_GARBLED = "a {} is garbled: not UTF-8, or nested too deeply"

_HEAVY: Final = (
    f"a span, or its resource or scope, holds more than {weight.MOST_IN_SPAN} attributes, events, "
    "links and values"
)


class DecodedPart(NamedTuple):
    """The decoded content of one part."""

    rows: tuple[SpanRows, ...]
    rejected: tuple[str, ...]
    """The reason for each span that cannot be stored."""


def decode_parts(body: bytes, encoding: Encoding, content: ContentPolicy) -> Iterator[DecodedPart]:
    """Yield the decoded parts of a body.

    Raises `OtlpError` if the body is no protobuf or JSON, or if none of its spans can be decoded.
    """
    fault, is_usable = None, False
    heavy: list[str] = []
    for part in parts(body, _FORMS[encoding], partial(_move_heavy, heavy, encoding)):
        try:
            decoded = _decode(part, encoding, content)
            is_usable = True
        except OtlpError as exc:
            decoded = _decode_usable(part, encoding, content)
            fault, is_usable = exc, is_usable or bool(decoded.rows)
        yield decoded
    if heavy:
        yield DecodedPart((), tuple(heavy))
    if fault is not None and not is_usable:
        raise fault


def _move_heavy(rejected: list[str], encoding: Encoding, found: list[ResourceSpans]) -> None:
    """Remove the spans that hold too much, and add a reason to `rejected` for each."""
    for resource in found:
        is_heavy = weight.is_heavy_resource(resource.shared, encoding)
        for scope in resource.scopes:
            kept = [] if is_heavy or weight.is_heavy_span(scope.shared, encoding) else scope.spans
            kept = [span for span in kept if not weight.is_heavy_span(span, encoding)]
            rejected += (len(scope.spans) - len(kept)) * (_HEAVY,)
            scope.spans[:] = kept


def _decode(part: bytes, encoding: Encoding, content: ContentPolicy) -> DecodedPart:
    received = decode_traces(part, encoding)
    return DecodedPart(prepare(received.received, content), received.rejected)


def _decode_usable(part: bytes, encoding: Encoding, content: ContentPolicy) -> DecodedPart:
    """Decode the usable spans of a part, testing each span; shared messages are tested once."""
    form = _FORMS[encoding]
    try:
        found = form.resources(part)
    except OtlpError:
        return DecodedPart((), ())
    usable, faults = [], []
    for resource in found:
        of_resource, scopes = _fault(encoding, resource.shared, form.nothing, []), []
        for scope in resource.scopes:
            of_shared = of_resource or _fault(encoding, form.nothing, scope.shared, [])
            kept = []
            for span in scope.spans:
                fault = of_shared or _fault(encoding, form.nothing, form.nothing, [span])
                if fault is None:
                    kept.append(span)
                else:
                    faults.append(fault)
            if kept:
                scopes.append(form.of_spans(scope.shared, kept))
        if scopes:
            usable.append(form.of_scopes(resource.shared, scopes))
    decoded = _decode(form.of_resources(usable), encoding, content)
    return DecodedPart(decoded.rows, (*decoded.rejected, *faults))


def _fault(encoding: Encoding, resource: bytes, scope: bytes, spans: list[bytes]) -> str | None:
    """Return why the spans or their resource or scope cannot be decoded; None if they can."""
    form = _FORMS[encoding]
    body = form.of_resources([form.of_scopes(resource, [form.of_spans(scope, spans)])])
    try:
        if encoding is Encoding.PROTOBUF:
            wire.ExportTraceServiceRequest.FromString(body)
        _decode(body, encoding, DROP)
    except DecodeError:
        return _GARBLED.format("span" if spans else "resource or scope")
    except OtlpError as exc:
        return str(exc)
    return None
