"""The dashboard's data source: an address from the environment, and a shared client for it."""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

import streamlit as st

from collector.client import Client

URL_VARIABLE = "DRAFTGATE_COLLECTOR_URL"
DATABASE_VARIABLE = "DRAFTGATE_DATABASE_URL"
KEY_VARIABLE = "DRAFTGATE_API_KEY"
_PASSWORD = re.compile(r"(//[^/@:]*):[^/@]*@")
DEFAULT_DATABASE = "sqlite:///draftgate.db"


class Source(NamedTuple):
    """A collector's URL, or else a database that is opened in this process."""

    collector_url: str | None
    database_url: str

    @property
    def address(self) -> str:
        """The address to show, with any password masked."""
        return _PASSWORD.sub(r"\1:…@", self.collector_url or self.database_url)


def from_environment(environment: Mapping[str, str] = os.environ) -> Source:
    """Read the address; a collector's URL takes precedence over a database."""
    return Source(
        environment.get(URL_VARIABLE) or None,
        environment.get(DATABASE_VARIABLE) or DEFAULT_DATABASE,
    )


@st.cache_resource(show_spinner=False, max_entries=4, on_release=Client.close)
def client(source: Source) -> Client:
    """Return this process's client for the source, shared by all viewers."""
    if source.collector_url is not None:
        return Client.from_environment(source.collector_url)
    return Client.local(source.database_url)
