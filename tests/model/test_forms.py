"""Forms for JSON from anybody: they refuse what asking for each value by name refuses, in the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.errors import ModelError
from kamino.model.filled_forms import Amount, ClosedForm, Form, Number, Whole, filled
from kamino.model.saved import Fields


class Line(Form):
    """A line."""

    what: str
    sigma: Amount | None
    moved: Number


class Prices(ClosedForm):
    """A form without other names."""

    replace: Whole


class Sheet(Form):
    """All kinds of values."""

    rows: Whole
    private: bool
    names: list[str]
    price: Prices
    lines: list[Line]


GOOD: dict[str, Any] = {
    "rows": 3,
    "private": True,
    "names": ["a"],
    "price": {"replace": 2},
    "lines": [{"what": "x", "sigma": None, "moved": -1.5}, {"what": "y", "sigma": 2, "moved": 0}],
}


def _asked(document: object) -> None:
    """The same, asked for one by one."""
    fields = Fields(document, where="sheet")
    fields.whole("rows")
    fields.flag("private")
    fields.texts("names")
    fields.within("price").only("replace").whole("replace")
    for line in fields.objects("lines"):
        line.text("what")
        line.number_or_null("sigma", least=0)
        line.number("moved")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": "3"}, "sheet: rows is not a whole number"),
        ({"rows": True}, "sheet: rows is not a whole number"),
        ({"rows": 3.0}, "sheet: rows is not a whole number"),
        ({"rows": -1}, "sheet: rows is not at least 0"),
        ({"private": 1}, "sheet: private is neither true nor false"),
        ({"names": "a"}, "sheet: names is not a list"),
        ({"names": ["a", 1]}, "sheet: names 1 is not a text"),
        ({"price": [1]}, "sheet: price is not a set of named values"),
        ({"price": {"replace": 1, "\x1b[31m": 2}}, "sheet: price: '\\x1b[31m' is unknown"),
        ({"lines": [{"what": "x", "moved": 1}]}, "sheet: lines 0: sigma is missing"),
        ({"lines": [{"what": "x", "sigma": float("inf"), "moved": 1}]}, "sheet: lines 0: sigma is not a finite number"),
        ({"lines": [{"what": "x", "sigma": 10**400, "moved": 1}]}, "sheet: lines 0: sigma is not"),
    ],
)
def test_forms_say_what_does_not_fit(change: dict[str, Any], said: str) -> None:
    assert filled(Sheet, {**GOOD, "more": 1}, where="sheet").rows == 3
    with pytest.raises(ModelError) as refused:
        filled(Sheet, {**GOOD, **change}, where="sheet")
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)
    with pytest.raises(ModelError):
        _asked({**GOOD, **change})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*GOOD, "what", "sigma", "moved", "replace", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)
PLACES = [
    ("rows",),
    ("private",),
    ("names",),
    ("price", "replace"),
    ("lines", 0, "sigma"),
    ("lines", 1, "moved"),
    ("lines",),
]


@examples(400)
@given(place=st.sampled_from(PLACES), value=VALUES, gone=st.booleans())
def test_forms_refuse_what_fields_refuse(place: tuple[Any, ...], value: Any, gone: bool) -> None:
    document = json.loads(json.dumps(GOOD))
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    if gone:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value

    def refuses(read: Any) -> bool:
        try:
            read()
        except ModelError:
            return True
        return False

    assert refuses(lambda: filled(Sheet, document, where="sheet")) == refuses(lambda: _asked(document))
