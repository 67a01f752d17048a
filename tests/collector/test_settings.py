"""Settings from the environment."""

from pathlib import Path

import pytest

from collector.errors import SettingsError
from collector.logs import LogFormat, LogLevel
from collector.settings import Settings, from_environment


def test_without_variables_the_defaults_hold() -> None:
    """Absent and empty variables ask for nothing."""
    assert from_environment({}) == Settings()
    assert from_environment({"DRAFTGATE_PORT": "", "DRAFTGATE_HOST": ""}) == Settings()


def test_every_setting_has_a_variable() -> None:
    """Each `DRAFTGATE_*` variable sets its field."""
    environment = {
        "DRAFTGATE_DATABASE_URL": "sqlite:///x.db",
        "DRAFTGATE_HOST": "::1",
        "DRAFTGATE_PORT": "0",
        "DRAFTGATE_GRPC_PORT": "1",
        "DRAFTGATE_MAX_BODY_BYTES": "1",
        "DRAFTGATE_MAX_QUEUE_BYTES": "2",
        "DRAFTGATE_BUSY_TIMEOUT_S": "0.5",
        "DRAFTGATE_REQUIRE_KEYS": "1",
        "DRAFTGATE_KEY_RATE": "2.5",
        "DRAFTGATE_CAPTURE_CONTENT": "true",
        "DRAFTGATE_REDACTION": "r.yaml",
        "DRAFTGATE_NOTIFY": "n.yaml",
        "DRAFTGATE_TLS_CERT": "c.pem",
        "DRAFTGATE_TLS_KEY": "k.pem",
        "DRAFTGATE_LOG_FORMAT": "json",
        "DRAFTGATE_LOG_LEVEL": "debug",
    }
    assert from_environment(environment) == Settings(
        database_url="sqlite:///x.db",
        host="::1",
        port=0,
        grpc_port=1,
        max_body_bytes=1,
        max_queue_bytes=2,
        busy_timeout_s=0.5,
        require_keys=True,
        key_rate_per_s=2.5,
        capture_content=True,
        redaction=Path("r.yaml"),
        notify=Path("n.yaml"),
        tls_cert=Path("c.pem"),
        tls_key=Path("k.pem"),
        log_format=LogFormat.JSON,
        log_level=LogLevel.DEBUG,
    )


def test_grpc_can_be_turned_off() -> None:
    """`off` instead of a port serves no gRPC."""
    assert from_environment({"DRAFTGATE_GRPC_PORT": "off"}) == Settings(grpc_port=None)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PORT", "4318.0", "DRAFTGATE_PORT='4318.0': wanted a whole number, such as 4318"),
        ("PORT", "65536", "DRAFTGATE_PORT=65536: wanted a whole number from 0 to 65535"),
        ("MAX_BODY_BYTES", "32MiB", "DRAFTGATE_MAX_BODY_BYTES='32MiB': wanted a whole number"),
        ("REQUIRE_KEYS", "maybe", "DRAFTGATE_REQUIRE_KEYS='maybe': wanted 1 or 0"),
        ("LOG_FORMAT", "xml", "DRAFTGATE_LOG_FORMAT='xml': wanted one of text, json"),
        ("BUSY_TIMEOUT_S", "nan", "DRAFTGATE_BUSY_TIMEOUT_S=nan: wanted a number from 0 to"),
    ],
)
def test_a_number_that_is_none_is_named(name: str, value: str, message: str) -> None:
    """The error names the variable, its value and the expected one, and says to fix or unset it."""
    with pytest.raises(SettingsError) as caught:
        from_environment({f"DRAFTGATE_{name}": value})
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("fix or unset it")
