"""`kamino sign`: vouch for a certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kamino.cli.console import output_console
from kamino.io.atomic import atomic_file
from kamino.pipeline.verifying.certificate_file import read_certificate
from kamino.pipeline.verifying.signatures import fingerprint, signer


def sign(
    certificate: Annotated[Path, typer.Argument(help="A certificate that kamino synth or kamino sample wrote.")],
    key: Annotated[Path, typer.Option("--key", help="Your private key: an ed25519 PEM file (see docs/privacy.md).")],
) -> None:
    """Sign a certificate with your key, so that a recipient knows who released the table.

    The signature goes into the certificate, in the place of one that is there.
    """
    vouch = signer(key)
    signed = vouch(read_certificate(certificate).document)
    with atomic_file(certificate) as handle:
        handle.write(json.dumps(signed, indent=2, ensure_ascii=False).encode())
    public = fingerprint(signed["signature"]["public_key"])
    output_console().print(f"Signed {certificate} with the key {public}.", markup=False, highlight=False)
