"""What a table will be that its reader may not expect, said in lines: from schema, constraints and released numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from kamino.advice import drafting, setting
from kamino.constraints import ConstraintClass, Constraints, DenialConstraint, classify, print_constraint
from kamino.constraints.language.printer import print_name
from kamino.pipeline.plan.whose_privacy import written_ids
from kamino.pipeline.plan.written_values import nearly_all_different
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.drawn_groups import GroupSizes
from kamino.schema import Categorical, Codec, Date, Datetime, Schema, Source
from kamino.schema.times import SHORT_YEARS

# Checks on an attribute with more values than this are not tried on each.
_MOST_TRIED = 1 << 22


def found_notes(schema: Schema) -> tuple[str, ...]:
    """A line for the attributes of which finding domains found no value.

    Guarantees:
        It names an attribute whose found domain is only `other`, and no declared one.  [test_notes_name_empty_domains]
    """
    names = [name for name, source in schema.sources.items() if source is Source.PRIVATE and _is_empty(schema, name)]
    if not names:
        return ()
    whose = "its domain" if len(names) == 1 else "their domains"
    return (
        f"{_listed(names)}: no value was frequent enough to be found; rows say other or nothing. {drafting()} drafts a "
        "schema, and knows dates as people write them. "
        f"Declare {whose} in a schema",
    )


def short_year_notes(schema: Schema) -> tuple[str, ...]:
    """A line for the dates whose years have two digits, where nobody declared which century they are of.

    Guarantees:
        It names no date whose range was declared.  [test_years_of_two_digits_are_told]
    """
    names = [
        name
        for name, attribute in schema.attributes.items()
        if isinstance(attribute, Date | Datetime)
        and attribute.short_years
        and not (attribute.has_domain and attribute.source is Source.DECLARED)
    ]
    if not names:
        return ()
    first, last = SHORT_YEARS
    return (
        f"{_listed(names)}: years have two digits, and are read as {first} to {last}, since nobody declared a last "
        "day. Declare min and max in a schema: no date lies after max, so with max: 2025-12-31 the year 30 is 1930",
    )


def distance_notes(codec: Codec) -> tuple[str, ...]:
    """A line for the dates that are modelled by their distance from another.

    Guarantees:
        It names them with their bases.  [test_stays_keep_their_length]
    """
    found = [f"{print_name(name)} by that from {print_name(each.base)}" for name, each in codec.differences.items()]
    return (f"dates modelled by a distance: {', '.join(found)}",) if found else ()


def group_notes(groups: Mapping[str, GroupSizes]) -> tuple[str, ...]:
    """A line for each id that repeats: what was drawn of it, and what was not.

    Guarantees:
        It tells the mean number of rows.  [test_ids_that_repeat_keep_repeating]
    """
    return tuple(
        f"{print_name(name)}: ids are made up; rows have the same one in groups of {each.mean:.3g} on average. Beside "
        "hard dependencies on it, rows of a group have no more in common than others"
        for name, each in groups.items()
    )


def trusted_notes(schema: Schema, about_rows: int) -> tuple[str, ...]:
    """A line for each text whose trusted values are nearly as many as the noisy number of rows, or ids of persons.

    Guarantees:
        It names identifiers that were called public.  [test_notes_name_identifiers_that_were_called_public]
        It names ids of persons that were.  [test_ids_of_persons_that_are_written_are_named]
    """
    ids = written_ids(schema)
    notes = [
        f"{print_name(name)}: by its name the id of a person, and real ones are written, because you said "
        f"{setting('trust_domain')}. Declare it as {{type: key, repeats: true}} to have ids made up"
        for name in ids
    ]
    for name in nearly_all_different(schema, about_rows):
        attribute = schema[name]
        assert isinstance(attribute, Categorical), "only listed values can be nearly all different"
        kind = "numbers" if attribute.holds_integers else "texts"
        notes.append(
            f"{print_name(name)}: {len(attribute.categories):,} different {kind} for about {about_rows:,} rows; real "
            "ones are written. Leave the column out, or declare it as `type: key`"
        )
    return tuple(notes)


def promise_notes(codec: Codec, constraints: Constraints, num_rows: int | None) -> tuple[str, ...]:
    """A line for each hard constraint that is kept by leaving cells empty; `num_rows` is what was asked for, if known.

    Guarantees:
        It names keys with too few values, and checks that only null satisfies.  [test_notes_name_what_null_satisfies]
    """
    keys = _key_notes(codec, constraints, num_rows) if num_rows is not None else []
    return (*_null_notes(codec, constraints), *keys)


def _key_notes(codec: Codec, constraints: Constraints, num_rows: int) -> list[str]:
    notes = []
    for key in constraints:
        names = key.attributes
        if not key.is_hard or classify(key) is not ConstraintClass.KEY or any(n not in codec.attributes for n in names):
            continue
        count = math.prod(codec[name].num_values for name in names)
        if count >= num_rows or all(codec[name].null_code is None for name in names):
            continue
        one = len(names) == 1
        values, there = ("value", "there") if one else ("combination", "in one of them")
        notes.append(
            f"{print_constraint(key)}: {count:,} {values}{'' if count == 1 else 's'} for {num_rows:,} rows; "
            f"all other rows are null {there}. Declare {'it' if one else 'one'} as `type: key` in a schema to have ids "
            "made up"
        )
    return notes


def fewer_notes(num_rows: int, most: int | None, noisy_rows: float) -> tuple[str, ...]:
    """A line where hard keys allow fewer rows than the private table has, about, and no number was asked for."""
    if most is None or num_rows != most or noisy_rows <= most:
        return ()
    return (f"hard keys allow {most:,} rows over these domains; the private table has about {round(noisy_rows):,}",)


def _null_notes(codec: Codec, constraints: Constraints) -> list[str]:
    judge = Judge(codec)
    return [
        f"{print_name(name)}: only null satisfies the checks on it"
        for name, each in codec.attributes.items()
        if each.null_code is not None and excludes_all(judge, constraints, name)
    ]


def excludes_all(judge: Judge, constraints: Iterable[DenialConstraint], name: str) -> bool:
    """Whether the hard checks on one attribute alone leave no value of its domain; a vast domain is not tried out."""
    if not 0 < judge.codec[name].num_values <= _MOST_TRIED:
        return False
    checks = [c for c in constraints if c.is_hard and c.is_unary and c.attributes == (name,)]
    if not checks:
        return False
    columns = {name: np.arange(judge.codec[name].num_values, dtype=np.int64)}
    excluded = np.zeros(judge.codec[name].num_values, dtype=np.bool_)
    for check in checks:
        excluded |= judge.violates(check, columns, columns)
    return bool(excluded.all())


def _is_empty(schema: Schema, name: str) -> bool:
    attribute = schema[name]
    return isinstance(attribute, Categorical) and all(value == attribute.other for value in attribute.categories)


def _listed(names: list[str]) -> str:
    return ", ".join(print_name(name) for name in names)
