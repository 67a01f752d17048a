"""Choices kept in the address bar, so that a shared link shows the same view."""

from collections.abc import Sequence

import streamlit as st

from dashboard import markup

ALL = "All"
IN_A_ROW = 7
"""Limit on options shown as buttons; more become a drop-down list."""


def get(name: str) -> str | None:
    """Return a choice's value in the address bar."""
    return st.query_params.get(name)


def keep(name: str, value: str | None, default: str | None = None) -> None:
    """Write a choice into the address bar; remove it if it is the default."""
    if value is None or value == default:
        st.query_params.pop(name, None)
    elif get(name) != value:
        st.query_params[name] = value


def choose(
    label: str,
    name: str,
    options: Sequence[str],
    *,
    of: str = "",
    titles: Sequence[str] | None = None,
) -> str:
    """Return the chosen option; the first if the address bar names none.

    `of` keeps the same choice for two things apart, such as two rollouts.
    """
    given = get(name)
    index = options.index(given) if given in options else 0
    value = options[_place(label, f"{name} {of}", titles or options, index)]
    keep(name, value, default=options[0])
    return value


def narrow(
    label: str,
    name: str,
    options: Sequence[str],
    *,
    of: str = "",
    every: str = ALL,
    titles: Sequence[str] | None = None,
) -> str | None:
    """Return the chosen option, or `None` for all of them."""
    given = get(name)
    before = options.index(given) + 1 if given in options else 0
    chosen = _place(label, f"{name} {of}", [every, *(titles or options)], before)
    keep(name, options[chosen - 1] if chosen else None)
    return options[chosen - 1] if chosen else None


def ticked(label: str, name: str, *, of: str = "") -> bool:
    """Return whether a toggle is on; off is not kept in the address bar."""
    on = st.toggle(label, value=get(name) == "1", key=f"{name} {of}")
    keep(name, "1" if on else None)
    return on


def typed(label: str, name: str, *, of: str = "", placeholder: str = "") -> str:
    """Return the typed text; an empty one is not kept in the address bar."""
    value = st.text_input(
        label, value=get(name) or "", key=f"{name} {of}", placeholder=placeholder
    ).strip()
    keep(name, value or None)
    return value


def _place(label: str, key: str, options: Sequence[str], index: int) -> int:
    if len(options) > IN_A_ROW:
        # Unlike buttons, a list does not interpret Markdown in its options.
        listed: int = st.selectbox(
            label, range(len(options)), index, format_func=lambda i: options[i], key=key
        )
        return listed
    chosen = st.segmented_control(
        label,
        options=range(len(options)),
        default=index,
        format_func=lambda i: markup.label(options[i]),
        required=True,
        key=key,
        wrap=True,
    )
    return chosen or 0
