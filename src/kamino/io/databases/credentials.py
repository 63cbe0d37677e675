"""Passwords in addresses of databases: never in a message, however the address is misspelled."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

MASK = "***"
# A scheme with whatever is left of its colon and slashes, or a user and a colon; then all up to the last at sign.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*(?::/+|//+))\S*@|[^\s/:@'\"(]+:\S*@")
_NAMED = re.compile(r"(?i)((?:password|passwd|pwd|passphrase|secret|token)\s*=\s*)(?:'[^']*'|[^\s&;]+)")


def mask_credentials(text: str) -> str:
    """Return the text without the users and passwords of any address in it, also of one that is misspelled.

    >>> mask_credentials("postgresql:/me:secret@host/db: no such file")
    'postgresql:/***@host/db: no such file'
    """
    text = _NAMED.sub(rf"\g<1>{MASK}", text)
    return _ADDRESS.sub(lambda found: f"{found.group(1) or ''}{MASK}@", text) if "@" in text else text


def has_password(source: str) -> bool:
    """Whether an address holds a password.

    >>> has_password("postgresql://me:secret@host/db"), has_password("postgresql://me@host/db?password=secret")
    (True, True)
    >>> has_password("postgresql://me@host/db#people"), has_password("C:/people.csv")
    (False, False)
    """
    try:
        parts = urlsplit(source)
        return bool(parts.password) or "password" in parse_qs(parts.query)
    except ValueError:
        return False


def shown_source(source: str) -> str:
    """Return a source as a message may show it: a path as it is, what looks like an address without credentials.

    Unlike in a line of text, a password may hold spaces here: all up to the last at sign is one address.
    """
    head, at, rest = source.rpartition("@")
    if at and ":" in head:
        scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:?/+", head)
        return mask_credentials(f"{scheme.group() if scheme else ''}{MASK}@{rest}")
    return mask_credentials(source)
