"""Sign-in by OpenID Connect, if Streamlit's secrets configure it."""

from collections.abc import Mapping

import streamlit as st
from streamlit.errors import StreamlitSecretNotFoundError

from dashboard import markup


def configured() -> bool:
    """Return whether `.streamlit/secrets.toml` has an `[auth]` section."""
    try:
        return isinstance(st.secrets.get("auth"), Mapping)
    except StreamlitSecretNotFoundError:
        return False


def is_allowed() -> bool:
    """Return whether the viewer may see pages; if not, draw the sign-in button."""
    if not configured() or st.user.is_logged_in:
        return True
    st.html(
        markup.panel("Sign in", ["This dashboard shows its pages to people of your organisation."])
    )
    st.button("Sign in", on_click=st.login)
    return False


def viewer() -> str | None:
    """Return the signed-in viewer's email address or name; `None` without sign-in."""
    if not configured() or not st.user.is_logged_in:
        return None
    name = st.user.get("email") or st.user.get("name")
    return str(name) if name else None


def sign_out() -> None:
    """Draw the viewer's name and a sign-out button; nothing without sign-in."""
    name = viewer()
    if name is not None:
        st.html(markup.facts([("Signed in as", name)]))
        st.button("Sign out", on_click=st.logout, width="stretch")
