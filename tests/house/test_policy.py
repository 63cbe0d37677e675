"""Policies: every value has a reason, and a benchmark that tries others puts them back."""

from __future__ import annotations

import importlib
from dataclasses import fields
from pathlib import Path

import pytest

from kamino.engine.finding_policy import FINDING
from kamino.pipeline import Synthesizer
from kamino.pipeline.plan.telling_policy import TELLING
from kamino.policy import reasons, trying
from kamino.schema import Schema

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("policy", [FINDING, TELLING])
def test_every_value_has_a_reason(policy: object) -> None:
    for name, (value, reason) in reasons(policy).items():
        assert isinstance(value, int | float), name
        assert reason.endswith("."), name
        assert len(reason.split()) > 5, name


def test_all_policies_are_on_the_page() -> None:
    """Docs list every policy that there is."""
    from docs._pages import policies

    page = policies()
    for path in SOURCE.rglob("*_policy.py"):
        module = importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))
        found = [value for name, value in vars(module).items() if name.isupper()]
        assert len(found) == 1, path
        for each in fields(found[0]):
            assert f"| `{each.name}` |" in page


def test_values_are_put_back() -> None:
    def planned() -> str:
        return str(Synthesizer(Schema.from_yaml("attributes: {a: {type: categorical}}")).plan(1000).to_json())

    before = planned()

    def interrupted() -> None:
        with trying(FINDING, rows=0.2):
            assert planned() != before
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert planned() == before
    with pytest.raises(ValueError, match=r"\['speed'\]; expected some of categories_weight"), trying(FINDING, speed=1):
        pass
