"""The parts of a body without the items that hold too much; nothing is decoded before."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from collector.otlp import weight
from collector.otlp.body import Encoding
from collector.otlp.body_parts import MOST_ITEMS, PROTOBUF, BodyEncoding, ResourceItems, parts
from collector.otlp.json_parts import JSON
from collector.otlp.weight import Root

WHOLE_BYTES: Final = 128 * 1024
"""Bodies up to this length are not split: no item of them can hold too much."""
_WHOLE_IF_LIGHT_BYTES: Final = 2 * 2**20
"""Light protobuf bodies up to this length are not split: that would be a tenth of their cost."""


class LightParts(NamedTuple):
    """The parts of a body."""

    parts: Iterator[bytes]
    heavy: int
    """Number of items that hold more than `weight.MOST_IN_ITEM`, or whose resource or scope do."""
    units: int
    """Weight of the others; 0 for a small body."""


def light_parts(body: bytes, encoding: Encoding, root: Root) -> LightParts:
    """Return the parts of a body.

    Raises `BodyTooLargeError` if it holds too much in all, `OtlpError` if it cannot be split.
    """
    if len(body) <= WHOLE_BYTES:
        return LightParts(iter((body,)), 0, 0)
    if encoding is Encoding.PROTOBUF and len(body) <= _WHOLE_IF_LIGHT_BYTES:
        units = weight.units_if_light(body, root, MOST_ITEMS)
        if units is not None:
            return LightParts(iter((body,)), 0, units)
    units = weight.units(body, encoding, root)
    form = form_of(encoding, root)
    found = form.resources(body)
    heavy, heavy_units = _remove_heavy(found, encoding, root)
    return LightParts(parts(found, form), heavy, max(0, units - heavy_units))


def form_of(encoding: Encoding, root: Root) -> BodyEncoding:
    """Return how bodies of a signal are split and assembled."""
    return JSON[root] if encoding is Encoding.JSON else PROTOBUF


def _remove_heavy(found: list[ResourceItems], encoding: Encoding, root: Root) -> tuple[int, int]:
    """Remove the items that hold too much; return their number and weight."""
    heavy = units = 0
    for resource in found:
        of_resource = weight.units_if_heavy(resource.shared, encoding, root.resource)
        units += of_resource
        for scope in resource.scopes:
            of_scope = weight.units_if_heavy(scope.shared, encoding, root.scope)
            units += of_scope
            kept = []
            for item in scope.items:
                of_item = weight.units_if_heavy(item, encoding, root.scope)
                units += of_item
                if not (of_resource or of_scope or of_item):
                    kept.append(item)
            heavy += len(scope.items) - len(kept)
            scope.items[:] = kept
    return heavy, units
