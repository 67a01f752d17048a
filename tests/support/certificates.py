"""Certificates that the tests' own servers show."""

from pathlib import Path

from commands import run


def self_signed(folder: Path, name: str = "IP:127.0.0.1") -> tuple[Path, Path]:
    """Make a self-signed certificate for a name, and return it with its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    options = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=draftgate"
    extension = ("-addext", f"subjectAltName={name}")
    run("openssl", *options.split(), *extension, "-keyout", str(key), "-out", str(cert))
    return cert, key
