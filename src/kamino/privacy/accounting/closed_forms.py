"""The closed forms by which Gaussian releases are priced: those of `dp_accounting`, without what it imports.

Importing `dp_accounting` also imports its privacy loss distributions, and with them scipy.signal. Its closed forms are
a module that imports nothing of the package; it takes one function of scipy.stats and one of scipy.optimize, and the
import of these two still takes longer than many a run. So that module is run here from its own file, and what it
imports as scipy is `_Scipy`: the two functions, and all the rest of scipy as soon as it is asked for.
"""

from __future__ import annotations

import builtins
import importlib
import math
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from kamino.late_imports import compiled_function, special_function

#: How closely `scipy.optimize.brentq` finds roots, relative to them, and after how many steps it gives up.
_RELATIVE = 4 * math.ulp(1.0)
_MOST_STEPS = 100


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
        if path.exists():
            return _run(path)
    import dp_accounting

    return dp_accounting  # type: ignore[no-any-return]


def _run(path: Path) -> ModuleType:
    """Run a module from its file. Its own imports go through `_import`; nobody else's do."""
    module = ModuleType("kamino_closed_forms")
    code = SourceFileLoader(module.__name__, str(path)).get_code(module.__name__)
    vars(module)["__builtins__"] = vars(builtins) | {"__import__": _import}
    exec(code, vars(module))  # type: ignore[arg-type]
    return module


def _import(name: str, *arguments: Any, **named: Any) -> Any:
    """What `import scipy.stats` and the like bind in the module is a stand-in; any other import is as ever."""
    return _scipy() if name in {"scipy.stats", "scipy.optimize"} else importlib.__import__(name, *arguments, **named)


class _StandIn:
    """Some attributes of a module, or of an object in one; the rest is taken from the real one, imported for it."""

    def __init__(self, real: Callable[[], Any], **known: Any) -> None:
        self._real = real
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)


def _scipy() -> _StandIn:
    """Return scipy as the closed forms see it, with public functions where scipy has no such compiled ones."""
    solver = compiled_function("scipy.optimize", "_zeros", "_brentq")
    real = importlib.import_module
    normal = _StandIn(lambda: real("scipy.stats").norm, logcdf=special_function("log_ndtr"))
    roots = {"brentq": _brentq_of(solver)} if solver else {}
    return _StandIn(
        lambda: real("scipy"),
        stats=_StandIn(lambda: real("scipy.stats"), norm=normal),
        optimize=_StandIn(lambda: real("scipy.optimize"), **roots),
    )


def _brentq_of(solver: Callable[..., float]) -> Callable[..., float]:
    """Return `scipy.optimize.brentq` with the compiled function behind it."""

    def brentq(function: Callable[[float], float], low: float, high: float, *, xtol: float) -> float:
        def checked(at: float) -> float:
            value = function(at)
            if math.isnan(value):
                raise ValueError(f"The function value at x={at} is NaN; solver cannot continue.")
            return value

        return solver(checked, low, high, xtol, _RELATIVE, _MOST_STEPS, (), False, True)

    return brentq
