"""If the reader thread cannot read a stream, asyncio reads it."""

import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from certificates import self_signed
from segment_server import counting, serving

READING = """
import asyncio, sys
url, way = sys.argv[1:]
if way == "not compiled":
    sys.modules["engine_adapter.transport._arrivals"] = None
from engine_adapter.transport import HttpClient

async def main():
    client = HttpClient(url)
    for _ in range(2):
        async with client.stream("/chat/completions", {}) as opened:
            assert opened._exchange.takeover is None
            stamps = [event.at_s async for event in opened.events()]
            assert stamps == sorted(stamps)
            print(len(stamps))
    await client.aclose()

if way == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
"""


def read_by(way: str, url: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", READING, url, way],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "20\n20\n"), done.stderr


@pytest.mark.parametrize("way", ["not compiled", "uvloop"])
def test_without_the_thread_streams_are_read_as_well(way: str) -> None:
    """Whole, with stamps in order, and on one connection."""
    with serving(counting(20)) as server:
        read_by(way, server.url, {})
        assert len(server.peers) == 1


def test_tls_is_read_by_asyncio(tmp_path: Path) -> None:
    """The thread would read encrypted bytes, so it is not used."""
    cert, key = self_signed(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    with serving(counting(20), tls) as server:
        read_by("tls", server.url, {"SSL_CERT_FILE": str(cert)})
