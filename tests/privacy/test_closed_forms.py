"""Prices of Gaussian releases are those of dp_accounting, without the cost of importing all of it."""

from __future__ import annotations

import subprocess
import sys

import dp_accounting
import pytest

from kamino.privacy.accounting import closed_forms

# In a process of its own: what is imported here would be taken instead of the one file.
PRICED = """
import sys
from kamino.privacy.accounting.closed_forms import get_epsilon_gaussian, get_sigma_gaussian
for epsilon in (0.01, 0.3, 1.0, 8.0):
    for delta in (1e-12, 1e-6, 1e-3):
        sigma = get_sigma_gaussian(epsilon, delta)
        print(sigma.hex(), get_epsilon_gaussian(sigma * 1.5, delta).hex())
assert not {"dp_accounting", "scipy.signal"} & set(sys.modules), "all of it was imported"
"""


def test_closed_forms_are_those_of_the_package() -> None:
    ran = subprocess.run([sys.executable, "-c", PRICED], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    expected = []
    for epsilon in (0.01, 0.3, 1.0, 8.0):
        for delta in (1e-12, 1e-6, 1e-3):
            sigma = float(dp_accounting.get_sigma_gaussian(epsilon, delta))
            expected += [sigma.hex(), float(dp_accounting.get_epsilon_gaussian(sigma * 1.5, delta)).hex()]
    assert ran.stdout.split() == expected


def test_without_its_file_the_package_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dp_accounting")
    monkeypatch.setattr(closed_forms, "find_spec", lambda name: None)
    closed_forms._module.cache_clear()
    assert closed_forms.get_sigma_gaussian(1.0, 1e-6) == pytest.approx(4.2247, abs=1e-4)
    assert closed_forms._module().__name__ == "dp_accounting"
    closed_forms._module.cache_clear()
