"""The order of attributes by the paper's Algorithm 4, as printed."""

from __future__ import annotations

from collections.abc import Iterable

from kamino.constraints import DenialConstraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.sampling.plan.shapes import without_made_up_keys
from kamino.schema import Codec


def paper_sequence(codec: Codec, constraints: Iterable[DenialConstraint]) -> tuple[str, ...]:
    """Return the attributes in the order of the paper's Algorithm 4.

    Functional dependencies, hard and soft, come by the smallest domain on their left side; each adds its left side by
    domain size, then its right side. All other attributes follow by domain size. What is equal keeps the order in which
    it was given.

    Guarantees:
        Each attribute comes once; the left side before the right unless an earlier dependency put that first.
        [test_paper_sequences]

    >>> from kamino.constraints import Constraints
    >>> from kamino.schema import Boolean, Integer, Schema
    >>> schema = Schema(attributes={"coast": Boolean(), "zip": Integer(min=0, max=999), "age": Integer(min=0, max=99)})
    >>> paper_sequence(Codec(schema), Constraints.parse("zip -> coast"))
    ('zip', 'coast', 'age')
    """
    plain = [c for each in constraints if (c := without_made_up_keys(each, codec)) is not None]
    dependencies = [d for c in plain if (d := dependency_of(c)) is not None]
    place = {name: i for i, name in enumerate(codec.attributes)}

    def size(name: str) -> tuple[int, int]:
        return codec[name].num_values, place[name]

    order: list[str] = []
    for dependency in sorted(dependencies, key=lambda d: min(codec[name].num_values for name in d.left)):
        # Ids of groups are there before any attribute.
        left = sorted(dependency.left - codec.groups.keys(), key=size)
        order += [n for n in (*left, dependency.right) if n not in order]
    return (*order, *sorted((name for name in codec.attributes if name not in order), key=size))
