"""How files of parts and cases are named."""

from __future__ import annotations


def file_of(name: str) -> str:
    """The name of a file for a case or a part.

    >>> file_of("by chance, row by row")
    'by-chance-row-by-row'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in name).split())
