"""A page in plain language that goes with a released table: what it is, what was promised, what to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kamino.pipeline.plan.mostly_noise import MOSTLY_NOISE


def release_note(certificate: Mapping[str, Any], *, table: str) -> str:
    """The page, in Markdown, made from nothing but a certificate; `table` is the name of the file.

    Guarantees:
        It says what the certificate says, on one page.  [test_the_release_note_is_one_page]
    """
    privacy, words = certificate["privacy"], certificate["words"]
    spent = privacy["spent_epsilon"][privacy["neighbours"]]
    promise = "none: it was made without noise" if spent is None else f"epsilon {spent:.3g}, delta {privacy['delta']:g}"
    parts = [
        f"# {table}",
        f"A synthetic table of {certificate['rows']:,} rows, made by Kamino {certificate['kamino']} on "
        f"{certificate['date']}. Its rows are made up: one that equals a row of the original does so by chance. "
        f"Mark: **{certificate['mark']}**.",
        *(f"**This table is {note}.**" for note in certificate["notes"] if note.startswith(MOSTLY_NOISE)),
        "## What is promised",
        f"Differential privacy: {promise}, for {privacy['unit']}. In words: {words['meaning']}.",
        *_rules(certificate["constraints"]),
        *_listed("## What you may do", words["may"]),
        *_listed("## What you may not do or conclude", words["may_not"]),
        *_listed(
            "## What to know about this table", [n for n in certificate["notes"] if not n.startswith(MOSTLY_NOISE)]
        ),
        "## How to check",
        f"The certificate beside the table says all of this as data. sha256 of the table: `{certificate['sha256']}`.",
    ]
    return "\n\n".join(parts) + "\n"


def _rules(constraints: list[Mapping[str, Any]]) -> list[str]:
    hard = [c for c in constraints if c["hard"]]
    soft = [c for c in constraints if not c["hard"]]
    lines = [f"`{c['text']}`: {'kept by all rows' if not c['violations'] else 'broken'}" for c in hard]
    lines += [f"`{c['text']}`: broken by {c['rate']:.2%} of pairs or rows, as in the original about" for c in soft]
    for each in (c for c in constraints if "reference" in c):
        share, file = each["reference"]["share_following"], each["reference"]["file"]
        lines.append(f"{share:.1%} of the rows follow the public map {file}")
    return _listed("Rules of the table:", lines)


def _listed(title: str, items: list[str]) -> list[str]:
    return [title, "\n".join(f"- {item}" for item in items)] if items else []
