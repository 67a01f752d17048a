"""Where engines stand: behind TLS, at a name, or nowhere."""

import ssl
from pathlib import Path

import pytest
import wire_engine as wire
from certificates import self_signed
from running_router import NOBODY, STREAMED, routing
from wire_engine import CHUNKED, CHUNKS, LAST, WHOLE, sending


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a certificate that signed itself, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"), "DNS:localhost")


def test_an_engine_may_stand_behind_tls(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a certificate that the machine trusts, and by no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with wire.running(sending(CHUNKED, CHUNKS, LAST), context) as engine:
        url = f"https://localhost:{engine.port}/v1"
        with routing(url) as router:
            assert router.ask(STREAMED)[0] == 502
            assert router.counted("failures") == {"baseline,tls_failure": 1}
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        with routing(url) as router:
            for _ in range(2):
                assert router.ask(STREAMED)[2] == WHOLE
    assert len(engine.requests) == 2


def test_a_host_that_is_not_there_is_told_by_its_kind() -> None:
    """A name that nobody knows, and a port at which nobody listens."""
    for url, error_type in (
        ("http://nobody.invalid/v1", "dns_failure"),
        (NOBODY, "connection_refused"),
        ("http://localhost:9/v1", "connection_refused"),
    ):
        with routing(url) as router:
            assert router.ask(STREAMED)[0] == 502
            assert router.counted("failures") == {f"baseline,{error_type}": 1}
