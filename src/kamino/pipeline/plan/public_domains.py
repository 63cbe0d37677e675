"""Domains that the owner has said in other words than a schema's: values that constraints accept, and public lists.

Reads no private table. What it gives is as declared as a schema, so nothing is spent on finding it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kamino.constraints import Constraints
from kamino.constraints.tree import Comparison, Constant, DenialConstraint, Operator
from kamino.errors import InputError
from kamino.schema import Boolean, Categorical, Integer, Schema, Source
from kamino.schema.files.messages import did_you_mean
from kamino.schema.files.value_lists import VALUE_LISTS


def with_public_domains(
    schema: Schema, constraints: Constraints, lists: Iterable[tuple[str, str]], *, types_found: bool = False
) -> Schema:
    """The schema with the domains that constraints and public lists give to attributes without one.

    With `types_found`, the types were found by how cells are written: a list of texts then says more.

    Guarantees:
        Only a hard check on one attribute alone that lists all its values gives a domain.
        [test_accepted_values_are_a_domain]
        A list is taken only for an attribute that is named with it.  [test_public_lists_are_domains]
    """
    for name, chosen in lists:
        check_list(chosen)
        attribute = schema[name]
        if not attribute.has_domain and not isinstance(attribute, Categorical) and not types_found:
            raise InputError(
                f"found {name!r} of type {attribute.type}; expected a category to have the list {chosen!r}"
            )
        schema = _with_values(schema, name, VALUE_LISTS[chosen], types_found=types_found)
    for constraint in constraints:
        accepted = _accepted(constraint)
        if accepted is not None and accepted[0] in schema:
            schema = _with_values(schema, *accepted, types_found=types_found)
    return schema


def _with_values(schema: Schema, name: str, values: tuple[Any, ...], *, types_found: bool) -> Schema:
    """The schema with a list of values for one attribute, if that has no domain and may have such values."""
    attribute = schema[name]
    texts = all(isinstance(value, str) for value in values)
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if attribute.has_domain and not (types_found and isinstance(attribute, Boolean)):
        return schema
    if isinstance(attribute, Integer) and whole:
        return schema.with_domain(name, source=Source.DECLARED, min=min(values), max=max(values))
    if texts and types_found and not isinstance(attribute, Categorical):
        schema = schema.with_attribute(name, Categorical(nullable=True))
    if isinstance(schema[name], Categorical) and (texts or whole):
        return schema.with_domain(name, source=Source.DECLARED, values=list(values))
    return schema


def _accepted(constraint: DenialConstraint) -> tuple[str, tuple[Any, ...]] | None:
    """The attribute and the values of `not (a != v1 and a != v2 ...)`."""
    if not constraint.is_hard or not constraint.is_unary or len(constraint.attributes) != 1:
        return None
    values = []
    for predicate in constraint.predicates:
        if not isinstance(predicate, Comparison) or predicate.op is not Operator.NE:
            return None
        if not isinstance(predicate.right, Constant):
            return None
        values.append(predicate.right.value)
    return constraint.attributes[0], tuple(values)


def check_list(chosen: str) -> None:
    """Refuse a list that there is not."""
    if chosen not in VALUE_LISTS:
        raise InputError(
            f"found no public list {chosen!r}.{did_you_mean(chosen, VALUE_LISTS)} Lists: {', '.join(VALUE_LISTS)}"
        )


def check_lists(lists: Iterable[tuple[str, str]], columns: Sequence[str]) -> None:
    """Refuse lists that there are not, or that are for columns that there are not, before anything is found."""
    for name, chosen in lists:
        check_list(chosen)
        if name not in columns:
            raise InputError(
                f"found the list {chosen!r} for {name!r}, which is no column.{did_you_mean(name, columns)} "
                f"Columns: {', '.join(columns)}"
            )
