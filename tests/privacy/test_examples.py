from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import kamino.privacy

MODULES = ["kamino.privacy"] + [
    module.name for module in pkgutil.walk_packages(kamino.privacy.__path__, "kamino.privacy.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_guarantees_name_tests_that_exist():
    source = "\n".join(path.read_text() for path in Path(kamino.privacy.__path__[0]).rglob("*.py"))
    tests = "\n".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    named = set(re.findall(r"\[(test_\w+)\]", source))
    assert named
    assert {name for name in named if f"def {name}(" not in tests} == set()
