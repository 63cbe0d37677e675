"""Prices of Gaussian releases are those of dp_accounting, without the cost of importing all of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import dp_accounting
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from kamino.privacy.accounting import closed_forms

# In a process of its own: what is imported here would be taken instead of the one file.
PRICED = """
import sys
from kamino.late_imports import compiled_function
from kamino.privacy.accounting.closed_forms import get_epsilon_gaussian, get_sigma_gaussian
for epsilon in (0.01, 0.3, 1.0, 8.0):
    for delta in (1e-12, 1e-6, 1e-3):
        sigma = get_sigma_gaussian(epsilon, delta)
        print(sigma.hex(), get_epsilon_gaussian(sigma * 1.5, delta).hex())
slow = {"dp_accounting", "scipy.signal", "scipy.stats", "scipy.optimize"}
# Older versions of scipy have the function in no file of its own: then the package is imported.
if compiled_function("scipy.special", "_special_ufuncs", "log_ndtr") is not None:
    slow |= {"scipy.special"}
assert not slow & set(sys.modules), f"imported: {slow & set(sys.modules)}"
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


@pytest.fixture
def own_file(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The closed forms as they are run from their file, though the package is imported here."""
    monkeypatch.delitem(sys.modules, "dp_accounting")
    closed_forms._module.cache_clear()
    yield
    closed_forms._module.cache_clear()


def agreements(seed: int) -> list[bool]:
    rng = np.random.default_rng(seed)
    found = []
    with np.errstate(all="ignore"):
        for epsilon, delta in zip(np.exp(rng.uniform(-8, 6, 60)), 10 ** rng.uniform(-16, -0.001, 60), strict=True):
            sigma = dp_accounting.get_sigma_gaussian(epsilon, delta)
            found += [closed_forms.get_sigma_gaussian(epsilon, delta) == sigma]
            found += [
                closed_forms.get_epsilon_gaussian(1.37 * sigma, delta)
                == dp_accounting.get_epsilon_gaussian(1.37 * sigma, delta)
            ]
    return found


@pytest.mark.usefixtures("own_file")
def test_any_price_is_that_of_the_package() -> None:
    assert all(agreements(1))
    assert closed_forms._module().__name__ == "kamino_closed_forms"


@pytest.mark.usefixtures("own_file")
def test_without_compiled_functions_the_public_ones_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_forms, "compiled_function", lambda *names: None)
    assert all(agreements(2))
    assert closed_forms._module().scipy.optimize.brentq is scipy.optimize.brentq


@pytest.mark.usefixtures("own_file")
def test_what_else_the_closed_forms_ask_of_scipy_is_there() -> None:
    module = closed_forms._module()
    assert module._norm.cdf(0.0) == 0.5
    assert module.scipy.stats.beta is scipy.stats.beta
    assert module.scipy.optimize.brenth is scipy.optimize.brenth
    assert module.scipy.__version__ == scipy.__version__


@pytest.mark.usefixtures("own_file")
def test_no_root_is_found_of_what_is_no_number() -> None:
    for brentq in (closed_forms._module().scipy.optimize.brentq, scipy.optimize.brentq):
        with pytest.raises(ValueError, match="NaN"):
            brentq(lambda at: float("nan"), 0.0, 1.0, xtol=1e-12)
