"""Who vouches for a certificate: an ed25519 signature of its canonical JSON, kept inside it.

Needs the extra `kamino-synth[signed]`. Keys are PEM files, made by `openssl genpkey -algorithm ed25519`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kamino.errors import InputError
from kamino.io.text import read_text
from kamino.limits import MAX_KEY_BYTES
from kamino.pipeline.output.certificate import canonical

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ALGORITHM = "ed25519"
_SIGNATURE = "signature"
Sign = Callable[[Mapping[str, Any]], dict[str, Any]]


def signer(path: str | Path) -> Sign:
    """Return a function that signs certificates with the private key in a PEM file.

    Raises:
        InputError: the file holds no ed25519 private key without a password, or the extra is not installed.
    """
    key = _private_key(Path(path))

    def sign(certificate: Mapping[str, Any]) -> dict[str, Any]:
        public = key.public_key().public_bytes_raw()
        signature = {
            "algorithm": ALGORITHM,
            "public_key": public.hex(),
            "value": key.sign(signed_bytes(certificate)).hex(),
        }
        return {**certificate, _SIGNATURE: signature}

    return sign


def signed_bytes(certificate: Mapping[str, Any]) -> bytes:
    """What is signed: all of a certificate but its signature."""
    return canonical({name: value for name, value in certificate.items() if name != _SIGNATURE})


def is_signed(certificate: Mapping[str, Any]) -> bool:
    """Whether a certificate has a signature, of whatever worth."""
    return _SIGNATURE in certificate


def signature_problem(certificate: Mapping[str, Any], public: bytes) -> str:
    """Say why the signature of a certificate is not one by the key `public`, or return `""`.

    Guarantees:
        A certificate that was changed after it was signed is told.  [test_what_was_changed_does_not_hold]
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not is_signed(certificate):
        return "no signature"
    signature = certificate[_SIGNATURE]
    if signature["algorithm"] != ALGORITHM:
        return "a signature of another kind"
    if signature["public_key"] != public.hex():
        return f"a signature by another key, {fingerprint(signature['public_key'])}"
    try:
        value = bytes.fromhex(signature["value"])
        Ed25519PublicKey.from_public_bytes(public).verify(value, signed_bytes(certificate))
    except (ValueError, InvalidSignature):
        return "a signature of something else"
    return ""


def own_key(certificate: Mapping[str, Any]) -> bytes:
    """The key that a certificate says it was signed with, which may be anybody's; empty if it is none."""
    try:
        key = bytes.fromhex(certificate[_SIGNATURE]["public_key"])
    except ValueError:
        return b""
    return key if len(key) == 32 else b""


def read_public_key(path: str | Path) -> bytes:
    """Read the ed25519 public key in a PEM file, or the public half of a private one."""
    require_extra()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    text = read_text(path, what="key file", most=MAX_KEY_BYTES)
    try:
        key = load_pem_public_key(text.encode())
    except Exception:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path}: found no ed25519 public key, expected a PEM file made by `openssl pkey -pubout`")
    return key.public_bytes_raw()


def fingerprint(public: str) -> str:
    """A key as people compare it: the beginning of the SHA-256 of its hexadecimal text."""
    return hashlib.sha256(public.encode("utf-8", "replace")).hexdigest()[:16]


def require_extra() -> None:
    """Refuse to go on without the library."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise InputError(
            "found no library for signatures; install it with `pip install 'kamino-synth[signed]'`, or leave it out"
        ) from None


def has_extra() -> bool:
    """Whether signatures can be looked at here."""
    try:
        require_extra()
    except InputError:
        return False
    return True


def _private_key(path: Path) -> Ed25519PrivateKey:
    require_extra()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = read_text(path, what="key file", most=MAX_KEY_BYTES)
    try:
        key = load_pem_private_key(text.encode(), password=None)
    except TypeError:
        raise InputError(f"{path}: found a key with a password, expected one without") from None
    except Exception:
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{path}: found no ed25519 private key, expected a PEM file made by `openssl genpkey -algorithm ed25519`"
        )
    return key
