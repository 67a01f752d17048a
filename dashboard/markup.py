"""HTML in which every text is escaped; only this module and `answer_markup` write tags.

Names, answers and reasons come from models and untrusted spans. `st.table`, labels and
`st.markdown` would interpret Markdown in them (links, images), so all text goes through here.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import count
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from collector.contract import Outcome
from dashboard import words

Fit = Literal["scroll", "cards", "content"]
_MARKDOWN = set("\\`*_{}[]()#+-.!|<>~$:&=^")


class Html(str):
    """HTML written by this module; any other string is text and gets escaped."""

    __slots__ = ()


class TableCell(NamedTuple):
    """A table cell."""

    shown: str
    """Text or `Html`."""
    exact: float | int | None = None
    """The unrounded number, shown as a tooltip."""
    number: bool = False
    """Align right, with tabular digits."""


class TableColumn(NamedTuple):
    """A table's column."""

    title: str
    note: str = ""
    """A few words under the title."""
    number: bool = False


def text(value: str) -> Html:
    """Return text escaped as HTML; a lone surrogate becomes `?`."""
    return Html(escape(value.encode("utf-8", "replace").decode("utf-8")))


def label(value: str) -> str:
    """Return text escaped for a widget's label, which Streamlit reads as Markdown."""
    plain = " ".join(value.encode("utf-8", "replace").decode("utf-8").split())
    return "".join("\\" + sign if sign in _MARKDOWN else sign for sign in plain)


def numeric(shown: str, exact: float | None = None) -> TableCell:
    """Return a cell that holds a number."""
    return TableCell(shown, exact, number=True)


def outcome(value: Outcome) -> Html:
    """Return an outcome as a coloured icon and word."""
    return Html(f'<span class="dg-outcome dg-{value.value}">{text(words.outcome(value))}</span>')


def rollout_link(rollout: str, page: str = "rollout") -> Html:
    """Return a link with the rollout's name to one of its pages."""
    return link(page, rollout, {"rollout": rollout}, css="dg-name")


def link(page: str, shown: str, query: Mapping[str, str], *, css: str = "dg-link") -> Html:
    """Return a link to one of our own pages; the query may hold untrusted text."""
    given = {name: value.encode("utf-8", "replace") for name, value in query.items()}
    return Html(f'<a class="{css}" href="{page}?{escape(urlencode(given))}">{_inner(shown)}</a>')


def chips(items: Iterable[tuple[Outcome | None, str]]) -> Html:
    """Return small cards in a wrapping row, each in the colour of its outcome."""
    made = "".join(
        f'<li class="dg-chip dg-{"none" if value is None else value.value}">{_inner(shown)}</li>'
        for value, shown in items
    )
    return Html(f'<ul class="dg-chips">{made}</ul>')


def badge(words_shown: str) -> Html:
    """Return a short framed label."""
    return Html(f'<span class="dg-badge">{text(words_shown)}</span>')


def joined(parts: Iterable[str]) -> Html:
    """Return the parts joined by spaces."""
    return Html(" ".join(_inner(part) for part in parts))


def stacked(first: str, second: str) -> Html:
    """Return two lines of one cell, the second one muted."""
    return Html(f'{_inner(first)}<span class="dg-note">{_inner(second)}</span>')


def table(
    caption: str,
    columns: Sequence[TableColumn],
    rows: Iterable[Sequence[TableCell]],
    *,
    fit: Fit = "scroll",
    current: int | None = None,
) -> Html:
    """Return a table whose first cell of each row is the row's header; `current` is marked.

    On a narrow page it scrolls (`scroll`) or turns its rows into cards (`cards`); with `content` it
    is never wider than its content.
    """
    head = "".join(_header(column) for column in columns)
    marks = (' aria-current="true"' if place == current else "" for place in count())
    body = "".join(
        f"<tr{mark}>{''.join(_cells(row, columns))}</tr>"
        for mark, row in zip(marks, rows, strict=False)
    )
    return Html(
        f'<div class="dg-frame" tabindex="0" role="region" aria-label="{text(caption)}">'
        f'<table class="dg-table dg-{fit}">'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return terms and their values in a wrapping row."""
    items = "".join(f"<div><dt>{text(k)}</dt><dd>{_inner(v)}</dd></div>" for k, v in pairs)
    return Html(f'<dl class="dg-facts">{items}</dl>')


def bullets(items: Iterable[str]) -> Html:
    """Return a list of sentences."""
    return Html(f'<ul class="dg-list">{"".join(f"<li>{_inner(i)}</li>" for i in items)}</ul>')


def heading(title: str, level: Literal[2, 3] = 3) -> Html:
    """Return a heading: of a chart, within a section, or with level 2 of a part of the page."""
    return Html(f'<h{level} class="dg-heading">{text(title)}</h{level}>')


def title(name: str, beside: str = "") -> Html:
    """Return a page's title, which may be untrusted text."""
    return Html(f'<h1 class="dg-title">{text(name)} <small>{text(beside)}</small></h1>')


def shortened(value: str, shown: int) -> Html:
    """Return the first `shown` characters of a hash, with all of it as a tooltip."""
    return Html(f'<code title="{text(value)}">{text(value[:shown])}</code>')


def note(sentence: str) -> Html:
    """Return a sentence in muted style."""
    return Html(f'<p class="dg-quiet">{_inner(sentence)}</p>')


def panel(heading: str, sentences: Sequence[str], commands: Sequence[str] = ()) -> Html:
    """Return a panel: a heading, sentences that explain the state, and commands to run next."""
    body = "".join(f"<p>{text(sentence)}</p>" for sentence in sentences)
    code = "".join(f"<pre>{text(command)}</pre>" for command in commands)
    return Html(f'<section class="dg-panel"><h2>{text(heading)}</h2>{body}{code}</section>')


def banner(value: Outcome, headline: str, summary: str) -> Html:
    """Return the verdict, large: icon, word, the deciding cell, and the gate's summary."""
    return Html(
        f'<section class="dg-banner dg-{value.value}" role="status">'
        f'<span class="dg-icon" aria-hidden="true">{words.OUTCOME_ICONS[value]}</span>'
        f'<div><span class="dg-word">{words.OUTCOME_WORDS[value]}</span>'
        f"<p>{text(words.plain(headline))}</p>"
        f'<p class="dg-note">{text(words.plain(summary))}</p></div></section>'
    )


def switch_state(*, off: bool, said: str) -> Html:
    """Return the state of a switch, large: sign, word, who set it and why."""
    css, sign, word = ("off", "■", "Switched off") if off else ("on", "●", "On")
    return Html(
        f'<section class="dg-switch dg-{css}" role="status">'
        f'<span class="dg-word">{sign} {word}</span><p>{text(said)}</p></section>'
    )


def document(name: str, style: str, parts: Iterable[str]) -> str:
    """Return a self-contained page whose Content-Security-Policy forbids scripts and fetches."""
    body = "".join(_inner(part) for part in parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text(name)}</title><style>{style}</style></head>"
        f'<body class="dg-document"><main>{body}</main></body></html>'
    )


def passage(value: str) -> Html:
    """Return untrusted text unchanged, with its line breaks."""
    return Html(f'<pre class="dg-text">{text(value)}</pre>')


def said(role: str, value: str) -> Html:
    """Return a message: its role and its untrusted text unchanged."""
    return Html(f"{note(role)}{passage(value)}")


def _inner(value: str) -> str:
    return value if isinstance(value, Html) else text(value)


def _header(column: TableColumn) -> str:
    css = ' class="dg-number"' if column.number else ""
    under = f'<span class="dg-note">{text(column.note)}</span>' if column.note else ""
    return f'<th scope="col"{css}>{text(column.title)}{under}</th>'


def _cells(row: Sequence[TableCell], columns: Sequence[TableColumn]) -> Iterable[str]:
    for position, (cell, column) in enumerate(zip(row, columns, strict=True)):
        tag, scope = ("th", ' scope="row"') if position == 0 else ("td", "")
        css = "dg-number" if cell.number else "dg-wide"
        exact = "" if cell.exact is None else f' title="{cell.exact!r}"'
        # A narrow page has no header row and shows this before the cell.
        name = text(f"{column.title}, {column.note}" if column.note else column.title)
        attributes = f'{scope} class="{css}" data-column="{name}"{exact}'
        yield f"<{tag}{attributes}>{_inner(cell.shown)}</{tag}>"
