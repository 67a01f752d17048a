"""Where engines stand: behind TLS, at a name, or nowhere."""

import ssl
import subprocess
from pathlib import Path

import pytest
import wire_engine as wire
from running_router import QUESTION, routing
from wire_engine import CHUNKED, CHUNKS, LAST, WHOLE, sending

NOBODY = "http://127.0.0.1:9/v1"
STREAMED = QUESTION | {"stream": True}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a key and a certificate that it signed itself."""
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*command, "-keyout", str(file), "-out", str(file) + ".crt"],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + Path(str(file) + ".crt").read_text())
    return file


def test_an_engine_may_stand_behind_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a certificate that the machine trusts, and by no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with wire.running(sending(CHUNKED, CHUNKS, LAST), context) as engine:
        url = f"https://localhost:{engine.port}/v1"
        with routing(url, NOBODY) as router:
            assert router.ask(STREAMED)[0] == 502
            assert router.counted("failures") == {"baseline,tls_failure": 1}
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate) + ".crt")
        with routing(url, NOBODY) as router:
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
        with routing(url, NOBODY) as router:
            assert router.ask(STREAMED)[0] == 502
            assert router.counted("failures") == {f"baseline,{error_type}": 1}
