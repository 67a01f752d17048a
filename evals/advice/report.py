"""Render the advice for a terminal of 80 columns, and as JSON."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from collector.contract import to_document
from evals.advice.records import Action, Advice, Estimate, ScopeAdvice
from evals.report.drafting_words import adaptation_words
from evals.report.plain_table import plain_table
from evals.stats.significant import significant

_STYLES = {
    Action.KEEP: "green",
    Action.CHANGE_K: "cyan",
    Action.DISABLE: "red",
    Action.UNKNOWN: "yellow",
}
_WORDS = {
    Action.KEEP: "keep",
    Action.CHANGE_K: "change k",
    Action.DISABLE: "disable",
    Action.UNKNOWN: "not enough evidence",
}
_UNJUDGED = "Nobody judged whether the answers are as good: without a verdict nothing may serve."
_JUDGED = "By speed, and no more than the newest verdict allows: {answer} for the release."


def to_json(advice: Advice) -> str:
    """Return the advice as JSON with sorted keys; unknown values are null."""
    document = _rounded(to_document(advice))
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


def print_advice(console: Console, advice: Advice) -> None:
    """Print each scope's advice, then tables of the numbers behind it."""
    console.print(Text(f"Advice on {advice.rollout}", style="bold"))
    for scope in advice.scopes:
        style = _STYLES[scope.action]
        line = Text.assemble(
            "• ", name(scope), ": ", (_words(scope), f"bold {style}"), f": {scope.reason}"
        )
        console.print(line)
    for adaptation in advice.load_adaptations:
        console.print(Text(adaptation_words(adaptation), style="yellow"))
    for lack in _missing(advice):
        console.print(Text(lack, style="dim"))
    console.print(_observed(advice))
    if note := prediction_note(advice.scopes):
        console.print(Text(note, style="dim"))
    console.print(_steps(advice))
    console.print(_by_k(advice))
    console.print(Text(f"\n{basis(advice)}", style="dim"))


def basis(advice: Advice) -> str:
    """Return a sentence on the verdict that the advice is limited by."""
    judged = next((scope.judged for scope in advice.scopes if scope.cohort is None), None)
    return _UNJUDGED if judged is None else _JUDGED.format(answer=judged.value)


def prediction_note(scopes: Sequence[ScopeAdvice]) -> str | None:
    """Return a sentence if predictions lie outside the observed limits; `None` if none does."""
    beyond = [name(scope) for scope in scopes if _is_beyond(scope)]
    if not beyond:
        return None
    return (
        "The prediction counts accepted tokens and the cost of a step alone. It lies outside the "
        f"observed limits in {', '.join(beyond)}: there, other time differs too, so go by the "
        "observed."
    )


def _is_beyond(scope: ScopeAdvice) -> bool:
    seen, predicted = scope.tpot_speedup, scope.predicted_tpot_speedup
    if seen is None or predicted is None or seen.lower is None or seen.upper is None:
        return False
    return not seen.lower <= predicted <= seen.upper


def name(scope: ScopeAdvice) -> str:
    """Return a scope's name."""
    cohort = "all" if scope.cohort is None else scope.cohort
    return cohort if scope.load is None else f"{cohort}, {scope.load[0]}–{scope.load[1]} in flight"


def _words(scope: ScopeAdvice) -> str:
    if scope.action is Action.KEEP and scope.k is not None:
        return f"keep k = {scope.k}"
    return _WORDS[scope.action]


def _missing(advice: Advice) -> list[str]:
    """Return a line for each kind of missing evidence, with the scopes that lack it."""
    lacking: dict[str, list[str]] = {}
    for scope in advice.scopes:
        for evidence in scope.missing:
            lacking.setdefault(evidence, []).append(name(scope))
    count = len(advice.scopes)
    return [
        f"missing{'' if len(scopes) == count else ' in ' + ', '.join(scopes)}: {evidence}"
        for evidence, scopes in lacking.items()
    ]


def _observed(advice: Advice) -> Table:
    table = _table(
        "Time, candidate ÷ baseline (limits one-sided, 95 % each)",
        ("Pairs", "End to end", "Each token", "Predicted"),
    )
    for s in advice.scopes:
        left_out = f" (+{s.left_out:,} left out)" if s.left_out else ""
        table.add_row(
            escape(name(s)),
            f"{s.pairs:,}{left_out}",
            _limits(s.e2e_speedup),
            _limits(s.tpot_speedup),
            _number(s.predicted_tpot_time),
        )
    return table


def _steps(advice: Advice) -> Table:
    table = _table(
        "Verify steps: tokens, milliseconds, wasted drafts",
        ("k", "Steps", "Tokens", "Needed", "Base", "Step", "Wasted", "Gap from"),
    )
    for s in advice.scopes:
        here = next((f.tokens_a_step for f in s.by_k if f.k == s.k), None)
        share = None if s.wasted is None else s.wasted.share
        table.add_row(
            escape(name(s)),
            "–" if s.k is None else str(s.k),
            f"{s.steps:,}",
            _number(here.estimate if here else None),
            _number(s.break_even_tokens_a_step),
            _number(None if s.cost is None else s.cost.baseline_step_s * 1000),
            _number(None if s.cost is None else s.cost.step_s * 1000),
            "–" if share is None else f"{share:.0%}",
            "–" if s.gap is None else s.gap.side,
        )
    return table


def _by_k(advice: Advice) -> Table:
    """Show E(k), and a token's time if the cost is known; extrapolated values are in brackets."""
    longest = max((len(s.acceptance_survival) for s in advice.scopes), default=0)
    ks = sorted({1, 2, 3, 4, 6, 8, longest, 2 * longest} - {0})
    ks = [k for k in ks if k <= 2 * longest]
    table = _table(
        "Tokens per step (extrapolated: in brackets), and time per token ÷ the baseline's",
        tuple(f"k={k}" for k in ks),
    )
    for s in advice.scopes:
        by_k = {f.k: f for f in s.by_k}
        cells = []
        for k in ks:
            f = by_k.get(k)
            tokens = _number(f.tokens_a_step.estimate if f and f.tokens_a_step else None)
            speed = f"\n{1 / f.tpot_speedup.estimate:.2f}×" if f and f.tpot_speedup else ""
            cells.append((f"({tokens})" if f and f.extrapolated else tokens) + speed)
        table.add_row(escape(name(s)), *cells)
    return table


def _table(title: str, numbers: tuple[str, ...]) -> Table:
    return plain_table(f"\n{title}", ("Scope",), numbers)


def _limits(speedup: Estimate | None) -> str:
    if speedup is None:
        return "–"
    found = speedup.inverse()
    if found.lower is None or found.upper is None:
        return f"{found.estimate:.2f}"
    return f"{found.estimate:.2f} ({found.lower:.2f}–{found.upper:.2f})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _rounded(value: Any) -> Any:  # Any: a JSON value
    if isinstance(value, float):
        return significant(value)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
