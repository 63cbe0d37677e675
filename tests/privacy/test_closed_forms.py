"""Prices of Gaussian releases are those of dp_accounting, without the cost of importing it."""

from __future__ import annotations

import math
import subprocess
import sys

import dp_accounting
import numpy as np
import pytest

from kamino.privacy.accounting.closed_forms import get_epsilon_gaussian, get_sigma_gaussian

# In a process of its own: here all of it is imported.
PRICED = """
import sys
from kamino.privacy.accounting.closed_forms import get_epsilon_gaussian, get_sigma_gaussian
get_epsilon_gaussian(1.5 * get_sigma_gaussian(1.0, 1e-6), 1e-6)
heavy = {"dp_accounting", "scipy.signal", "scipy.stats", "scipy.optimize"} & set(sys.modules)
assert not heavy, f"{heavy} was imported"
"""


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # both, where delta is next to 1
def test_closed_forms_are_those_of_the_package() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        epsilon, sigma = (float(10 ** rng.uniform(*span)) for span in ((-4, 2), (-2, 4)))
        delta = float(10 ** rng.uniform(-18, -0.01))
        found = get_sigma_gaussian(epsilon, delta), get_epsilon_gaussian(sigma, delta)
        package = dp_accounting.get_sigma_gaussian(epsilon, delta), dp_accounting.get_epsilon_gaussian(sigma, delta)
        assert [each.hex() for each in found] == [float(each).hex() for each in package], (epsilon, sigma, delta)


def test_extremes_are_those_of_the_package() -> None:
    for value in (0.0, 1e-300, 1.0, math.inf):
        for delta in (0.0, 1e-6, 1.0):
            if (value, delta) != (1e-300, 1e-6):  # there its search divides by 0
                assert get_epsilon_gaussian(value, delta) == dp_accounting.get_epsilon_gaussian(value, delta)
            assert get_sigma_gaussian(value, delta) == dp_accounting.get_sigma_gaussian(value, delta)
    for arguments in ((-1.0, 0.5), (1.0, -0.1), (1.0, 1.1), (math.nan, 0.5), (1.0, math.nan)):
        with pytest.raises(ValueError, match="expected"):
            get_epsilon_gaussian(*arguments)
        with pytest.raises(ValueError, match="expected"):
            get_sigma_gaussian(*arguments)


def test_a_price_imports_no_statistics() -> None:
    ran = subprocess.run([sys.executable, "-c", PRICED], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
