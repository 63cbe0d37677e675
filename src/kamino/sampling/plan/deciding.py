"""Which step an attribute needs once certain others are there, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from kamino.constraints import ConstraintClass, DenialConstraint
from kamino.constraints.analysis.classify import Dependency
from kamino.constraints.language.printer import print_name
from kamino.sampling.plan.sampling_plan import Step, StepKind
from kamino.sampling.plan.shapes import joint_order, shape_of

# A left side with more values than this is wide: better to let each of its values belong to one value of the right side
# than to give each a value, since counts by its values are noisy. Pairs of attributes may have more combinations.
_WIDE = 100
_WIDE_TOGETHER = 2000

# A model holds so many combinations of a left side and its right sides, about, and so many of right sides alone. Where
# it does not hold all together, the left side had better go first: each right side is then known with it alone.
_MOST_TOGETHER, _MOST_OWNERS = 400_000, 5_000
_APART_COST = 3.5

# A public map is turned round if its right sides have at most so many combinations for each value of its left side.
_MOST_COMBINATIONS = 2
_TURNED_COST = 3.0

_INDEXED_COST = 50.0
_UNTREATED_COST = 4.0
_ABUNDANT = 10


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The constraints to enforce and the sizes of the domains; `fixed` are dependencies with a public map.

    `soft` are those that may be violated, with a weight or without one yet. `ids` are those of groups of rows, which
    are there before any attribute.
    """

    pairs: tuple[DenialConstraint, ...]
    checks: tuple[DenialConstraint, ...]
    sizes: Mapping[str, int]
    fixed: frozenset[tuple[frozenset[str], str]] = frozenset()
    soft: tuple[DenialConstraint, ...] = ()
    ids: frozenset[str] = frozenset()

    def ending(
        self, attribute: str, earlier: frozenset[str]
    ) -> tuple[tuple[DenialConstraint, ...], tuple[DenialConstraint, ...], tuple[DenialConstraint, ...]]:
        """The pairs, checks and soft constraints on `attribute` whose other attributes are all in `earlier`."""
        pairs, checks, soft = (
            tuple(c for c, others in spoken.get(attribute, ()) if others <= earlier) for spoken in self._spoken
        )
        return pairs, checks, soft

    @cached_property
    def dependencies(self) -> tuple[Dependency, ...]:
        """The dependencies among the constraints on pairs."""
        return tuple(d for c in self.pairs if (d := shape_of(c)[1]) is not None)

    @cached_property
    def _spoken(self) -> tuple[Mapping[str, list[tuple[DenialConstraint, frozenset[str]]]], ...]:
        """By attribute, the constraints on it with their other attributes: planning asks often."""
        found = []
        for constraints in (self.pairs, self.checks, self.soft):
            spoken: dict[str, list[tuple[DenialConstraint, frozenset[str]]]] = {}
            for constraint in constraints:
                names = frozenset(constraint.attributes) - self.ids
                for name in names:
                    spoken.setdefault(name, []).append((constraint, names - {name}))
            found.append(spoken)
        return tuple(found)


def decide_step(attribute: str, earlier: frozenset[str], rules: Rules) -> tuple[Step, float]:
    """Return the step that draws `attribute` after the attributes `earlier`, and its cost.

    Costs are a rough order: exact steps with small groups are cheap, the row-by-row step is dear.
    """
    pairs, checks, soft = rules.ending(attribute, earlier)
    if pairs:
        # A joint draw for hard constraints takes no prices; the row-by-row step does, where they are given.
        pairs = (*pairs, *(c for c in soft if c.strength.weight is not None and not c.is_unary))
        unweighed, soft = tuple(c for c in soft if c not in pairs), ()
    else:
        unweighed = ()
    kind, cost, reason = _kind_of(attribute, pairs, rules)
    if soft:
        kind, reason = StepKind.INDEXED, f"{_count(len(soft), 'soft constraint')} weighed here: rows drawn in blocks"
    elif kind is StepKind.FREE and checks:
        kind, reason = StepKind.MASK, f"values restricted by {_count(len(checks), 'check')} on single rows"
    step = Step(
        attribute=attribute,
        kind=kind,
        constraints=pairs,
        checks=checks,
        soft=soft,
        unweighed=unweighed,
        reason=reason,
    )
    return step, cost + _UNTREATED_COST * len(unweighed)


def _kind_of(attribute: str, pairs: Sequence[DenialConstraint], rules: Rules) -> tuple[StepKind, float, str]:
    if not pairs:
        return StepKind.FREE, 0.0, "no constraint on pairs of rows ends here"
    if not all(c.is_hard for c in pairs):
        return StepKind.INDEXED, _INDEXED_COST, "a weighted constraint ends here: rows are drawn one by one"
    dependencies = [d for c in pairs if (d := shape_of(c)[1]) is not None]
    into = [d for d in dependencies if d.right == attribute]
    out_of = [d for d in dependencies if d.right != attribute]
    if len(into) == len(pairs):
        return _lookup(attribute, into, rules)
    if len(out_of) == len(pairs):
        return _ownership(attribute, out_of, rules)
    if len(into) == len(out_of) == 1 and len(pairs) == 2 and _is_cycle(attribute, into[0], out_of[0]):
        text = f"one value for each {_names(into[0].left)}, none for two of them: drawn without replacement by group"
        return StepKind.UNIQUE, 5.0, text
    if len(pairs) == 1 and shape_of(pairs[0])[0] is ConstraintClass.KEY:
        return _unique(attribute, pairs[0], rules)
    if (order := joint_order(pairs, attribute)) is not None and not _is_mapped(into, rules):
        way = "falls" if order.falling else "rises"
        within = f" within equal {_names(order.groups)}" if order.groups else ""
        once = ", one value for each" if into else ""
        text = f"never {_opposite(way)} with {print_name(order.earlier)}{once}{within}: drawn jointly"
        return StepKind.CHAIN, 1.0, text
    return StepKind.INDEXED, _INDEXED_COST, "no joint draw fits the constraints that end here: rows one by one"


def _lookup(attribute: str, into: Sequence[Dependency], rules: Rules) -> tuple[StepKind, float, str]:
    lefts = sorted({d.left for d in into}, key=sorted)
    text = "one value for each " + " and each ".join(_names(left) for left in lefts)
    if any((left, attribute) in rules.fixed for left in lefts):
        text = f"{text}, from a public map"
        if len(lefts) == 1 and _is_better_turned(lefts[0], rules):
            return StepKind.LOOKUP, _TURNED_COST, text
        return StepKind.LOOKUP, 0.5 * len(lefts), text
    if len(lefts) > 1:
        return StepKind.LOOKUP, 30.0, f"{text}: groups joined"
    combinations = prod(rules.sizes[name] for name in lefts[0])
    wide = combinations > (_WIDE if len(lefts[0]) == 1 else _WIDE_TOGETHER)
    return StepKind.LOOKUP, 3.0 if wide else 1.0, text


def _is_better_turned(left: frozenset[str], rules: Rules) -> bool:
    """Whether a wide left side with a public map is better drawn among the values that have its right sides.

    The counts of its values are noisy, those of its right sides are not; and most of their combinations have a value.
    """
    rights = {right for one, right in rules.fixed if one == left}
    if len(left) > 1 or not all(d.right in rights for d in rules.dependencies if d.left == left):
        return False
    size = prod(rules.sizes[name] for name in left)
    return size > _WIDE and prod(rules.sizes[right] for right in rights) <= _MOST_COMBINATIONS * size


def _ownership(attribute: str, out_of: Sequence[Dependency], rules: Rules) -> tuple[StepKind, float, str]:
    if len({d.left for d in out_of}) > 1:
        return StepKind.INDEXED, _INDEXED_COST, "several different left sides meet here: rows one by one"
    rights = sorted({d.right for d in out_of})
    rest = out_of[0].left - {attribute}
    sizes = [rules.sizes[name] for name in rights]
    cost = 2.0 + len(rest)
    if rules.sizes[attribute] < max(sizes):
        cost += 40.0
    elif rules.sizes[attribute] < prod(sizes):
        # There may be more combinations than values; where values abound, few of these will occur together.
        cost += 0.5 if rules.sizes[attribute] >= _ABUNDANT * max(sizes) else 4.0
    if prod(sizes) > _MOST_OWNERS and rules.sizes[attribute] * prod(sizes) > _MOST_TOGETHER:
        cost += _APART_COST * (len(sizes) - 1)
    within = f" within equal {_names(rest)}" if rest else ""
    owner = _names(rights)
    return StepKind.OWNERSHIP, cost, f"each value belongs to one {owner}{within}: owners first, then draws among theirs"


def _unique(attribute: str, key: DenialConstraint, rules: Rules) -> tuple[StepKind, float, str]:
    rest = [name for name in key.attributes if name != attribute]
    widest = max(rules.sizes[name] for name in key.attributes) == rules.sizes[attribute]
    within = f" within equal {_names(rest)}" if rest else ""
    return StepKind.UNIQUE, 2.0 if widest else 12.0, f"no value twice{within}: drawn without replacement"


def _is_cycle(attribute: str, into: Dependency, out_of: Dependency) -> bool:
    return into.left == {out_of.right} and out_of.left == {attribute}


def _is_mapped(dependencies: Sequence[Dependency], rules: Rules) -> bool:
    """Whether a public map says which value goes with which."""
    return any((each.left, each.right) in rules.fixed for each in dependencies)


def _opposite(way: str) -> str:
    return "rises" if way == "falls" else "falls"


def _names(names: frozenset[str] | Sequence[str]) -> str:
    return ", ".join(print_name(name) for name in sorted(names))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
