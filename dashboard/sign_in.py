"""Sign-in by OpenID Connect, where the deployment configures it in Streamlit's secrets."""

from collections.abc import Mapping

import streamlit as st
from streamlit.errors import StreamlitSecretNotFoundError

from dashboard import markup


def configured() -> bool:
    """Say whether `.streamlit/secrets.toml` has an `[auth]` section."""
    try:
        return isinstance(st.secrets.get("auth"), Mapping)
    except StreamlitSecretNotFoundError:
        return False


def passed() -> bool:
    """Return whether the viewer may look; else draw what lets them sign in."""
    if not configured() or st.user.is_logged_in:
        return True
    st.html(
        markup.panel("Sign in", ["This dashboard shows its pages to people of your organisation."])
    )
    st.button("Sign in", on_click=st.login)
    return False


def who() -> str | None:
    """Return the signed-in viewer's address or name; `None` where nobody signs in."""
    if not configured() or not st.user.is_logged_in:
        return None
    name = st.user.get("email") or st.user.get("name")
    return str(name) if name else None


def sign_out() -> None:
    """Draw who is signed in, and the way out; nothing where nobody signs in."""
    name = who()
    if name is not None:
        st.html(markup.facts([("Signed in as", name)]))
        st.button("Sign out", on_click=st.logout, width="stretch")
