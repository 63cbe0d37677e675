"""The privacy statement of a report: what a certificate says, in a shape that can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kamino.errors import InputError


def statement_of(
    certificate: Mapping[str, Any], *, sha256: str | None = None, ledger: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The facts of a certificate; with the hash of the synthetic file, whether it is of that file.

    `ledger` adds what was released, grouped by kind.

    >>> statement_of({"privacy": {"epsilon": 1.0, "delta": 1e-6}, "sha256": "a"}, sha256="b")["fits"]
    False
    """
    privacy = certificate.get("privacy")
    if not isinstance(privacy, Mapping):
        raise InputError("found a certificate without privacy facts; expected one that a run wrote")
    spent, domains = privacy.get("spent_epsilon"), certificate.get("domains")
    known = certificate.get("sha256")
    words, notes = certificate.get("words"), certificate.get("notes")
    return {
        "notes": [str(note) for note in notes] if isinstance(notes, list) else [],
        "meaning": str(words["meaning"]) if isinstance(words, Mapping) and "meaning" in words else None,
        "mark": str(certificate.get("mark", "unknown")),
        "privacy": {
            "epsilon": _number(privacy.get("epsilon")),
            "delta": _number(privacy.get("delta")),
            "neighbours": str(privacy.get("neighbours", "unknown")),
            "unit": str(privacy.get("unit", "unknown")),
            "spent_epsilon": {str(k): _number(v) for k, v in spent.items()} if isinstance(spent, Mapping) else {},
            "releases": _number(privacy.get("releases")),
        },
        "domains": {str(k): [str(n) for n in v] for k, v in domains.items()} if isinstance(domains, Mapping) else {},
        "fits": known == sha256 if known is not None and sha256 is not None else None,
        "events": _events(ledger) if ledger is not None else [],
    }


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _events(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The releases of a ledger: how often each kind of them, and with how much noise."""
    groups: dict[tuple[str, str], list[float]] = {}
    for entry in ledger["entries"]:
        groups.setdefault((entry["kind"], entry["what"]), []).append(entry["noise_multiplier"] or 0.0)
    return [
        {"kind": kind, "what": what, "count": len(noise), "least_noise": min(noise), "most_noise": max(noise)}
        for (kind, what), noise in groups.items()
    ]
