"""What a stage decides by: shares of the budget, thresholds, sizes, each with the reason for its value.

A policy is a frozen dataclass, one for a stage, in a file of its own. All of them stand on docs/reference/policy.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def because(reason: str) -> Mapping[str, str]:
    """The metadata of a field: why it has this value."""
    return {"reason": reason}


def reasons(policy: DataclassInstance) -> dict[str, tuple[Any, str]]:
    """Each value of a policy with its reason.

    Guarantees:
        There is one for each.  [test_every_value_has_a_reason]
    """
    return {each.name: (getattr(policy, each.name), each.metadata["reason"]) for each in fields(policy)}


@contextmanager
def trying(policy: DataclassInstance, **changes: Any) -> Iterator[None]:
    """Run a block under other values, for benchmarks that sweep them: plan and run follow alike.

    Guarantees:
        Afterwards the values are as before, however the block ends.  [test_values_are_put_back]
    """
    known = {each.name for each in fields(policy)}
    if not set(changes) <= known:
        raise ValueError(f"found {sorted(set(changes) - known)}; expected some of {', '.join(sorted(known))}")
    before = {name: getattr(policy, name) for name in changes}
    try:
        for name, value in changes.items():
            object.__setattr__(policy, name, value)
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(policy, name, value)
