"""The router with a share of its requests mirrored, and a stub collector that accepts every span.

python -m benchmarks.routing.router_process BASELINE CANDIDATE SHARE
"""

import sys

from aiohttp import web

from collector.contract import Arm
from engine_adapter.router.decision import Decision, RequestFacts
from engine_adapter.router.server import run, serve
from engine_adapter.router.settings import RouterSettings, Upstream


class _Share:
    """Mirrors a share of the requests, evenly spaced."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._owed = 0.0

    def decide(self, facts: RequestFacts) -> Decision:
        del facts
        self._owed += self._share
        mirrored = self._owed >= 1.0
        self._owed -= mirrored
        return Decision(
            rollout="bench", arm=Arm.BASELINE, mirrored=mirrored, cohort="chat", reason="share"
        )

    def candidate_allowed(self) -> bool:
        return True

    def counted(self, characters: int | None, tokens: int | None) -> None:
        """Note nothing."""

    def state(self) -> dict[str, object]:
        return {}


async def main() -> None:
    """Serve on a free port, which is written to standard output."""
    baseline, candidate, share = sys.argv[1:4]

    async def take(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response(content_type="application/x-protobuf")

    runner = web.ServerRunner(web.Server(take, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    settings = RouterSettings(
        port=0,
        baseline=Upstream(url=baseline),
        candidate=Upstream(url=candidate),
        collector_url=f"http://127.0.0.1:{runner.addresses[0][1]}",
    )
    await serve(settings, _Share(float(share)), ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    run(main())
