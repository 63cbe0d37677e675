"""What the planner needs to know of a constraint: its shape, with its parts by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kamino.constraints import ConstraintClass, DenialConstraint, classify, print_constraint
from kamino.constraints.analysis.canonical import same_meaning
from kamino.constraints.analysis.classify import Dependency, dependency_of
from kamino.constraints.analysis.reasoning import can_hold
from kamino.constraints.counting.conjunction import conjunction_of, equal_attributes
from kamino.constraints.tree import Column, Comparison, NullTest, Operator, Predicate, is_cross
from kamino.errors import SamplingError
from kamino.schema import Codec


@dataclass(frozen=True, kw_only=True)
class Order:
    """`not (equal groups and t1.x above t2.x and t1.y on the wrong side of t2.y)`, seen from the later attribute y.

    `falling` says that y must not rise with x. With `ties_equal`, rows of equal x must have equal y as well.
    """

    groups: frozenset[str]
    earlier: str
    later: str
    falling: bool
    ties_equal: bool


@lru_cache(maxsize=4096)
def shape_of(constraint: DenialConstraint) -> tuple[ConstraintClass, Dependency | None]:
    """Return the class of a constraint and the dependency it states, if any; remembered, since planning asks often."""
    return classify(constraint), dependency_of(constraint)


@lru_cache(maxsize=4096)
def order_of(constraint: DenialConstraint, later: str) -> Order | None:
    """Return the order a constraint states if a monotone column of `later` satisfies it, else None."""
    if constraint.is_unary or classify(constraint) is not ConstraintClass.ORDER:
        return None
    operators = {cross.left: cross.op for cross in conjunction_of(constraint).cross}
    ordered = {name: op for name, op in operators.items() if op is not None and op.is_order}
    if later not in ordered:
        return None
    (earlier,) = (name for name in ordered if name != later)
    x, y = ordered[earlier], ordered[later]
    if x in (Operator.LT, Operator.LE):
        x, y = x.mirrored, y.mirrored
    if y not in (Operator.LT, Operator.GT):
        return None
    return Order(
        groups=frozenset(operators) - {earlier, later},
        earlier=earlier,
        later=later,
        falling=y is Operator.GT,
        ties_equal=x is Operator.GE,
    )


def joint_order(constraints: Sequence[DenialConstraint], later: str) -> Order | None:
    """Return the order that constraints state together, if a monotone column of `later` is all they ask for, else None.

    Beside the order there may be dependencies into `later` from what the order compares: rows that are equal there have
    equal values, too.

    Guarantees:
        Columns that keep the order and its ties keep the constraints.  [test_an_order_with_a_dependency_is_a_chain]
    """
    orders = [order for c in constraints if (order := order_of(c, later)) is not None]
    dependencies = [d for c in constraints if (d := shape_of(c)[1]) is not None]
    if len(orders) != 1 or len(orders) + len(dependencies) != len(constraints):
        return None
    (order,) = orders
    tied = Dependency(left=order.groups | {order.earlier}, right=later)
    if any(d != tied for d in dependencies):
        return None
    return replace(order, ties_equal=order.ties_equal or bool(dependencies))


def split_implied(
    constraints: Iterable[DenialConstraint],
) -> tuple[tuple[DenialConstraint, ...], tuple[DenialConstraint, ...]]:
    """Split hard constraints into those to enforce and those that cannot be violated once these hold.

    A key makes every constraint implied that compares the key's attributes for equality.

    Guarantees:
        A table that satisfies the first part satisfies the second.  [test_implied_constraints_hold]
    """
    kept: list[DenialConstraint] = []
    implied: list[DenialConstraint] = []
    hard = list(constraints)
    keys = [c for c in hard if not c.is_unary and classify(c) is ConstraintClass.KEY]
    for constraint in hard:
        binary = not constraint.is_unary
        never = not can_hold(constraint.predicates) or (binary and conjunction_of(constraint).never)
        repeated = any(same_meaning(constraint, other) for other in kept)
        below = binary and any(
            key is not constraint
            and set(key.attributes) <= equal_attributes(constraint)
            and not same_meaning(key, constraint)
            for key in keys
        )
        (implied if never or repeated or below else kept).append(constraint)
    return tuple(kept), tuple(implied)


def without_made_up_keys(constraint: DenialConstraint, codec: Codec) -> DenialConstraint | None:
    """Return the constraint without the attributes whose values are made up, all different; None if always met.

    Raises:
        SamplingError: the constraint compares such an attribute in another way than with itself for equality.
    """
    predicates: list[Predicate] = []
    for predicate in constraint.predicates:
        if all(column.name in codec.attributes or column.name in codec.groups for column in predicate.columns):
            predicates.append(predicate)
            continue
        match predicate:
            case NullTest(negated=negated):
                if not negated:
                    return None
            case Comparison(left=left, op=Operator.EQ, right=Column() as right) if left.name == right.name:
                if is_cross(predicate):
                    return None
            case Comparison(left=left, op=Operator.NE, right=Column() as right) if left.name == right.name:
                if not is_cross(predicate):
                    return None
            case _:
                raise SamplingError(
                    f"{print_constraint(constraint)}: compares a key, whose values are made up in the output; "
                    "expected keys in key (...) or on the left of -> only. Declare the attribute with a domain instead."
                )
    if not predicates:
        raise SamplingError(
            f"{print_constraint(constraint)}: every table violates it, since keys are all different; remove it."
        )
    if all(column.tuple == 2 for predicate in predicates for column in predicate.columns):
        raise SamplingError(
            f"{print_constraint(constraint)}: speaks of t2 only once keys are left out; write it on t1."
        )
    return constraint.with_predicates(tuple(predicates))
