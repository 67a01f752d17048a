"""Ed25519 keys: make, read, sign with, and verify by them."""

import hashlib
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from evals.attestation.envelope import Signature, decoded
from evals.attestation.errors import KeyFileError

_COMMAND_S = 60.0
_SIGNATURE_BYTES = 64

Signer = Callable[[bytes], Signature]
"""Signs an envelope's pre-authentication encoding."""


class KeyPair(NamedTuple):
    """The files of a new key."""

    private: Path
    public: Path
    keyid: str


def generate(private: Path, *, force: bool = False) -> KeyPair:
    """Write a new private key (PEM, PKCS #8, mode 0600), and its public key beside it as `.pub`.

    Raises `KeyFileError` if either exists, unless `force` is given.
    """
    public = private.with_name(private.name + ".pub")
    if existing := [path for path in (private, public) if path.exists() and not force]:
        raise KeyFileError(f"{existing[0]}: exists; give --force to replace it")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        private.unlink(missing_ok=True)
        with os.fdopen(os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
        public.write_bytes(_pem(key.public_key()))
    except OSError as exc:
        raise KeyFileError(f"{exc.filename}: cannot be written ({exc.strerror})") from exc
    return KeyPair(private, public, keyid_of(key.public_key()))


def keyid_of(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of the key's DER encoding (SubjectPublicKeyInfo), in hexadecimal."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


def by_key(path: Path) -> Signer:
    """Return a signer with the private key of a PEM file; raises `KeyFileError`."""
    key = _private(path)
    keyid = keyid_of(key.public_key())
    return lambda data: Signature(key.sign(data), keyid)


def by_command(command: str, public: Path | None = None) -> Signer:
    """Return a signer that runs a command, such as one of a key management service.

    The command gets the data on standard input, and prints the signature in base64. With its
    public key (PEM), the signature is checked, and names the key. No shell runs.
    """
    key = None if public is None else _public(public)

    def sign(data: bytes) -> Signature:
        sig = _run(command, data)
        if key is None:
            return Signature(sig)
        if not is_signature(key, sig, data):
            raise KeyFileError(f"--sign-command: its signature is not one of {public}")
        return Signature(sig, keyid_of(key))

    return sign


def trusted(path: Path) -> Mapping[str, Ed25519PublicKey]:
    """Return the public keys of a PEM file, or of every `.pem` and `.pub` of a directory, by keyid.

    Raises `KeyFileError` if there is none.
    """
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in {".pem", ".pub"})
    if not files:
        raise KeyFileError(f"{path}: holds no .pem or .pub file")
    keys = [_public(file) for file in files]
    return {keyid_of(key): key for key in keys}


def is_signature(key: Ed25519PublicKey, sig: bytes, data: bytes) -> bool:
    """Return whether `sig` is the key's signature of `data`."""
    try:
        key.verify(sig, data)
    except InvalidSignature:
        return False
    return True


def _run(command: str, data: bytes) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603  # the user's own command
            shlex.split(command), input=data, capture_output=True, timeout=_COMMAND_S, check=True
        )
        sig = decoded(done.stdout.decode())
    except subprocess.CalledProcessError as exc:
        said = exc.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise KeyFileError(f"--sign-command: exit code {exc.returncode}: {said[-1]}") from exc
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired) as exc:
        raise KeyFileError(f"--sign-command: {exc}") from exc
    if len(sig) != _SIGNATURE_BYTES:
        raise KeyFileError(
            f"--sign-command: wanted an Ed25519 signature of {_SIGNATURE_BYTES} bytes in base64, "
            f"got {len(sig)}"
        )
    return sig


def _private(path: Path) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(_read(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as exc:
        raise KeyFileError(f"{path}: wanted a private key in PEM, without a passphrase") from exc
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(f"{path}: wanted an Ed25519 key, got {type(key).__name__}")
    return key


def _public(path: Path) -> Ed25519PublicKey:
    try:
        key = serialization.load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm) as exc:
        raise KeyFileError(f"{path}: wanted a public key in PEM") from exc
    if not isinstance(key, Ed25519PublicKey):
        raise KeyFileError(f"{path}: wanted an Ed25519 key, got {type(key).__name__}")
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise KeyFileError(f"{path}: cannot be read ({exc.strerror})") from exc


def _pem(key: Ed25519PublicKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form)
