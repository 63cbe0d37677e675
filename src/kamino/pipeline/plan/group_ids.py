"""Ids of groups of rows, such as the rows of a patient: which columns are such ids, and what is measured of them.

The values of ids say nothing and are made up, but how often they repeat does: it is measured within the budget. Hard
dependencies of other attributes on an id are kept by drawing, with the groups there before any other column.
"""

from __future__ import annotations

from collections.abc import Collection

from kamino.constraints import ConstraintClass, Constraints, classify
from kamino.engine.group_sizes import GROUP_SIZES, sensitivity_of_sizes, size_cells
from kamino.layout.repeating_ids import problem_with_ids
from kamino.pipeline.plan.whose_privacy import person_columns
from kamino.pipeline.settings import Settings
from kamino.privacy.schedule import PlannedRelease, Schedule
from kamino.schema import Attribute, Categorical, Integer, Key, Schema, Source

#: The part of the schedule.
GROUPS = "groups"
#: The part of the budget that the sizes of groups take, for each id and for all together.
SHARE, MOST_SHARE = 0.03, 0.1


def with_group_ids(schema: Schema, constraints: Constraints, settings: Settings) -> Schema:
    """The schema, which nobody declared, with ids of groups: the privacy unit, and what looks like the id of a person.

    A column whose values mean something to a constraint, and one whose domain is declared, stays as it is. With domains
    that are trusted only the privacy unit is taken for an id.

    Guarantees:
        Ids that repeat keep repeating, and keys do not.  [test_ids_that_repeat_keep_repeating]
    """
    unit = settings.privacy_unit
    guessed = () if settings.trust_domain else person_columns(schema.names, constraints, schema.attributes)
    protected = () if unit.column is None or unit.column not in schema else (unit.column,)
    for name in dict.fromkeys([*protected, *guessed]):
        attribute = schema[name]
        listed = attribute.has_domain and attribute.source is Source.DECLARED
        if isinstance(attribute, Categorical | Integer) and not listed and _is_only_an_id(name, constraints):
            alone = (unit.column == name and unit.max_rows == 1) or _is_key(name, constraints)
            schema = schema.with_attribute(name, as_id(attribute, repeats=not alone))
    return schema


def with_person_ids(schema: Schema, *, but: Collection[str] = ()) -> Schema:
    """The draft of a schema with what looks like the id of a person as a key that repeats, `but` for some columns.

    Guarantees:
        No id of a person is listed in a draft.  [test_init_lists_no_ids_of_persons]
    """
    for name in person_columns(schema.names, known=schema.attributes):
        attribute = schema[name]
        if name in but or not isinstance(attribute, Categorical | Integer | Key):
            continue
        pattern = attribute.pattern if isinstance(attribute, Key) else None
        made = Key(**{**as_id(attribute, repeats=True).fields(), "pattern": pattern})
        schema = schema.with_attribute(name, made)
    return schema


def as_id(attribute: Attribute, *, repeats: bool) -> Key:
    """An id in the place of texts or whole numbers."""
    kind = attribute.arrow_type
    dtype = str(kind) if isinstance(attribute, Integer) else attribute.dtype
    return Key(dtype=None if dtype == "dictionary" else dtype, repeats=repeats)


def _is_key(name: str, constraints: Constraints) -> bool:
    return any(c.is_hard and classify(c) is ConstraintClass.KEY and c.attributes == (name,) for c in constraints)


def _is_only_an_id(name: str, constraints: Constraints) -> bool:
    """Whether constraints that name a column ask only for rows with equal values of it."""
    return not any(problem_with_ids(c, (name,)) for c in constraints if name in c.attributes)


def planned_groups(schema: Schema, settings: Settings, noise_multiplier: float) -> Schedule:
    """The releases of how many rows groups have: one for each id."""
    ids, unit = schema.group_names, settings.privacy_unit
    share = min(SHARE, MOST_SHARE / max(1, len(ids)))
    return Schedule(
        releases=tuple(
            PlannedRelease(
                part=GROUPS,
                kind="counts",
                what=GROUP_SIZES,
                says=GROUP_SIZES,
                attributes=(name,),
                noise_multiplier=noise_multiplier / share**0.5,
                most_cells=len(size_cells(name, unit)),
                sensitivity=sensitivity_of_sizes(name, unit),
            )
            for name in ids
        )
    )
