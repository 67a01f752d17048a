"""The pair explorer: a filtered list, and the two answers to one prompt side by side.

All texts here are untrusted: they are shown as plain text, never as markup.
"""

from collections.abc import Sequence
from http import HTTPStatus
from zoneinfo import ZoneInfo

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from collector.client import Client, ClientError
from collector.contract import Pair, PairKey, RolloutOverview
from dashboard import address, markup, pair_list, reading, rollout_choice, states, words
from dashboard.markup import TableCell, TableColumn
from dashboard.pair_list import PairFilter, PairLine
from dashboard.sections import pair_view
from dashboard.source import Source

READ_MOST = 150_000
"""Up to this many pairs are read at once, to filter and sort them; more are read page by page."""
_OF_MANY = {"regressed": "Regressed, worst first", "all": "All, by prompt id"}
_COLUMNS = (
    TableColumn("Prompt"),
    TableColumn("Repeat", number=True),
    TableColumn("Cohort"),
    TableColumn("Score change", "or failure"),
)


def show(client: Client, source: Source, zone: ZoneInfo | None) -> None:
    """Draw the list, and the pair named in the address bar beside it."""
    overview = rollout_choice.choose(client, source, "pairs")
    if overview is None:
        return
    st.html(markup.title("Pairs", overview.rollout))
    if not (overview.baseline_generations and overview.candidate_generations):
        states.one_arm(overview)
    with st.container(horizontal=True, key="cohort"):
        cohort = address.narrow(
            "Cohort", "cohort", overview.cohorts, of=overview.rollout, every="All cohorts"
        )
    filters = st.container(horizontal=True, key="filters")
    beside, place = st.columns([1, 4])
    with beside, st.container(key="beside"):
        key = _list(client, source, overview, cohort, filters)
    with place, st.container(key="place"):
        if key is None:
            st.html(markup.note("No pair here: choose another filter."))
        else:
            _show_pair(client, overview.rollout, key, zone)


def _list(
    client: Client,
    source: Source,
    overview: RolloutOverview,
    cohort: str | None,
    filters: DeltaGenerator,
) -> PairKey | None:
    if overview.pairs > READ_MOST:
        return _of_many(client, overview, cohort, filters)
    rollout = overview.rollout
    table = reading.pairs(client, reading.stamp(source.address, overview))
    with filters:
        kind = address.choose(
            "Show", "show", list(pair_list.KINDS), of=rollout, titles=list(pair_list.KINDS.values())
        )
        metric = _metric(pair_list.metrics(table), rollout)
        text = address.typed("Prompt id contains", "find", of=rollout)
    wanted = PairFilter(cohort, kind, metric, text)
    page = _page()
    found = pair_list.find(table, wanted, page)
    lower = pair_list.regressions(table, wanted)
    place = f"in {words.count(lower)}, listed first," if lower else "in none"
    pairs = words.counted(found.pairs, "pair")
    st.html(markup.note(f"{pairs}; {place} the candidate scored lower."))
    if not found.lines:
        return None
    key = _choose(found.lines)
    _page_buttons(found, page)
    return key


def _metric(metrics: Sequence[str], rollout: str) -> str | None:
    titles = list(map(words.metric, metrics))
    return address.narrow("Metric", "by", metrics, of=rollout, every="Any", titles=titles)


def _of_many(
    client: Client, overview: RolloutOverview, cohort: str | None, filters: DeltaGenerator
) -> PairKey | None:
    with filters:
        kind = address.choose(
            "Show", "show", list(_OF_MANY), of=overview.rollout, titles=list(_OF_MANY.values())
        )
    if kind == "all":
        return _by_prompt(client, overview, cohort)
    return _by_loss(client, overview, cohort, filters)


def _by_loss(
    client: Client, overview: RolloutOverview, cohort: str | None, filters: DeltaGenerator
) -> PairKey | None:
    rollout, after = overview.rollout, address.get("below")
    asked = address.get("by")
    found = client.regressions(
        rollout, cohort=cohort, metric=asked, limit=pair_list.PAGE, after=after
    )
    with filters:
        metric = _metric(found.metrics, rollout)
    if metric != asked:
        found = client.regressions(rollout, cohort=cohort, metric=metric, limit=pair_list.PAGE)
    st.html(markup.note(pair_list.losses(found, overview.pairs)))
    if not found.regressions:
        st.html(markup.note(f"“{_OF_MANY['all']}” lists every pair, scored or not."))
        return None
    lines = tuple(map(pair_list.line_of_regression, found.regressions))
    key = _choose(lines)
    _cursor_buttons("below", after, found.next)
    return key


def _by_prompt(client: Client, overview: RolloutOverview, cohort: str | None) -> PairKey | None:
    complete = words.counted(overview.pairs, "complete pair")
    st.html(markup.note(f"By prompt id; {complete} in all cohorts."))
    after = address.get("after")
    found = client.pairs(overview.rollout, cohort=cohort, limit=pair_list.PAGE, after=after)
    if not found.pairs:
        return None
    key = _choose(tuple(map(pair_list.line_of, found.pairs)))
    _cursor_buttons("after", after, found.next)
    return key


def _cursor_buttons(name: str, after: str | None, following: str | None) -> None:
    with st.container(horizontal=True):
        _turn("First page", name, None, is_there=after is not None)
        _turn("Next ▶", name, following, is_there=following is not None)


def _choose(lines: tuple[PairLine, ...]) -> PairKey:
    """Draw the list; a pair in the address bar stays chosen even if the list lacks it."""
    keys = [PairKey(line.prompt_id, line.repeat) for line in lines]
    chosen = _key_in_address()
    if chosen is None:
        chosen = keys[0]
        _keep(chosen)
    place = keys.index(chosen) if chosen in keys else None
    with st.container(key="pair-list"):
        st.html(markup.table("Pairs", _COLUMNS, map(_row, lines), current=place))
    _neighbours(keys, -1 if place is None else place)
    return chosen


def _row(line: PairLine) -> list[TableCell]:
    chosen = {"prompt": line.prompt_id, "repeat": str(line.repeat)}
    return [
        TableCell(markup.link("pairs", line.prompt_id, st.query_params.to_dict() | chosen)),
        markup.numeric(words.count(line.repeat)),
        TableCell(words.scope(line.cohort) if line.cohort else "no cohort"),
        TableCell(line.said),
    ]


def _neighbours(keys: Sequence[PairKey], place: int) -> None:
    """Draw buttons, and their keys k and j, that choose the pair above or below."""
    with st.container(horizontal=True):
        for label, shortcut, to in (("Pair above", "k", place - 1), ("Pair below", "j", place + 1)):
            is_there = 0 <= to < len(keys)
            st.button(
                label,
                shortcut=shortcut,
                on_click=_keep,
                args=(keys[to] if is_there else None,),
                disabled=not is_there,
                width="stretch",
            )


def _keep(key: PairKey) -> None:
    st.query_params.update({"prompt": key.prompt_id, "repeat": str(key.repeat)})


def _key_in_address() -> PairKey | None:
    prompt_id, repeat = address.get("prompt"), address.get("repeat")
    if prompt_id is None or repeat is None or not repeat.isdecimal():
        return None
    return PairKey(prompt_id, int(repeat))


def _page() -> int:
    page = address.get("page")
    return int(page) - 1 if page is not None and page.isdecimal() and int(page) > 0 else 0


def _page_buttons(found: pair_list.FilteredPage, page: int) -> None:
    last = found.first + len(found.lines)
    shown = f"{words.span_of(found.first + 1, last)} of {words.count(found.pairs)}"
    with st.container(horizontal=True, vertical_alignment="center", key="turn"):
        _turn("◀ Previous", "page", str(page), is_there=page > 0)
        st.html(markup.note(shown), width="content")
        _turn("Next ▶", "page", str(page + 2), is_there=last < found.pairs)


def _turn(label: str, name: str, to: str | None, *, is_there: bool) -> None:
    """Draw a button that goes to another page of the list."""
    st.button(label, on_click=_go_to, args=(name, to), disabled=not is_there, width="stretch")


def _go_to(name: str, value: str | None) -> None:
    """Go to another page and choose its first pair."""
    for chosen in ("prompt", "repeat"):
        st.query_params.pop(chosen, None)
    address.keep(name, value, default="1" if name == "page" else None)


def _show_pair(client: Client, rollout: str, key: PairKey, zone: ZoneInfo | None) -> None:
    pair, withheld = _fetch(client, rollout, key)
    if pair is None:
        st.html(markup.note("This pair is no longer in the collector: choose another."))
        return
    if withheld:
        states.without_content()
    pair_view.show(client, pair, zone, withheld=withheld)


def _fetch(client: Client, rollout: str, key: PairKey) -> tuple[Pair | None, bool]:
    """Return the pair, and whether its text is withheld because the key may not read it."""
    try:
        return client.pair(rollout, key.prompt_id, key.repeat, content=True), False
    except ClientError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
    return client.pair(rollout, key.prompt_id, key.repeat), True
