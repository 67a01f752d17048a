"""One attempt to send a notification to a webhook."""

import asyncio
import json
import time
from typing import Final

import httpx

from collector.contract import Notification
from collector.notify.forms import payload
from collector.notify.signature import HEADER, signature
from collector.notify.targets import Target

TIMEOUT_S: Final = 10.0
"""Timeout of a whole attempt, however slowly a receiver responds."""


async def deliver(
    client: httpx.AsyncClient, target: Target, notification: Notification
) -> str | None:
    """Send a notification; return None if the receiver answered 2xx, else the reason of failure.

    Redirects are not followed, and the response's body is not read.
    """
    body = json.dumps(payload(target.form, notification), ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json", "Draftgate-Notification": notification.id}
    if target.secret is not None:
        headers[HEADER] = signature(target.secret, body, int(time.time()))
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            client.stream("POST", target.url, content=body, headers=headers) as answer,
        ):
            status = answer.status_code
    except TimeoutError:
        return f"no answer within {TIMEOUT_S:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        return type(exc).__name__  # the message may contain the URL
    return None if httpx.codes.is_success(status) else f"it answered {status}"
