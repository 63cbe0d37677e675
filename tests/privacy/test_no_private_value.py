"""A marker string and a marker number in the private data must show in nothing that comes out of a failing path."""

from __future__ import annotations

import logging
import traceback
import warnings

import numpy as np
import pyarrow as pa
import pytest

from kamino.privacy import Budget, Gate, PrivacyUnit, SeededNoise
from kamino.privacy.mechanisms.bounds import number_cells
from kamino.testing.replay import Recorder, Replayer, assert_replay, remove_row

TEXT = "XMARKERX"
NUMBER = 7316549823
ONE = Budget(epsilon=1.0, delta=1e-6)
TABLE = pa.table({TEXT[:0] + "who": [TEXT, "a", "b"], "x": [NUMBER, 1, 2], "y": [float(NUMBER), 1.0, 2.0]})
FULL = {"noise_multiplier": 4.3}


def gate(**options):
    return Gate(ONE, noise=SeededNoise(0), **options)


def spent():
    """A gate with nothing left."""
    used = gate()
    used.release_counts(np.arange(3), what="all", attributes=(), noise_multiplier=4.2248)
    return used


def numbers():
    return TABLE["x"].to_numpy()


CELLS = {"x": number_cells(integer=False)}
FAILING = {
    "counts over budget": lambda: spent().release_counts(numbers(), what="c", attributes=("x",), **FULL),
    "counts of reals": lambda: gate().release_counts(numbers() * 1.0, what="c", attributes=("x",), **FULL),
    "counts of text": lambda: gate().release_counts([TEXT, NUMBER], what="c", attributes=("x",), **FULL),
    "counts of objects": lambda: gate().release_counts(
        np.array([TEXT, NUMBER], dtype=object), what="c", attributes=("x",), **FULL
    ),
    "counts without noise": lambda: gate().release_counts(numbers(), what="c", attributes=(), noise_multiplier=0),
    "vector over budget": lambda: spent().release_vector(
        numbers() * 1.0, what="v", attributes=("y",), sensitivity=1.0, **FULL
    ),
    "vector of text": lambda: gate().release_vector(
        np.array([TEXT]), what="v", attributes=("y",), sensitivity=1.0, **FULL
    ),
    "vector without bound": lambda: gate().release_vector(
        numbers(), what="v", attributes=("y",), sensitivity=float("inf"), **FULL
    ),
    "categories over budget": lambda: spent().release_categories({"who": TABLE["who"]}, delta=1e-7, **FULL),
    "categories without delta": lambda: gate().release_categories({"who": [TEXT]}, delta=0, **FULL),
    "categories over delta": lambda: gate().release_categories({"who": [TEXT]}, delta=1e-3, **FULL),
    "categories that are no iterable": lambda: gate().release_categories({"x": NUMBER}, delta=1e-7, **FULL),
    "bounds over budget": lambda: spent().release_bounds({"x": numbers()}, CELLS, about_rows=9, **FULL),
    "bounds of text": lambda: gate().release_bounds({"x": np.array([TEXT, str(NUMBER)])}, CELLS, about_rows=9, **FULL),
    "bounds of a list": lambda: gate().release_bounds({"x": [NUMBER]}, CELLS, about_rows=9, **FULL),
    "release before selection": lambda: gate(unit=PrivacyUnit(column="who")).release_counts(
        numbers(), what="c", attributes=("x",), **FULL
    ),
    "unknown unit": lambda: gate(unit=PrivacyUnit(column="customer")).select_rows(TABLE),
    "replay of a leak": lambda: assert_replay(lambda table, _: table, TABLE, remove_row(TABLE, 0)),
    "replay of leaked keys": lambda: assert_replay(
        lambda table, _: dict.fromkeys(table["who"].to_pylist(), 1), TABLE, remove_row(TABLE, 0)
    ),
    "replay of an outlier": lambda: assert_replay(
        lambda table, gate: gate.release_vector(
            np.array([table["y"].to_numpy().sum()]), what="v", attributes=("y",), sensitivity=1.0, **FULL
        ),
        TABLE,
        remove_row(TABLE, 0),
    ),
    "replay of a crash": lambda: assert_replay(_crash, remove_row(TABLE, 0), TABLE),
}


def _crash(table, gate):
    if table.num_rows == 3:
        raise ValueError(f"{table['who'][0]} {table['x'][0]}")
    return 0


def marked(text):
    return TEXT in text or str(NUMBER) in text or "7.31" in text or "7,316" in text or "7316" in text


@pytest.mark.parametrize("name", FAILING)
def test_no_private_value_in_any_message(name, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    with (
        warnings.catch_warnings(record=True) as warned,
        pytest.raises((ValueError, TypeError, AssertionError)) as raised,
    ):
        FAILING[name]()
    chain = traceback.format_exception(raised.value)
    # Source lines of this file name the markers' variables, never their values.
    shown = [*chain, repr(raised.value), caplog.text, *map(str, warned), *capsys.readouterr()]
    assert not marked("\n".join(shown))


def test_no_private_value_in_any_repr():
    recorder = Recorder()
    opened = Gate(ONE, noise=SeededNoise(0), tape=recorder)
    opened.release_counts(numbers() - numbers() + NUMBER, what="c", attributes=("x",), noise_multiplier=9.0)
    opened.release_categories({"who": [TEXT]}, noise_multiplier=9.0, delta=1e-7)
    things = [opened, opened.ledger, recorder, Replayer(recorder.records), opened.noise, opened.unit]
    shown = [repr(thing) for thing in things] + [str(thing) for thing in things]
    shown += [repr(opened.ledger.entries), opened.ledger.to_json(), repr(opened.ledger.to_rows())]
    assert not marked("\n".join(shown))


def test_the_markers_are_found_where_they_are():
    assert marked(repr(TABLE.to_pylist()))
