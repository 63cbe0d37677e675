"""What is imported late or in part is what the whole package has."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
import scipy.special

from kamino.late_imports import compiled_function, special_function

# The package has a function of this name.
late_imports = importlib.import_module("kamino.late_imports")

# In a process of its own: here scipy may be imported already. First the part, then the whole beside it.
COMPARED = """
import sys
import numpy as np
from kamino.late_imports import compiled_function, special_function
part = compiled_function("scipy.special", "_special_ufuncs", "log_ndtr")
root = compiled_function("scipy.optimize", "_zeros", "_brentq")
assert not {"scipy.special", "scipy.optimize"} & set(sys.modules)
if part is None:  # older versions of scipy have it in no file of its own
    part = special_function("log_ndtr")
at = np.concatenate([np.linspace(-40, 10, 10_001), [-np.inf, np.inf, np.nan]])
before = part(at)
from scipy.optimize import brentq
from scipy.special import log_ndtr
assert np.array_equal(before, log_ndtr(at), equal_nan=True) and np.array_equal(before, part(at), equal_nan=True)
found = brentq(np.cos, 1.0, 2.0, xtol=1e-12)
assert found == root(np.cos, 1.0, 2.0, 1e-12, 4 * np.finfo(float).eps, 100, (), False, True)
assert special_function("log_ndtr") is log_ndtr
"""


def test_compiled_functions_are_those_of_the_package() -> None:
    ran = subprocess.run([sys.executable, "-c", COMPARED], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_module_that_needs_its_package_is_not_taken() -> None:
    code = (
        "from kamino.late_imports import compiled_function\n"
        "assert compiled_function('scipy.special', 'no_such_module', 'log_ndtr') is None\n"
        "assert compiled_function('no_such_package.special', 'x', 'y') is None\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_file_that_cannot_be_loaded_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spec: object) -> None:
        raise ImportError("needs the package around it")

    monkeypatch.setattr(late_imports, "module_from_spec", fail)
    monkeypatch.delitem(sys.modules, "scipy.special", raising=False)
    late_imports._compiled_module.cache_clear()
    assert compiled_function("scipy.special", "_special_ufuncs", "log_ndtr") is None
    assert special_function("log_ndtr") is scipy.special.log_ndtr
    late_imports._compiled_module.cache_clear()
