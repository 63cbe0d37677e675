"""A mechanism may show truth plus noise, and nothing else of the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kamino.planted.all_faults import FAULTS
from kamino.privacy import Gate
from kamino.testing import compensate


def cities(*counts: int) -> pa.Table:
    return pa.table({"city": [name for name, n in zip("abc", counts, strict=True) for _ in range(n)]})


def run(table: pa.Table, gate: Gate) -> Any:
    found = gate.release_categories({"city": table["city"]}, noise_multiplier=2.0, delta=1e-9)["city"]
    counts = np.array([table["city"].to_pylist().count(name) for name in "abcd"])
    # Three quarters of the budget are left.
    noisy = gate.release_counts(counts, what="cities", attributes=("city",), noise_multiplier=9.0)
    rates = gate.release_vector(counts / 7, what="rates", attributes=("city",), noise_multiplier=9.0, sensitivity=1 / 7)
    return found, noisy, rates


def test_clean_mechanisms_show_truth_plus_noise() -> None:
    from kamino.privacy import Budget

    others = (cities(50, 60, 70), cities(90, 10, 80), cities(0, 60, 60))
    assert compensate(run, cities(60, 50, 80), others, budget=Budget(epsilon=9.0, delta=1e-6)) == ()


def test_what_a_mechanism_shows_besides_noise_is_seen() -> None:
    from kamino.privacy import Budget

    said = {
        "categories in the order of their true counts": "categories on city",
        "no noise on empty cells": "counts on",
    }
    for name, words in said.items():
        (fault,) = [each for each in FAULTS if each.name == name]
        with fault.plant():
            found = compensate(
                run, cities(60, 50, 80), (cities(50, 60, 0), cities(50, 60, 70)), budget=Budget(epsilon=9.0, delta=1e-6)
            )
        assert any(words in problem for problem in found), name


def test_another_course_is_told() -> None:
    def leaking(table: pa.Table, gate: Gate) -> Any:
        for _ in range(1 + table.num_rows % 2):
            gate.release_counts(np.array([1]), what="one", attributes=(), noise_multiplier=9.0)

    assert compensate(leaking, cities(1, 1, 1), (cities(1, 1, 0),)) == ()
    assert "another course" in compensate(leaking, cities(1, 1, 0), (cities(1, 1, 1),))[0]
