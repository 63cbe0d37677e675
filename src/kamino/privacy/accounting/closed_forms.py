"""The closed forms by which Gaussian releases are priced: those of `dp_accounting`, without the rest of that package.

Importing `dp_accounting` also imports its privacy loss distributions, and with them scipy.signal, which takes longer
than many a run. Its closed forms are a module that imports nothing of the package, loaded here from its own file.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def get_epsilon_gaussian(sigma: float, delta: float) -> float:
    """Return `dp_accounting.get_epsilon_gaussian`: the epsilon at `delta` of a Gaussian mechanism.

    Guarantees:
        It is what the package returns, to the last bit.  [test_closed_forms_are_those_of_the_package]
    """
    return float(_module().get_epsilon_gaussian(sigma, delta))


def get_sigma_gaussian(epsilon: float, delta: float) -> float:
    """Return `dp_accounting.get_sigma_gaussian`: the least noise of a Gaussian mechanism with this price.

    Guarantees:
        It is what the package returns, to the last bit.  [test_closed_forms_are_those_of_the_package]
    """
    return float(_module().get_sigma_gaussian(epsilon, delta))


@cache
def _module() -> ModuleType:
    """The package where it is imported already, or has no such file; else its one module."""
    package = None if "dp_accounting" in sys.modules else find_spec("dp_accounting")
    for folder in (package and package.submodule_search_locations) or ():
        path = Path(folder) / "gaussian_mechanism.py"
        spec = spec_from_file_location("kamino_closed_forms", path) if path.exists() else None
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    import dp_accounting

    return dp_accounting  # type: ignore[no-any-return]
