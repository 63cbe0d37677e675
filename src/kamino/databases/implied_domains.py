"""What orders between columns say of their domains: a start has to lie before the last end there is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

from kamino.constraints.tree import Column, Comparison, Operator
from kamino.databases.table_rules import DatabaseRules
from kamino.schema import Attribute, Date, Integer

_STEP = {Operator.LE: 0, Operator.LT: 1}


def narrowed(attributes: Mapping[str, Attribute], rules: DatabaseRules, problems: list[str]) -> dict[str, Attribute]:
    """The attributes whose domains hold values that no row can have, without these.

    Without them, what is drawn first leaves something for what is drawn after it.

    Guarantees:
        No value that a rule allows is left out.  [test_implied_domains_leave_out_what_rules_forbid]
    """
    found: dict[str, Attribute] = {}
    orders = list(_orders(attributes, rules))
    for _ in range(len(orders) + 1):
        changed = False
        for low, high, step, text in orders:
            first, last = (found.get(name, attributes[name]) for name in (low, high))
            most, least = _moved(last.max, -step), _moved(first.min, step)  # type: ignore[union-attr]
            if most < first.min or least > last.max:  # type: ignore[union-attr]
                problems.append(f"{text!r}: found domains in which no row keeps it; widen that of {low} or {high}")
                return {}
            if first.max > most:  # type: ignore[union-attr]
                found[low], changed = _with(first, max=most), True
            if last.min < least:  # type: ignore[union-attr]
                found[high], changed = _with(last, min=least), True
        if not changed:
            break
    return found


def _orders(attributes: Mapping[str, Attribute], rules: DatabaseRules) -> Iterator[tuple[str, str, int, str]]:
    """The checks that one column is below another, or at most it, where both have values in every row."""
    for rule in rules.rows:
        if len(rule.constraint.predicates) != 1:
            continue
        (predicate,) = rule.constraint.predicates
        if not isinstance(predicate, Comparison) or not isinstance(predicate.right, Column):
            continue
        low, high, allowed = predicate.left.name, predicate.right.name, predicate.op.negated
        if allowed in (Operator.GE, Operator.GT):
            low, high, allowed = high, low, allowed.mirrored
        if allowed not in _STEP or low == high:
            continue
        pair = [attributes.get(name) for name in (low, high)]
        kinds = {type(each) for each in pair}
        plain = len(kinds) == 1 and kinds <= {Date, Integer}
        if plain and all(
            each.has_domain and not each.nullable and _step(each) == 1 for each in pair if each is not None
        ):
            yield low, high, _STEP[allowed], rule.text


def _step(attribute: Attribute) -> int:
    return attribute.step if isinstance(attribute, Integer) else 1


def _moved(value: Any, step: int) -> Any:
    return value + dt.timedelta(days=step) if isinstance(value, dt.date) else value + step


def _with(attribute: Attribute, **ends: Any) -> Attribute:
    return type(attribute)(**{**attribute.fields(), **ends})
