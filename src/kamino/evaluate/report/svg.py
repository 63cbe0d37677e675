"""Elements of inline SVG, escaped by construction."""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

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
    inside = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, inside)


def _plain(value: str | float | int) -> str:
    """Coordinates to a tenth: finer is not seen, and makes a page longer."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


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
