"""A minimal proxy in Python: forwards requests and responses without parsing them.

python -m benchmarks.routing.plain_proxy UPSTREAM [uvloop]
"""

import asyncio
import sys

import aiohttp
import uvloop
from aiohttp import web


async def main() -> None:
    """Serve on a free port, which is written to standard output."""
    upstream = sys.argv[1]
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
    )

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        headers = {"Content-Type": request.headers["Content-Type"]}
        url = upstream + request.path.removeprefix("/v1")
        async with session.post(url, data=body, headers=headers) as answer:
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
            await response.write_eof()
        return response

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if sys.argv[2:] else None) as runner:
        runner.run(main())
