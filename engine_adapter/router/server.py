"""The router's process: from settings and a control to a server that answers until it is stopped.

`serve` is the one entry. Each request's body is read whole, its facts are taken by
`engine_adapter.router.facts.facts_of(path, body, headers, concurrency)`, and the control decides.
"""

from collections.abc import Callable

from engine_adapter.router.decision import Control
from engine_adapter.router.settings import RouterSettings


async def serve(
    settings: RouterSettings,
    control: Control,
    *,
    ready: Callable[[str], None] = lambda _url: None,
) -> None:
    """Answer requests until cancelled; `ready` is told the address once it is listening.

    On cancellation no new request is taken, and streams in flight get some time to finish.
    """
    raise NotImplementedError((settings, control, ready))
