"""The linear rules of a schema's codec; refusing those that no row keeps."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from kamino.constraints import DenialConstraint, print_constraint
from kamino.constraints.terms.evaluation import from_arrow
from kamino.constraints.terms.exact import Numbers
from kamino.errors import SamplingError
from kamino.sampling.codes.terms_on_codes import decoded
from kamino.sampling.intervals.projecting import System
from kamino.schema import Codec, GridCodec, Integer, Real


def system_of(codec: Codec, checks: Sequence[DenialConstraint]) -> System:
    """The linear rules among hard checks over the domains of numbers."""
    ends: dict[str, tuple[Fraction, Fraction]] = {}
    firm = set()
    spoken = {name for check in checks for name in check.attributes}
    for name, each in codec.attributes.items():
        if name not in spoken or not isinstance(each, GridCodec) or not isinstance(each.attribute, Integer | Real):
            continue
        values = from_arrow(decoded(each, np.array([0, each.num_values - 1], dtype=np.int64)))
        assert isinstance(values, Numbers), "a grid of numbers is of numbers"
        low, high = values.fraction(0), values.fraction(1)
        assert low is not None
        assert high is not None
        ends[name] = (low, high)
        if each.null_code is None:
            firm.add(name)
    return System.of(checks, ends, frozenset(firm))


def refuse_impossible_sums(codec: Codec, checks: Sequence[DenialConstraint]) -> None:
    """Refuse linear rules that no row over the domains keeps, and name a smallest set of them that clashes.

    Guarantees:
        What is refused has no solution, exactly.  [test_impossible_sums_are_refused_with_the_smallest_clash]

    Raises:
        SamplingError: no row keeps them.
    """
    hard = [check for check in checks if check.is_hard and check.is_unary]
    if not any(check.has_terms for check in hard):
        return  # what compares columns and constants alone is searched elsewhere

    def is_impossible(some: Sequence[DenialConstraint]) -> bool:
        system = system_of(codec, some)
        return system.may_be_impossible() and system.is_impossible()

    if not is_impossible(hard):
        return
    kept = list(hard)
    for check in list(kept):
        fewer = [each for each in kept if each is not check]
        if is_impossible(fewer):
            kept = fewer
    texts = "; ".join(print_constraint(check) for check in kept)
    what = "this constraint" if len(kept) == 1 else "these constraints together"
    raise SamplingError(
        f"no row over the schema's domains satisfies {what}: {texts}. "
        "Widen a domain, let an attribute be null, or drop or soften a constraint."
    )
