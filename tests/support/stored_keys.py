"""API keys stored for tests."""

import time

from collector.api_key import ApiKey, Scope, digest, new_key_text
from collector.store import Store, keys


def add_key(store: Store, name: str, *scopes: Scope) -> str:
    """Store a key for ever, and return its text."""
    text = new_key_text()
    key = ApiKey(
        id=text.id,
        name=name,
        digest=digest(text.secret),
        scopes=frozenset(scopes),
        project=None,
        rate_per_s=None,
        created_unix_ns=time.time_ns(),
        expires_unix_ns=None,
    )
    with store.transaction() as connection:
        keys.add(connection, key)
    return str(text)
