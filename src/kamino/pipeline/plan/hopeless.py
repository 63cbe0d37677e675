"""Runs that cannot end well, refused before their first release.

What is refused here follows from public facts alone: the schema, the constraints and the number of rows asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from kamino.advice import Advice, words
from kamino.constraints import ConstraintClass, Constraints, DenialConstraint, classify, print_constraint
from kamino.constraints.language.printer import print_name
from kamino.errors import InputError, SamplingError
from kamino.pipeline.output.notes import excludes_all
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.feasible.refusal import refuse_unsatisfiable
from kamino.sampling.plan.shapes import without_made_up_keys
from kamino.schema import Codec, Key, Schema, Source

# A drawn row takes a code of eight bytes for each column, and as much again to be decoded, written and read back.
_BYTES_PER_CELL = 32
#: A day has about so many microseconds, and a row takes no less.
MOST_ROWS_IN_BLOCKS = 10**11
_GIB = 2**30


def refuse_hopeless(schema: Schema, constraints: Constraints, num_rows: int | None, *, keeps: bool) -> None:
    """Refuse what no table can be, as far as domains are known; those that are still missing may be anything.

    `keeps` says whether hard constraints are to be kept at all.

    Raises:
        SamplingError: hard constraints leave no table of so many rows, or nothing but null in a column.
        InputError: a made-up key has fewer values than rows are asked for.

    Guarantees:
        Nothing is spent on what is refused.  [test_bad_inputs_cost_nothing]
    """
    known = {name: schema[name] for name in schema if schema[name].has_domain}
    if num_rows is not None:
        for name, attribute in known.items():
            limit = attribute.capacity if isinstance(attribute, Key) and not attribute.repeats else None
            if isinstance(attribute, Key) and limit is not None and limit < num_rows:
                raise InputError(
                    f"found the key {print_name(name)} with {limit:,} different values for {num_rows:,} "
                    "rows; give its pattern more digits, or ask for fewer rows"
                )
    if not keeps or not known:
        return
    codec = Codec(Schema(attributes=known))
    hard = [c for c in constraints if c.is_hard and set(c.attributes) <= set(known)]
    plain = [each for c in hard if (each := without_made_up_keys(c, codec)) is not None]
    judge = Judge(codec)
    if plain:
        refuse_unsatisfiable(judge, plain, 2 if num_rows is None else num_rows)
    _refuse_only_null(judge, plain, schema)


def _refuse_only_null(judge: Judge, hard: Sequence[DenialConstraint], schema: Schema) -> None:
    """Refuse checks that leave no value of a domain but null. A domain that was found is too narrow, not wrong."""
    for name, each in judge.codec.attributes.items():
        if each.null_code is None or schema[name].source is Source.PRIVATE or not excludes_all(judge, hard, name):
            continue
        checks = "; ".join(print_constraint(c) for c in hard if c.is_unary and c.attributes == (name,))
        raise SamplingError(
            f"found no value of {print_name(name)} that satisfies {checks}: every row would be null there; widen the "
            "domain in the schema, or drop or soften the check"
        )


def refuse_beyond_memory(num_rows: int | None, num_columns: int) -> None:
    """Refuse a table that this machine cannot hold while it is drawn; nothing of the private table decides it.

    Raises:
        InputError: so many rows need more memory than there is.
    """
    needed, there = memory_of(num_rows or 0, num_columns), _memory()
    if there is not None and is_beyond_memory(num_rows, num_columns):
        raise Advice.of(
            "more-than-memory",
            f"found {num_rows:,} rows asked for, which take about {needed / _GIB:,.0f} GiB to draw, on a machine with "
            f"{there / _GIB:,.1f}; ask for fewer rows, or draw several tables with ",
            words("kamino sample", "Synthesizer.sample"),
        ).error(InputError)


def is_beyond_memory(num_rows: int | None, num_columns: int) -> bool:
    """Whether this machine cannot hold a table while it is drawn."""
    there = _memory()
    return there is not None and memory_of(num_rows or 0, num_columns) > there


def refuse_beyond_a_day(num_rows: int | None, num_columns: int) -> None:
    """Refuse a table that would be drawn block by block for days, whatever the machine.

    Raises:
        InputError: there are more rows than a day has time for, at a million rows a second.
    """
    if num_rows is not None and num_rows > MOST_ROWS_IN_BLOCKS:
        raise InputError(
            f"found {num_rows:,} rows asked for, at least {num_rows * max(1, num_columns) / _GIB:,.0f} GiB of "
            f"disk and days to draw; expected at most {MOST_ROWS_IN_BLOCKS:,}"
        )


def memory_of(num_rows: int, num_columns: int) -> int:
    """About how many bytes it takes to draw a table and to write it."""
    return _BYTES_PER_CELL * num_rows * max(1, num_columns)


def _memory() -> int | None:
    """The memory of the machine; None where it cannot be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def most_rows(codec: Codec, constraints: Iterable[DenialConstraint]) -> int | None:
    """The most rows that hard keys allow, from the sizes of their domains; None where there is no such limit.

    A key of which an attribute may be null has no limit: nulls are never equal.
    """
    limits = [key.capacity for key in codec.schema.attributes.values() if isinstance(key, Key) and not key.repeats]
    found = [limit for limit in limits if limit is not None]
    for constraint in constraints:
        if not constraint.is_hard or classify(constraint) is not ConstraintClass.KEY:
            continue
        parts = [codec.groups.get(name, codec.attributes.get(name)) for name in constraint.attributes]
        if all(part is not None and part.null_code is None for part in parts):
            product = 1
            for part in parts:
                product *= part.num_values if part is not None else 1
            found.append(product)
    return min(found, default=None)
