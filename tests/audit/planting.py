"""Run tests with a fault planted, to see which of them notice: not a test, but a plugin for pytest.

    KAMINO_FAULT="two zeros" pytest -p tests.audit.planting tests/privacy

Nothing should pass but tests that have nothing to do with the fault.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from kamino.planted.all_faults import FAULTS


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    (fault,) = [each for each in FAULTS if each.name == os.environ["KAMINO_FAULT"]]
    with fault.plant():
        return (yield)
