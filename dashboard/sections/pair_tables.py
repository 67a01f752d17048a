"""Measurements and scores of one pair, both arms per row."""

from zoneinfo import ZoneInfo

from collector.contract import LATENCIES, Generation, Pair, Score
from dashboard import markup, words
from dashboard.markup import Html, TableCell, TableColumn

_Key = tuple[str, str, str]
"""Metric, evaluator, version."""
_SIDES = (TableColumn("Baseline"), TableColumn("Candidate"))


def measurements(pair: Pair, zone: ZoneInfo | None) -> Html:
    """Return tokens, times, acceptance and identity of both arms."""
    sides = [_measured(pair.baseline, zone), _measured(pair.candidate, zone)]
    rows = [[TableCell(name), sides[0][name], sides[1][name]] for name in sides[0]]
    return markup.table("Measurements", (TableColumn("Measured"), *_SIDES), rows, fit="content")


def scores(pair: Pair) -> Html:
    """Return each evaluator's scores of both arms, with explanations."""
    sides = [_by_evaluator(pair.baseline_scores), _by_evaluator(pair.candidate_scores)]
    keys = sorted({*sides[0], *sides[1]})
    if not keys:
        return markup.note("Neither answer has been scored.")
    rows = [
        [
            TableCell(markup.stacked(words.metric(key[0]), _posted(key, sides))),
            *(cell for side in sides for cell in _scored(side.get(key))),
        ]
        for key in keys
    ]
    columns = (
        TableColumn("Metric", "evaluator, version, posted by"),
        TableColumn("Baseline", "0 to 1", number=True),
        TableColumn("Why"),
        TableColumn("Candidate", "0 to 1", number=True),
        TableColumn("Why"),
    )
    return markup.table("Scores", columns, rows, fit="cards")


def _posted(key: _Key, sides: list[dict[_Key, Score]]) -> str:
    """Return the evaluator, its version, and the API keys that posted its scores."""
    _, evaluator, version = key
    posts = [side[key] for side in sides if key in side]
    ids = sorted({post.key_id for post in posts if post.key_id is not None})
    by = f"key {', '.join(ids)}" if ids else ""
    return " · ".join(said for said in (f"{evaluator} {version}".strip(), by) if said)


def _by_evaluator(given: tuple[Score, ...]) -> dict[_Key, Score]:
    return {(score.metric, score.evaluator, score.version): score for score in given}


def _scored(score: Score | None) -> tuple[TableCell, TableCell]:
    if score is None:
        return markup.numeric("no score"), TableCell("")
    if score.value is None:
        return markup.numeric("unscored"), TableCell(score.unscored_reason or "")
    about = " · ".join(said for said in (score.label, score.explanation) if said)
    return markup.numeric(words.score(score.value), score.value), TableCell(about)


def _measured(side: Generation | None, zone: ZoneInfo | None) -> dict[str, TableCell]:
    names = {
        "Input tokens": None if side is None else side.input_tokens,
        "Output tokens": None if side is None else side.output_tokens,
        "Reasoning tokens": None if side is None else side.reasoning_tokens,
    }
    cells = {name: TableCell(words.count(n), n) for name, n in names.items()}
    times = {
        words.capitalized(words.metric(metric)): (
            None if side is None else getattr(side, f"{metric}_s")
        )
        for metric in LATENCIES
    }
    cells |= {name: TableCell(words.milliseconds(s), s) for name, s in times.items()}
    said = {
        "Draft tokens": _speculation(side),
        "Finished": words.ABSENT if side is None else words.listed(side.finish_reasons or ()),
        "Error": words.ABSENT if side is None else side.error_type or "none",
        "Contract": words.ABSENT if side is None else _contract(side),
        "Started": words.ABSENT if side is None else words.moment(side.start_unix_ns, zone),
        "Model": words.ABSENT if side is None else side.request_model or words.ABSENT,
        "Trace": words.ABSENT if side is None else side.trace_id,
    }
    return cells | {name: TableCell(value) for name, value in said.items()}


def _contract(side: Generation) -> str:
    """Return the contract rules that the span violates."""
    return f"broken: {words.listed(side.quality)}" if side.quality else "kept"


def _speculation(side: Generation | None) -> str:
    if side is None:
        return words.ABSENT
    spec = side.speculation
    if spec is None:
        return "did not speculate"
    return words.draft_counts(spec.accepted_tokens, spec.draft_tokens, spec.steps)
