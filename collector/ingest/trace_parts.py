"""Part-by-part decoding of trace bodies; spans that cannot be decoded do not affect others."""

from collections.abc import Iterator
from typing import NamedTuple

from google.protobuf.message import DecodeError

from collector.content import DROP, ContentPolicy
from collector.errors import OtlpError
from collector.ingest.preparation import prepare
from collector.otlp.body import Encoding
from collector.otlp.light_parts import form_of
from collector.otlp.traces import decode_traces
from collector.otlp.weight import Root
from collector.protobuf import wire
from collector.store import SpanRows

_GARBLED = "a {} is garbled: not UTF-8, or nested too deeply"


class DecodedPart(NamedTuple):
    """The decoded content of one part."""

    rows: tuple[SpanRows, ...]
    rejected: tuple[str, ...]
    """The reason for each span that cannot be stored."""


def decode_parts(
    parts: Iterator[bytes], encoding: Encoding, content: ContentPolicy
) -> Iterator[DecodedPart]:
    """Yield the decoded parts of a body.

    Raises `OtlpError` if there are parts, and none of their spans can be decoded.
    """
    fault, is_usable = None, False
    for part in parts:
        try:
            decoded = _decode(part, encoding, content)
            is_usable = True
        except OtlpError as exc:
            decoded = _decode_usable(part, encoding, content)
            fault, is_usable = exc, is_usable or bool(decoded.rows)
        yield decoded
    if fault is not None and not is_usable:
        raise fault


def _decode(part: bytes, encoding: Encoding, content: ContentPolicy) -> DecodedPart:
    received = decode_traces(part, encoding)
    return DecodedPart(prepare(received.received, content), received.rejected)


def _decode_usable(part: bytes, encoding: Encoding, content: ContentPolicy) -> DecodedPart:
    """Decode the usable spans of a part, testing each span; shared messages are tested once."""
    form = form_of(encoding, Root.TRACES)
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
            for span in scope.items:
                fault = of_shared or _fault(encoding, form.nothing, form.nothing, [span])
                if fault is None:
                    kept.append(span)
                else:
                    faults.append(fault)
            if kept:
                scopes.append(form.of_items(scope.shared, kept))
        if scopes:
            usable.append(form.of_scopes(resource.shared, scopes))
    decoded = _decode(form.of_resources(usable), encoding, content)
    return DecodedPart(decoded.rows, (*decoded.rejected, *faults))


def _fault(encoding: Encoding, resource: bytes, scope: bytes, spans: list[bytes]) -> str | None:
    """Return why the spans or their resource or scope cannot be decoded; None if they can."""
    form = form_of(encoding, Root.TRACES)
    body = form.of_resources([form.of_scopes(resource, [form.of_items(scope, spans)])])
    try:
        if encoding is Encoding.PROTOBUF:
            wire.ExportTraceServiceRequest.FromString(body)
        _decode(body, encoding, DROP)
    except DecodeError:
        return _GARBLED.format("span" if spans else "resource or scope")
    except OtlpError as exc:
        return str(exc)
    return None
