"""TGI's span of a request (`--otlp-endpoint`), whose values are Rust debug output."""

import re
from collections.abc import Iterator
from itertools import chain

from collector.contract import AttributeValue, Decoded, Span, attributes
from collector.dialects.dialect import Dialect
from collector.dialects.translation import Table, Translated, decode_translated, renamed

_DURATION = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)(ns|µs|μs|us|ms|s)", re.ASCII)
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_PARAMETERS = "parameters"
_FIELDS = {
    "temperature": attributes.GEN_AI_REQUEST_TEMPERATURE,
    "top_p": attributes.GEN_AI_REQUEST_TOP_P,
    "top_k": attributes.GEN_AI_REQUEST_TOP_K,
    "max_new_tokens": attributes.GEN_AI_REQUEST_MAX_TOKENS,
}
_FIELD = re.compile(
    r"\b(temperature|top_p|top_k|max_new_tokens): Some\(([0-9][0-9.eE+-]{0,30})\)", re.ASCII
)
_SEED = re.compile(r"Some\((\d{1,20})\)", re.ASCII)


def _seconds(value: AttributeValue) -> AttributeValue:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) * _SECONDS[match[2]] if match else value


def _seed(value: AttributeValue) -> AttributeValue:
    if value == "None":
        return None
    match = _SEED.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else value


# TGI's time per token includes the prefill, so it is not used; its inference time is not split.
_NAMES: Table = {
    "queue_time": (attributes.GEN_AI_LATENCY_TIME_IN_QUEUE, _seconds),
    "seed": (attributes.GEN_AI_REQUEST_SEED, _seed),
}


def _recognise(span: Span) -> Decoded | None:
    if "inference_time" not in span.attributes or "validation_time" not in span.attributes:
        return None
    return decode_translated(span, chain(renamed(span, _NAMES), _parameters(span), _named(span)))


def _parameters(span: Span) -> Iterator[Translated]:
    value = span.attributes.get(_PARAMETERS)
    if value is None:
        return
    if not isinstance(value, str):
        yield Translated(None, value, _PARAMETERS)
        return
    # Stop sequences follow these fields and may contain any text.
    for field, number in _FIELD.findall(value.partition(", stop:")[0]):
        try:
            yield Translated(_FIELDS[field], _number(number), _PARAMETERS)
        except ValueError:
            yield Translated(None, value, _PARAMETERS)


def _number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


def _named(span: Span) -> Iterator[Translated]:
    yield Translated(attributes.GEN_AI_PROVIDER_NAME, "tgi", "inference_time")
    if span.name == "completions":
        yield Translated(attributes.GEN_AI_OPERATION_NAME, "text_completion", "inference_time")


TGI = Dialect(name="tgi", recognise=_recognise, server_side=True)
