"""Rate limits of API keys, shared by several collectors through PostgreSQL.

Each key has a token bucket stored as one number: the time when it will be full again. Taking a
token delays that time, in one statement that locks only the key's row.
"""

import math
from typing import Final

from sqlalchemy import Connection, text

_US: Final = 1_000_000
# A time too far ahead for any bucket means that the clock was set back: treat the bucket as full.
_TAKE: Final = text("""
    INSERT INTO key_bucket AS b (key_id, full_unix_us)
    VALUES (:key_id, CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)
        + CAST(:token_us AS bigint))
    ON CONFLICT (key_id) DO UPDATE SET full_unix_us = CASE
        WHEN b.full_unix_us > excluded.full_unix_us + 2 * :size_us THEN excluded.full_unix_us
        ELSE greatest(b.full_unix_us + :token_us, excluded.full_unix_us) END
    WHERE b.full_unix_us > excluded.full_unix_us + 2 * :size_us
        OR b.full_unix_us + 2 * :token_us <= excluded.full_unix_us + :size_us
    RETURNING b.full_unix_us
""")
_WAIT: Final = text("""
    SELECT full_unix_us - CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)
    FROM key_bucket WHERE key_id = :key_id
""")


def take(connection: Connection, key_id: str, rate_per_s: float) -> int:
    """Take a token and return 0, or return the whole seconds until one is available.

    The connection must be in autocommit mode.
    """
    token_us = round(_US / rate_per_s)
    size_us = round(max(1.0, rate_per_s) * token_us)
    asked = {"key_id": key_id, "token_us": token_us, "size_us": size_us}
    if connection.execute(_TAKE, asked).one_or_none() is not None:
        return 0
    full_in_us = connection.scalar(_WAIT, {"key_id": key_id}) or 0
    return max(1, math.ceil((full_in_us + token_us - size_us) / _US))
