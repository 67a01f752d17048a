"""Options of the commands that sign, and the commands `keygen` and `sign`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Protocol

import typer

from collector.contract import Verdict
from evals import bundle as bundles
from evals.cli.options import usable
from evals.errors import WriteError

app = typer.Typer(add_completion=False)

SignKey = Annotated[
    Path | None,
    typer.Option(
        "--sign-key",
        help="Private key (PEM) to sign the bundle with; beside --sign-command, that command's "
        "public key, by which its signature is checked.",
    ),
]
SignCommand = Annotated[
    str | None,
    typer.Option(
        "--sign-command",
        help="Command that signs: gets the bytes on standard input, prints the Ed25519 signature "
        "in base64.",
    ),
]
JudgedBy = Annotated[
    str | None, typer.Option("--judged-by", help="Name of the judge, for the signed statement.")
]


class Signing(Protocol):
    """Makes the envelope of a bundle, with one signature more than `existing` has."""

    def __call__(
        self, verdict: Verdict, files: Mapping[str, bytes], existing: bytes | None = None, /
    ) -> bytes:
        """Return the envelope."""
        ...


def signing_of(
    key: Path | None, command: str | None, judged_by: str | None = None
) -> Signing | None:
    """Return how the options sign; `None` if they do not.

    Raises `KeyFileError` if the key cannot be used.
    """
    if key is None and command is None:
        return None
    # cryptography comes with an extra, which only those who sign need
    from evals.attestation import keys, signed_bundle  # noqa: PLC0415
    from evals.attestation.statement import statement_of  # noqa: PLC0415

    if command is not None:
        signer = keys.by_command(command, key)
    elif key is not None:
        signer = keys.by_key(key)

    def sign(
        verdict: Verdict, files: Mapping[str, bytes], existing: bytes | None = None, /
    ) -> bytes:
        statement = statement_of(verdict, files, judged_by)
        return signed_bundle.sign(statement, signer, existing)

    return sign


@app.command()
def keygen(
    to: Annotated[Path, typer.Option(help="Private key to write; the public key gets .pub.")],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace keys that exist.")] = False,
) -> None:
    """Make an Ed25519 key pair to sign bundles with.

    Example: draftgate keygen --to judge.pem
    """
    from evals.attestation import keys  # noqa: PLC0415  # needs an extra

    with usable():
        made = keys.generate(to, force=force)
    typer.echo(f"{made.private}: keep it secret\n{made.public}: give it to whoever verifies")
    typer.echo(f"keyid {made.keyid}")


@app.command()
def sign(
    bundle: Annotated[Path, typer.Argument(help="Zip that `gate --bundle` wrote.")],
    sign_key: SignKey = None,
    sign_command: SignCommand = None,
    judged_by: JudgedBy = None,
) -> None:
    """Add a signature to a bundle.

    Example: draftgate sign support-k4.zip --sign-key judge.pem
    """
    with usable():
        signing = signing_of(sign_key, sign_command, judged_by)
        if signing is None:
            raise WriteError("wanted --sign-key or --sign-command")
        bundles.add_signature(bundle, signing)
    typer.echo(f"{bundle}: signed")
