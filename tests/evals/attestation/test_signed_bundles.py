"""Signed bundles: who signed, what is signed, and each way in which a signature is refused."""

import base64
import json
import os
import shlex
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import jsonschema_rs
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from draftgate.commands import app
from evals import bundle
from evals.attestation import envelope as envelopes
from evals.attestation.envelope import Envelope, Signature, pae
from evals.attestation.statement import PAYLOAD_TYPE, attestation_schema
from evals.cli.signing import signing_of

PUBLISHED = Path(__file__).parents[3] / "docs" / "attestation.schema.json"
POLICY = """
version: 1
name: small
prove:
  - {metric: e2e, stat: geomean_ratio, max: 1.00, scope: pooled}
"""
SIGNING = (
    "import base64, sys\n"
    "from cryptography.hazmat.primitives.serialization import load_pem_private_key\n"
    "key = load_pem_private_key(open(sys.argv[1], 'rb').read(), None)\n"
    "print(base64.b64encode(key.sign(sys.stdin.buffer.read())).decode())\n"
)


def draftgate(*words: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Give a private key; its public key lies beside it."""
    path = tmp_path / "judge.pem"
    assert draftgate("keygen", "--to", path).exit_code == 0
    return path


@pytest.fixture
def other_key(tmp_path: Path) -> Path:
    """Give another's private key."""
    path = tmp_path / "other.pem"
    assert draftgate("keygen", "--to", path).exit_code == 0
    return path


@pytest.fixture
def written(tmp_path: Path, table_of, side) -> Callable[..., Path]:
    """Give a function that writes a bundle, signed or not."""

    def write(name: str = "k4.zip", **signing: object) -> Path:
        rows = [
            {
                "prompt_id": f"p{i:03}",
                "cohort": "chat",
                "baseline": side(e2e_s=1 + i / 100),
                "candidate": side(e2e_s=0.5 + i / 150),
            }
            for i in range(60)
        ]
        inputs = bundle.Inputs("k4", POLICY, table_of(rows))
        path = tmp_path / name
        sign = signing_of(**signing) if signing else None  # type: ignore[arg-type]
        bundle.write(path, inputs, bundle.judge(inputs, "policy.yaml"), sign)
        return path

    return write


def public(key: Path) -> Path:
    return key.with_name(key.name + ".pub")


def files_of(path: Path) -> dict[str, bytes]:
    return bundle.files_of(path)


def with_file(path: Path, name: str, data: bytes | None) -> Path:
    """Replace a file of a bundle, or leave it out."""
    files = files_of(path) | {name: data}
    with zipfile.ZipFile(path, "w") as archive:
        for one, content in files.items():
            if content is not None:
                archive.writestr(one, content)
    return path


def with_envelope(path: Path, change: Callable[[Envelope], Envelope]) -> Path:
    found = envelopes.from_bytes(files_of(path)[bundle.ENVELOPE])
    return with_file(path, bundle.ENVELOPE, envelopes.to_bytes(change(found)))


def signed_again(key: Path, payload: bytes, payload_type: str = PAYLOAD_TYPE) -> Envelope:
    """Sign any payload with a key."""
    secret = load_pem_private_key(key.read_bytes(), None)
    return Envelope(payload_type, payload, (Signature(secret.sign(pae(payload_type, payload))),))


def test_the_encoding_is_the_specifications() -> None:
    """The DSSE specification prints this vector."""
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pae("http://example.com/HelloWorld", b"hello world") == expected
    assert pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


@given(st.text(), st.binary(), st.lists(st.tuples(st.binary(), st.text())))
def test_an_envelope_is_read_as_it_was_written(kind, payload, signatures) -> None:
    """Whatever it holds."""
    whole = Envelope(kind, payload, tuple(Signature(sig, keyid) for sig, keyid in signatures))
    assert envelopes.from_bytes(envelopes.to_bytes(whole)) == whole


def test_url_safe_base64_and_unknown_keys_are_read() -> None:
    """The specification asks for both."""
    document = {"payload": "-_-_", "payloadType": "x", "signatures": [], "later": 1}
    assert envelopes.from_bytes(json.dumps(document).encode()).payload == b"\xfb\xff\xbf"


def test_a_signed_bundle_is_verified(written, key, other_key, tmp_path) -> None:
    """By the key's file, and by a directory of trusted keys."""
    path = written(key=key, command=None, judged_by="ci@example.com")
    found = draftgate("verify", path, "--key", public(key))
    assert (found.exit_code, found.stderr) == (0, "")
    assert "the same verdict, byte for byte; signed by " in found.stdout
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    for one in (key, other_key):
        public(one).rename(trusted / public(one).name)
    assert draftgate("verify", path, "--key", trusted).exit_code == 0
    assert "its signature was not checked (--key)" in draftgate("verify", path).stdout


def test_the_same_inputs_and_key_give_the_same_file(written, key) -> None:
    """Ed25519 draws no random numbers."""
    first = written("a.zip", key=key, command=None).read_bytes()
    assert written("b.zip", key=key, command=None).read_bytes() == first


def test_signing_later_gives_the_same_file(written, key) -> None:
    """`sign` does what `gate --sign-key` does, and signing twice changes nothing."""
    at_once, later = written("a.zip", key=key, command=None), written("b.zip")
    for _ in range(2):
        assert draftgate("sign", later, "--sign-key", key).exit_code == 0
        assert later.read_bytes() == at_once.read_bytes()


def test_two_sign_and_either_is_enough(written, key, other_key) -> None:
    """Whoever trusts one of them trusts the bundle."""
    path = written(key=key, command=None)
    assert draftgate("sign", path, "--sign-key", other_key).exit_code == 0
    for one in (key, other_key):
        assert draftgate("verify", path, "--key", public(one)).exit_code == 0


def test_a_second_signer_signs_the_same_statement(written, key, other_key) -> None:
    """Nobody signs under another's name unasked."""
    path = written(key=key, command=None, judged_by="a")
    found = draftgate("sign", path, "--sign-key", other_key, "--judged-by", "b")
    assert found.exit_code == 2
    assert "signed with another statement" in found.stderr


def test_the_predicate_says_who_judged_what(written, key) -> None:
    """It matches the published schema, and the verdict's own hashes."""
    path = written(key=key, command=None, judged_by="ci@example.com")
    files = files_of(path)
    statement = json.loads(envelopes.from_bytes(files[bundle.ENVELOPE]).payload)
    verdict = json.loads(files[bundle.VERDICT])
    jsonschema_rs.validate(json.loads(PUBLISHED.read_text()), statement["predicate"])
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert {one["name"] for one in statement["subject"]} == {*files} - {bundle.ENVELOPE}
    predicate = statement["predicate"]
    assert predicate["judged_by"] == "ci@example.com"
    assert predicate["policy"]["sha256"] == verdict["policy_hash"]
    assert predicate["evidence_digest"] == verdict["data_hash"]
    assert predicate["versions"] == verdict["versions"]


def test_the_published_schema_is_current() -> None:
    """`python -m evals.attestation.statement > docs/attestation.schema.json` has been run."""
    assert PUBLISHED.read_text() == attestation_schema()


def unsigned(path: Path, _: Path) -> Path:
    return with_file(path, bundle.ENVELOPE, None)


def no_signature(path: Path, _: Path) -> Path:
    return with_envelope(path, lambda found: Envelope(found.payload_type, found.payload, ()))


def edited_payload(path: Path, _: Path) -> Path:
    return with_envelope(
        path,
        lambda found: Envelope(
            found.payload_type, found.payload.replace(b"pass", b"fail"), found.signatures
        ),
    )


def edited_signature(path: Path, _: Path) -> Path:
    def flip(found: Envelope) -> Envelope:
        (one,) = found.signatures
        bad = Signature(bytes([one.sig[0] ^ 1, *one.sig[1:]]), one.keyid)
        return Envelope(found.payload_type, found.payload, (bad,))

    return with_envelope(path, flip)


def truncated(path: Path, _: Path) -> Path:
    return with_file(path, bundle.ENVELOPE, files_of(path)[bundle.ENVELOPE][:-20])


def signature_no_base64(path: Path, _: Path) -> Path:
    document = json.loads(files_of(path)[bundle.ENVELOPE])
    document["signatures"][0]["sig"] = "???"
    return with_file(path, bundle.ENVELOPE, json.dumps(document).encode())


def signed_nonsense(path: Path, key: Path) -> Path:
    return with_envelope(path, lambda _: signed_again(key, b"no statement"))


def other_payload_type(path: Path, key: Path) -> Path:
    return with_envelope(path, lambda found: signed_again(key, found.payload, "text/plain"))


def other_predicate_type(path: Path, key: Path) -> Path:
    def change(found: Envelope) -> Envelope:
        statement = json.loads(found.payload) | {"predicateType": "https://slsa.dev/provenance/v1"}
        return signed_again(key, json.dumps(statement).encode())

    return with_envelope(path, change)


def edited_file(path: Path, _: Path) -> Path:
    return with_file(path, "policy.yaml", POLICY.replace("1.00", "1.20").encode())


def added_file(path: Path, _: Path) -> Path:
    return with_file(path, "notes.txt", b"trust me")


def other_verdict(path: Path, key: Path) -> Path:
    def change(found: Envelope) -> Envelope:
        statement = json.loads(found.payload)
        statement["predicate"]["policy"]["sha256"] = "0" * 64
        return signed_again(key, json.dumps(statement).encode())

    return with_envelope(path, change)


@pytest.mark.parametrize(
    ("forge", "code", "said"),
    [
        (unsigned, 10, "it is not signed"),
        (no_signature, 10, "has no signature"),
        (edited_payload, 11, "it was edited after"),
        (edited_signature, 11, "it was edited after"),
        (truncated, 13, "wanted a DSSE envelope"),
        (signature_no_base64, 13, "wanted base64"),
        (signed_nonsense, 13, "wanted an in-toto statement"),
        (other_payload_type, 14, "got 'text/plain'"),
        (other_predicate_type, 14, "slsa.dev"),
        (edited_file, 15, "policy.yaml: not what was signed"),
        (added_file, 15, "notes.txt: not what was signed"),
        (other_verdict, 16, "the statement's policy is not the verdict's"),
    ],
)
def test_each_forgery_has_its_code(written, key, forge, code, said) -> None:
    """And one line that says why."""
    path = forge(written(key=key, command=None), key)
    found = draftgate("verify", path, "--key", public(key))
    assert (found.exit_code, found.stdout) == (code, "")
    assert found.stderr.startswith(f"error: {path}: ")
    assert found.stderr.count("\n") == 1
    assert said in found.stderr


def test_another_who_signs_is_not_trusted(written, key, other_key) -> None:
    """Files edited and signed anew by somebody else are nobody's that is trusted."""
    path = written(key=other_key, command=None)
    found = draftgate("verify", path, "--key", public(key))
    assert found.exit_code == 12
    assert "which is not trusted" in found.stderr


def test_another_bundles_signature_is_refused(written, key) -> None:
    """The envelope of one bundle says nothing about another."""
    first = written("a.zip", key=key, command=None)
    envelope = files_of(first)[bundle.ENVELOPE]
    second = with_file(written("b.zip"), "manifest.json", b"{}")
    found = draftgate("verify", with_file(second, bundle.ENVELOPE, envelope), "--key", public(key))
    assert found.exit_code == 15


def test_a_private_key_is_for_its_owner_alone(key) -> None:
    """No other user can read it, and it is not replaced by chance."""
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    found = draftgate("keygen", "--to", key)
    assert found.exit_code == 2
    assert "exists; give --force" in found.stderr


def test_a_command_signs(written, key) -> None:
    """It gives what the key's file gives, and the key's name where its public key is known."""
    command = shlex.join([sys.executable, "-c", SIGNING, str(key)])
    named = written("named.zip", key=public(key), command=command)
    assert named.read_bytes() == written("file.zip", key=key, command=None).read_bytes()
    unnamed = written("unnamed.zip", key=None, command=command)
    assert draftgate("verify", unnamed, "--key", public(key)).exit_code == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import sys; sys.exit('no such key')", "exit code 1: no such key"),
        ("print('c2hvcnQ=')", "of 64 bytes in base64, got 5"),
        ("print('not base64!')", "wanted base64"),
        ("import sys; sys.stdout.buffer.write(bytes([255]))", "codec can't decode"),
        ("print('A' * 86 + '==')", "is not one of"),
    ],
)
def test_a_command_that_does_not_sign(written, key, body, said) -> None:
    """It is one line, and the bundle stays as it was."""
    path = written()
    before = path.read_bytes()
    command = shlex.join([sys.executable, "-c", body])
    found = draftgate("sign", path, "--sign-command", command, "--sign-key", public(key))
    assert found.exit_code == 2
    assert said in found.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", ["/no/such/command", "'"])
def test_a_command_that_does_not_run(written, command) -> None:
    """It is one line."""
    found = draftgate("sign", written(), "--sign-command", command)
    assert found.exit_code == 2
    assert found.stderr.startswith("error: --sign-command: ")


def test_keys_that_cannot_be_used(written, key, tmp_path) -> None:
    """No file, no PEM, another algorithm, a private key to verify with, an empty directory."""
    path = written(key=key, command=None)
    (tmp_path / "text.pem").write_text("hello")
    (tmp_path / "none").mkdir()
    curve = ec.generate_private_key(ec.SECP256R1())
    pem = curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "curve.pem").write_bytes(pem)
    for file, said in (
        ("absent.pem", "cannot be read"),
        ("text.pem", "wanted a public key in PEM"),
        ("judge.pem", "wanted a public key in PEM"),
        ("none", "holds no .pem or .pub file"),
    ):
        found = draftgate("verify", path, "--key", tmp_path / file)
        assert (found.exit_code, said in found.stderr) == (2, True)
    found = draftgate("sign", path, "--sign-key", tmp_path / "curve.pem")
    assert "wanted an Ed25519 key" in found.stderr


def test_what_gate_signs_is_a_bundle() -> None:
    """A signature with nothing to sign is said before anything is judged."""
    found = draftgate("gate", "k4", "--sign-command", "true")
    assert found.exit_code == 2
    assert "give --bundle too" in found.stderr


def test_openssl_agrees(written, key, tmp_path) -> None:
    """Another implementation makes the same signature of the same bytes."""
    found = envelopes.from_bytes(files_of(written(key=key, command=None))[bundle.ENVELOPE])
    data = tmp_path / "pae"
    data.write_bytes(pae(found.payload_type, found.payload))
    words = ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", data]
    made = subprocess.run(words, check=True, capture_output=True, env=os.environ)
    assert base64.b64encode(made.stdout) == base64.b64encode(found.signatures[0].sig)
