"""What is slow to import, imported late or in part: public names of a package, compiled functions of another."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


def late_imports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`: `homes` says in which of its modules a name is.

    >>> look_up = late_imports("kamino", {"KaminoError": "errors"})
    >>> look_up("KaminoError").__name__
    'KaminoError'
    """

    def look_up(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return look_up


def compiled_function(package: str, module: str, name: str) -> Any:
    """Return a function of a compiled module, without running the package around it; None where it is not found.

    Packages of scipy import hundreds of modules for one function that lies in a file of its own. Where the package is
    imported already, its own module is taken.

    >>> compiled_function("scipy.special", "_special_ufuncs", "no_such_function") is None
    True

    Guarantees:
        It returns what the package's own returns.  [test_compiled_functions_are_those_of_the_package]
    """
    return getattr(_compiled_module(package, module, package in sys.modules), name, None)


def special_function(name: str) -> Any:
    """Return a function of scipy.special, alone where it lies in the compiled module that needs no other.

    >>> float(special_function("log_ndtr")(0.0))
    -0.6931471805599453
    """
    found = compiled_function("scipy.special", "_special_ufuncs", name)
    return found if found is not None else getattr(importlib.import_module("scipy.special"), name)


@cache
def _compiled_module(package: str, module: str, imported: bool) -> ModuleType | None:
    if imported:
        return sys.modules.get(f"{package}.{module}")
    outer, _, inner = package.rpartition(".")
    found = find_spec(outer)
    folders = [f"{folder}/{inner}" for folder in (found and found.submodule_search_locations) or ()]
    spec = PathFinder.find_spec(module, folders)
    if spec is None or spec.loader is None:
        return None
    try:
        compiled = module_from_spec(spec)
        spec.loader.exec_module(compiled)
    except ImportError:  # it needs the package around it
        return None
    return compiled
