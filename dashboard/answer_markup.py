"""HTML of answers with marks: where two diverge, which tokens differ, what the context supports.

Only this module and `markup` write tags; every piece of text passes through `markup.text`.
"""

from collections.abc import Iterable, Sequence

from collector.contract import ScoredSpan
from dashboard.divergence import Divergence
from dashboard.markup import Html, passage, text
from dashboard.token_diff import TextRun, compare

HALF = 0.5
LEGEND = (
    "✓ underlined: supported by the context · "
    "✕ struck through at its edge: not supported, or from where its JSON breaks"
)


def answers(split: Divergence) -> tuple[Html, Html]:
    """Return both answers: common prefix, the fork, then the rest with differing tokens marked."""
    if split.identical:
        return passage(split.common), passage(split.common)
    left, right = compare(split.baseline_rest, split.candidate_rest)
    return _diverging(split.common, left), _diverging(split.common, right)


def supported(answer: str, spans: Sequence[ScoredSpan]) -> Html:
    """Return an answer with the spans marked that were scored separately."""
    return Html(f'<pre class="dg-text">{"".join(_scored(answer, spans))}</pre>')


def _diverging(common: str, rest: Sequence[TextRun]) -> Html:
    fork = '<span class="dg-fork" title="The answers part here">▶</span>'
    tail = "".join(_piece(piece) for piece in rest) if rest else "<i>(ends here)</i>"
    return Html(f'<pre class="dg-text">{text(common)}{fork}{tail}</pre>')


def _piece(piece: TextRun) -> str:
    return text(piece.text) if piece.shared else f"<mark>{text(piece.text)}</mark>"


def _scored(answer: str, spans: Sequence[ScoredSpan]) -> Iterable[str]:
    at = 0
    for span in sorted(spans, key=lambda span: span.start):
        start, end = max(span.start, at), min(span.end, len(answer))
        if start >= end:
            continue
        yield text(answer[at:start])
        good = span.support is not None and span.support >= HALF
        css, sign = ("dg-supported", "✓") if good else ("dg-unsupported", "✕")
        said = "no number" if span.support is None else f"support {span.support:.2f}"
        yield f'<span class="{css}" title="{said}">{sign}\u202f{text(answer[start:end])}</span>'
        at = end
    yield text(answer[at:])
