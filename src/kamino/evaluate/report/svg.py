"""Elements of inline SVG, escaped by construction."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from markupsafe import Markup, escape

from kamino.errors import visible

Attribute = str | float | int | None


def tag(name: str, *children: str | Markup, **attributes: Attribute) -> Markup:
    """An element; texts among `children` are escaped, `None` attributes are left out, `_` in names becomes `-`.

    >>> tag("text", "a < b", x=1.5, text_anchor="end", class_="axis")
    Markup('<text x="1.5" text-anchor="end" class="axis">a &lt; b</text>')
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _plain(value))
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(visible(child) if type(child) is str else child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, inside)


def _plain(value: str | float | int) -> str:
    """Coordinates to a tenth: finer is not seen, and makes a page longer."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else visible(str(value))


def width_of(text: str) -> int:
    """How many columns a text takes; wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: str, columns: int) -> str:
    """A text cut to some columns, with an ellipsis where it was cut; line breaks become spaces.

    >>> shorten("Married-civ-spouse", 10)
    'Married-c…'
    """
    text = " ".join(text.split())
    if width_of(text) <= columns:
        return text
    kept = ""
    for character in text:
        if width_of(kept + character) > columns - 1:
            break
        kept += character
    return kept + "…"


def shorten_all(texts: Sequence[str], columns: int) -> list[str]:
    """Texts cut to some columns so that texts which differ stay apart: in the middle, or by a number at their end.

    Guarantees:
        Different texts stay different.  [test_long_names_are_told_apart]

    >>> shorten_all(["income_of_the_year_2023", "income_of_the_year_2024", "age"], 12)
    ['incom…r_2023', 'incom…r_2024', 'age']
    """
    plain = [" ".join(text.split()) for text in texts]
    short = [shorten(text, columns) for text in plain]
    short = [_middle(text, columns) if _clash(i, short, texts) else short[i] for i, text in enumerate(plain)]
    for i in [i for i in range(len(texts)) if _clash(i, short, texts)]:
        number = 1
        while f"{shorten(plain[i], columns - 3)}{number}" in short:
            number += 1
        short[i] = f"{shorten(plain[i], columns - 3)}{number}"
    return short


def _clash(place: int, short: Sequence[str], texts: Sequence[str]) -> bool:
    return any(s == short[place] and t != texts[place] for s, t in zip(short, texts, strict=True))


def _middle(text: str, columns: int) -> str:
    """A text without its middle; a text that fits, as it is."""
    if width_of(text) <= columns:
        return text
    end = ""
    for character in reversed(text):
        if width_of(character + end) > columns // 2:
            break
        end = character + end
    return shorten(text, columns - width_of(end)) + end
