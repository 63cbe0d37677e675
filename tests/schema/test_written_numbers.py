"""Columns of text that are columns of numbers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kamino.schema import Categorical, Integer, Real, Source, draft_schema
from kamino.schema.files.written_numbers import with_numbers


def _drafted(texts: list[str | None], *, name: str = "x", trust: bool = False, styles: bool = True):  # type: ignore[no-untyped-def]
    table = pa.table({name: pa.array(texts, pa.string())})
    return with_numbers(draft_schema(table), table, trust_domain=trust, styles=styles)[name]


def test_a_few_odd_cells_make_no_category() -> None:
    texts: list[str | None] = [f"{n % 900}.25" for n in range(20_000)]
    texts[:6] = ["unknown", "see note", "x", "1.2.3", "free", "tbd"]
    for styles in (False, True):
        found = _drafted(texts, styles=styles)
        assert isinstance(found, Real)
        assert found.nullable
        assert found.decimals == 2
        assert found.written is None
        assert found.nulls == ()
    trusted = _drafted(texts, trust=True, styles=False)
    assert (trusted.source, trusted.max) == (Source.ASSERTED, 899.25)


def test_one_cell_in_fifty_makes_it_a_text() -> None:
    assert isinstance(_drafted([*["1.5"] * 49, "x"]), Categorical)


def test_numbers_and_words_for_nothing_are_recognised() -> None:
    found = _drafted(["$1,234.50", "$7", "NA", None, "(12)", "-"])
    assert isinstance(found, Real)
    assert (found.written, found.nulls, found.decimals, found.has_domain) == ("1,234.5", ("-", "NA"), 1, False)
    german = _drafted(["1.234,50 €", "7,25", "12"], trust=True)
    assert (german.written, german.min, german.max) == ("1.234,5", 7.25, 1234.5)
    whole = _drafted(["12", "NA"])
    assert isinstance(whole, Integer)
    assert whole.nulls == ("NA",)


@pytest.mark.parametrize("huge", ["1e999999999", "9" * 400, "1e-400", "9" * 40])
def test_numbers_of_any_size_are_met(huge: str) -> None:
    for trust in (False, True):
        found = _drafted([huge, *["12"] * 400], trust=trust)
        assert isinstance(found, Integer | Real)


def test_how_cells_are_written_is_not_looked_at_unasked() -> None:
    assert isinstance(_drafted(["$1,234.50", "$7"], styles=False), Categorical)
    assert isinstance(_drafted(["39.5", "NA"], styles=False), Categorical)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("x", ["00123", "04567"]),
        ("x", ["+4912345", "+4912346"]),
        ("zip", ["10,115", "10,117"]),
        ("x", ["ABC 123", "XYZ 456"]),
        ("country", ["NA", "DE"]),
        ("x", ["NA", "-"]),
        ("x", ["", "a"]),
    ],
)
def test_codes_stay_codes(name: str, texts: list[str | None]) -> None:
    assert isinstance(_drafted(texts, name=name), Categorical)
