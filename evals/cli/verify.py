"""`draftgate verify`: check a decision, and who signed it."""

from pathlib import Path
from typing import Annotated

import typer

from evals import bundle as bundles
from evals.attestation.errors import AttestationError
from evals.cli.options import usable
from evals.exit_codes import ExitCode

app = typer.Typer(add_completion=False)


@app.command()
def verify(
    bundle: Annotated[Path, typer.Argument(help="Zip that `gate --bundle` wrote.")],
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            help="Public key (PEM), or a directory of trusted ones, by one of which the bundle "
            "must be signed.",
        ),
    ] = None,
) -> None:
    """Judge a bundle again, without a collector: exit 0 same verdict, 1 it differs, 2 unusable.

    With --key, its signature is checked first: exit 10 unsigned, 11 edited, 12 not signed by a
    trusted key, 13 unreadable envelope, 14 wrong type of payload, 15 other files, 16 other verdict.

    Example: draftgate verify support-k4.zip --key judge.pem.pub
    """
    with usable():
        signed_by = _signed_by(bundle, key)
        differing = bundles.verify(bundle)
    for line in differing:
        typer.echo(line)
    if differing:
        typer.echo(f"error: {bundle}: judged again, the verdict differs", err=True)
        raise typer.Exit(ExitCode.FAIL)
    typer.echo(f"{bundle}: the same verdict, byte for byte{signed_by}")


def _signed_by(bundle: Path, key: Path | None) -> str:
    """Return who signed, in words; ends the command if the signature is refused."""
    files = bundles.files_of(bundle)
    envelope = files.pop(bundles.ENVELOPE, None)
    if key is None:
        return "" if envelope is None else "; its signature was not checked (--key)"
    from evals.attestation import signed_bundle  # noqa: PLC0415  # needs an extra

    try:
        keyids = signed_bundle.check(envelope, files, bundles.VERDICT, key)
    except AttestationError as exc:
        typer.echo(f"error: {bundle}: {exc}", err=True)
        raise typer.Exit(exc.fault) from exc
    return f"; signed by {', '.join(keyids)}"
