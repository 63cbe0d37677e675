"""Functions of text. Patterns are regular expressions of RE2, which take time in proportion to the text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def like_pattern(pattern: str) -> str:
    r"""The regular expression of a LIKE pattern: % stands for any text, _ for any character, \ keeps what follows."""
    made, place = [], 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "\\" and place + 1 < len(pattern):
            place += 1
            made.append(re.escape(pattern[place]))
        else:
            made.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
        place += 1
    return f"(?s)^(?:{''.join(made)})$"


def pattern_problem(pattern: str) -> str:
    """What is wrong with a regular expression; an empty string where nothing is."""
    try:
        pc.match_substring_regex(pa.array(["a"]), pattern)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        return str(problem).removeprefix("Invalid regular expression: ")
    return ""


def matches(texts: Any, pattern: str, *, fold: bool = False) -> Any:
    """Where the pattern is found in the text."""
    return pc.match_substring_regex(texts, pattern, ignore_case=fold)


def slices(texts: Any, start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64], valid: Mask) -> Any:
    """The characters from `start` up to, not including, `stop`, which may differ from row to row."""
    if len(start) and (start == start[0]).all() and (stop == stop[0]).all() and start[0] >= 0 and valid.all():
        return pc.utf8_slice_codeunits(texts, int(start[0]), int(max(start[0], stop[0])))
    rows = zip(texts.to_pylist(), start.tolist(), stop.tolist(), valid.tolist(), strict=True)
    cut = [None if text is None or not ok else text[max(a, 0) : max(b, a, 0)] for text, a, b, ok in rows]
    return pa.array(cut, pa.string())


def items_of(text: str, separator: str) -> list[str]:
    """The items of a cell such as `a;b;c`, without the spaces around them."""
    return [item.strip() for item in text.split(separator)]


def each_row(texts: Any, made: Any, kind: pa.DataType) -> Any:
    """A Python function of each distinct text."""
    encoded = texts.dictionary_encode()
    values = [None if text is None else made(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(values, kind).take(encoded.indices)
