"""Parts of the model switched off one at a time, by changing the settings that a fit takes by default.

The front door has no option for these settings, on purpose; so the default is exchanged where the backend asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar
from unittest import mock

from kamino.model.marginal import marginal_schedule as planning
from kamino.model.marginal.marginal_schedule import MarginalSettings

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A part of the model, and the settings that switch it off: `name=value`, or `part.name=value` for a nested one."""

    name: str
    changes: tuple[str, ...]


#: What `--ablation` measures; a new part of the model gets a line here.
ABLATION: tuple[Switch, ...] = (
    Switch(name="bins of equal width only", changes=("masses=1",)),
    Switch(name="no second count in bins", changes=("bins_part=0.0",)),
    Switch(name="no close relations", changes=("relations.most_share=0.0",)),
    Switch(name="loose relations read, too", changes=("relations.partners=0.0",)),
    Switch(name="no functions of few rows", changes=("relations.sketch=0.0",)),
    Switch(name="one resolution", changes=("groups=0",)),
    Switch(name="no interactions", changes=("interactions=0.0",)),
    Switch(name="no triples", changes=("triples=False",)),
    Switch(name="no categories counted again", changes=("recounts=False",)),
    Switch(name="no differences of numbers", changes=("differences=False",)),
    Switch(name="no shared nulls", changes=("shared_nulls=False",)),
    Switch(name="no parities", changes=("parities=0.0",)),
    Switch(name="no step functions", changes=("step_maps=0.0",)),
    Switch(name="no parts of dates and numbers", changes=("part_maps=0.0",)),
)


@contextmanager
def switched(changes: Sequence[str]) -> Iterator[None]:
    """Fit with changed settings inside; an error if a fit did not ask for them, for then nothing was switched off."""
    if not changes:
        yield
        return
    altered = change(MarginalSettings(), parse_changes(changes))
    with mock.patch.object(planning, "MarginalSettings", return_value=altered) as asked:
        yield
    if not asked.called:
        raise RuntimeError(f"no fit asked for its default settings; {', '.join(changes)} changed nothing")


def parse_changes(changes: Sequence[str]) -> dict[str, Any]:
    """The values of changes, by name; a value is a Python literal.

    >>> parse_changes(["parts=8", "shares.rounds=(0.5, 0.3)"])
    {'parts': 8, 'shares.rounds': (0.5, 0.3)}
    """
    pairs = (text.partition("=") for text in changes)
    return {name.strip(): ast.literal_eval(value.strip()) for name, _, value in pairs}


def change(settings: T, changes: Mapping[str, Any]) -> T:
    """The settings with some fields changed; fields of one nested part are changed together.

    >>> change(MarginalSettings(), {"effort.prior": 0.5, "parts": 8}).effort.prior
    0.5
    """
    if not is_dataclass(settings) or isinstance(settings, type):
        raise ValueError(f"found {type(settings).__name__} where settings with fields {sorted(changes)} were expected")
    known = [each.name for each in fields(settings)]
    given: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        first, _, rest = name.partition(".")
        if first not in known:
            raise ValueError(f"found no setting {first!r}; expected one of {', '.join(known)}")
        if rest:
            nested.setdefault(first, {})[rest] = value
        else:
            given[first] = value
    given |= {first: change(getattr(settings, first), inner) for first, inner in nested.items()}
    changed: T = replace(settings, **given)
    return changed
