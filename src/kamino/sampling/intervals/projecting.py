"""Bounds carried through a system of linear rules, so that no attribute that is still to come is left without a value.

Fourier and Motzkin's elimination: from the last attribute to the first, each lower bound of it meets each upper bound,
its domain's ends included. What follows for the earlier attributes is a rule on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kamino.constraints import DenialConstraint
from kamino.sampling.intervals.linear_forms import Form, constraint_of, form, forms_of

# Of forms at a time. Beyond, what follows is not carried further: rows without a value are then copies of others.
_MOST_FORMS = 600


@dataclass(frozen=True, kw_only=True)
class System:
    """The linear rules among hard checks, and the ends of the domains of attributes that are never null.

    `ends` has every attribute of numbers; `firm` are those without nulls. Where an attribute may be null, a row that
    has no value for it takes null, and nothing follows for others.
    """

    forms: tuple[Form, ...]
    ends: Mapping[str, tuple[Fraction, Fraction]]
    firm: frozenset[str]

    @classmethod
    def of(
        cls, checks: Iterable[DenialConstraint], ends: Mapping[str, tuple[Fraction, Fraction]], firm: frozenset[str]
    ) -> System:
        """The system of checks, of which those are left out that are not linear in attributes of numbers."""
        found: dict[Form, None] = {}
        for check in checks:
            for each in forms_of(check) or ():
                if set(each.names) <= ends.keys():
                    found[each] = None
        return cls(forms=tuple(found), ends=ends, firm=firm)

    def guards(self, order: Sequence[str]) -> tuple[DenialConstraint, ...]:
        """Rules on the attributes of every beginning of an order that its rules on all of them imply.

        Guarantees:
            Whatever keeps them and the domains can be completed by real numbers.  [test_guards_leave_a_value]
            Whatever can be completed keeps them.  [test_guards_forbid_no_row]
        """
        if not any(len(each.names) > 1 for each in self.forms):
            return ()
        known = dict.fromkeys(self.forms)
        for name in reversed([each for each in order if each in self.ends]):
            if name not in self.firm:
                continue
            for each in self._eliminated(tuple(known), name):
                if not self._follows_from_ends(each):
                    known[each] = None
            if len(known) > _MOST_FORMS:
                break
        new = [each for each in known if each not in self.forms and each.names]
        return tuple(made for each in _strongest(new) if (made := constraint_of(each)) is not None)

    def _eliminated(self, forms: tuple[Form, ...], name: str) -> Iterable[Form]:
        """What follows for the others from the bounds of one attribute."""
        low, high = self.ends[name]
        uppers = [each for each in forms if each.weight(name) > 0]
        lowers = [each for each in forms if each.weight(name) < 0]
        ends_up = form({name: Fraction(1)}, -high, False)
        ends_down = form({name: Fraction(-1)}, low, False)
        for upper in (*uppers, ends_up):
            for lower in (*lowers, ends_down):
                if upper is not ends_up or lower is not ends_down:
                    yield _met(upper, lower, name)

    def _follows_from_ends(self, each: Form) -> bool:
        """Whether domains alone keep a form."""
        most = each.constant
        for name, weight in each.weights:
            low, high = self.ends[name]
            most += weight * (high if weight > 0 else low)
        return most < 0 or (most == 0 and not each.strict)

    def is_impossible(self) -> bool:
        """Whether no real numbers within the domains keep all forms on attributes that are never null, exactly."""
        known = dict.fromkeys(each for each in self.forms if set(each.names) <= self.firm)
        names = list(dict.fromkeys(name for each in known for name in each.names))
        while names:
            name = min(names, key=lambda n: _work(known, n))
            names.remove(name)
            new = [e for e in self._eliminated(tuple(known), name) if not self._follows_from_ends(e)]
            known = dict.fromkeys([*(each for each in known if not each.weight(name)), *_strongest(new)])
            if any(_is_false(each) for each in known):
                return True
            if len(known) > _MOST_FORMS:
                return False
        return any(_is_false(each) for each in known)

    def may_be_impossible(self) -> bool:
        """Whether an LP says so; it rounds, and is asked first because it is quick."""
        from scipy.optimize import linprog

        forms = [each for each in self.forms if set(each.names) <= self.firm]
        names = sorted({name for each in forms for name in each.names})
        if not names:
            return any(_is_false(each) for each in forms)
        rows = np.array([[float(each.weight(name)) for name in names] for each in forms])
        limits = np.array([-float(each.constant) for each in forms])
        bounds = [tuple(float(end) for end in self.ends[name]) for name in names]
        found = linprog(np.zeros(len(names)), A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
        return found.status == 2 or any(each.strict for each in forms)


def _work(known: Mapping[Form, None], name: str) -> int:
    """How many pairs of bounds an attribute has."""
    signs = [each.weight(name) for each in known]
    return sum(weight > 0 for weight in signs) * sum(weight < 0 for weight in signs)


def _met(upper: Form, lower: Form, name: str) -> Form:
    """The sum of an upper and a lower bound of an attribute, in which it has no weight."""
    a, b = upper.weight(name), -lower.weight(name)
    weights = {n: b * upper.weight(n) + a * lower.weight(n) for n in {*upper.names, *lower.names}}
    return form(weights, b * upper.constant + a * lower.constant, upper.strict or lower.strict)


def _is_false(each: Form) -> bool:
    return not each.weights and (each.constant > 0 or (each.constant == 0 and each.strict))


def _strongest(forms: Iterable[Form]) -> list[Form]:
    """Of forms with the same weights the one that asks most."""
    best: dict[tuple[tuple[str, Fraction], ...], Form] = {}
    for each in forms:
        known = best.get(each.weights)
        if known is None or (each.constant, each.strict) > (known.constant, known.strict):
            best[each.weights] = each
    return list(best.values())


NO_SUMS = System(forms=(), ends={}, firm=frozenset())
"""Of rules that compare columns and constants alone, which steps keep as they are."""
