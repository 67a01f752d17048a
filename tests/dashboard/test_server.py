"""The dashboard as a process, and the command that starts it."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from page_reading import go
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from dashboard import server
from dashboard.cli import app
from dashboard.errors import DashboardStartError, PortInUseError

EVERYWHERE = "0.0.0.0"  # noqa: S104  # what must not be listened on unasked
COMMAND = [sys.executable, "-c", "from dashboard.cli import app; app()"]


def test_a_started_dashboard_answers_and_stops(
    empty_database: str, free_port: Callable[[], int]
) -> None:
    """It answers once `start` returns; afterwards its port is free again."""
    port = free_port()
    with server.start(database_url=empty_database, port=port) as running:
        assert running.url == f"http://127.0.0.1:{port}"
        assert httpx.get(f"{running.url}/_stcore/health").text == "ok"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
    running.stop()  # a second stop does nothing


def test_a_port_in_use_is_an_error_that_names_it(empty_database: str) -> None:
    """Nothing is started on a port that another program listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortInUseError, match=rf"port {port} on 127\.0\.0\.1 .* --port"):
            server.start(database_url=empty_database, port=port)
        result = CliRunner().invoke(app, ["--database", empty_database, "--port", str(port)])
    assert (result.exit_code, result.stderr) == (
        2,
        (
            f"error: port {port} on 127.0.0.1 is already in use; stop what listens there, "
            "or choose another with --port\n"
        ),
    )


def test_an_address_that_is_not_ours_is_one_line() -> None:
    """A host that cannot be listened on is no traceback."""
    with pytest.raises(
        DashboardStartError, match=r"cannot listen on 192\.0\.2\.1 port 8501: .*--host"
    ):
        server.start(host="192.0.2.1")


def test_nobody_looks_from_elsewhere_without_signing_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: Callable[[], int]
) -> None:
    """An address that others reach needs a provider to sign in with; broken secrets are none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DashboardStartError, match=r"other machines could reach .*\[auth\]"):
        server.start(host=EVERYWHERE, port=free_port())
    secrets = tmp_path / ".streamlit" / "secrets.toml"
    secrets.parent.mkdir()
    secrets.write_text("[auth")
    with pytest.raises(DashboardStartError, match=r"secrets\.toml: cannot be read"):
        server.start(host=EVERYWHERE, port=free_port())


@pytest.mark.slow
@pytest.mark.browser
def test_whoever_is_not_signed_in_sees_no_number(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    empty_database: str,
    free_port: Callable[[], int],
    page: Page,
) -> None:
    """With a provider configured every page asks to sign in, on any address."""
    monkeypatch.chdir(tmp_path)
    port = free_port()
    secrets = tmp_path / ".streamlit" / "secrets.toml"
    secrets.parent.mkdir()
    secrets.write_text(
        f"""[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "{"0" * 32}"
client_id = "draftgate"
client_secret = "none"
server_metadata_url = "http://127.0.0.1:9/.well-known/openid-configuration"
"""
    )
    with server.start(database_url=empty_database, host=EVERYWHERE, port=port) as running:
        for path in ("", "rollout", "live"):
            go(page, f"{running.url}/{path}")
            expect(page.get_by_role("button", name="Sign in")).to_be_visible()
            expect(page.get_by_text("No rollout yet")).to_have_count(0)


def test_the_command_serves_until_it_is_told_to_end(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    """It warns of a silent collector and starts all the same; SIGTERM leaves no server behind."""
    port = free_port()
    silent = f"http://127.0.0.1:{free_port()}"
    arguments = ["--collector", silent, "--port", str(port)]
    environment = os.environ | {"PYTHONPATH": str(Path(server.__file__).parents[1])}
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline(), process.stderr.readline()]
        try:
            assert httpx.get(f"http://127.0.0.1:{port}/_stcore/health").text == "ok"
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
    assert lines == [
        (
            f"warning: no collector answers at {silent}; start one with “draftgate serve”, "
            "then press Refresh\n"
        ),
        f"Dashboard of {silent}: http://127.0.0.1:{port} (Ctrl-C stops it)\n",
    ]
    assert (process.returncode, rest) == (0, "")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))


def test_help_has_an_example() -> None:
    """The command's help shows how it is called."""
    result = CliRunner().invoke(app, ["--help"])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    assert "Example: draftgate dashboard --collector http://localhost:4318" in plain
