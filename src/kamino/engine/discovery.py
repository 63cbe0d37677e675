"""Domains that nobody declared, found within the budget: all attributes in a few joint releases.

Ranges of numbers, dates and times are one release (a second one where there are rows enough), sets of categories
another. Decimals that nobody declared are counted before, and what the domains lose after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from kamino.engine.finding_policy import FINDING
from kamino.engine.lost_cells import Lost, release_lost
from kamino.engine.ticks import cells_of, read_numbers, values_at
from kamino.engine.typing import release_ways
from kamino.privacy import Gate, multiplier_for
from kamino.privacy.mechanisms.bounds import NoisyBounds, Values
from kamino.privacy.mechanisms.categories import Category, NoisyCategories, count_categories
from kamino.privacy.private import PrivateTable, open_parts
from kamino.schema import Boolean, Categorical, Datetime, Real, Schema
from kamino.schema.files.names import usual_range

OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class DiscoveryShare:
    """What finding domains may spend: a part of mu² and a part of delta.

    With `set_aside`, the delta was paid for before: types that were found decide who takes from it, not what is spent.
    `about_rows` is a noisy number of rows. With `types_found`, the table is text whose types were found, and decimals
    with them.
    """

    mu_squared: float
    delta: float
    set_aside: bool = False
    about_rows: float | None = None
    types_found: bool = False


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The releases that find the domains of a schema: which attributes each is about, and what it spends of mu²."""

    decimals: tuple[str, ...]
    ranges: tuple[str, ...]
    categories: tuple[str, ...]
    lost: tuple[str, ...]
    mu_squared: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class FoundDomains:
    """A schema with all its domains, and what is known of those that were found. Every field may be published.

    types_found: whether the types were found as well. by_default: attributes of which no range stood out of the noise,
    so that the usual one of their name or type was taken. lost: the noisy shares of cells that the domains do not hold.
    """

    schema: Schema
    types_found: bool = False
    by_default: tuple[str, ...] = ()
    lost: Mapping[str, Lost] = field(default_factory=dict)


SETTING_ASIDE = "delta of the categories to be found"


def set_delta_aside(gate: Gate, share: DiscoveryShare) -> DiscoveryShare:
    """Pay for all the delta of a share before anything is drawn, whatever types the columns turn out to have.

    Guarantees:
        The delta spent is the same for all types.  [test_delta_of_discovery_does_not_follow_the_types]
    """
    gate.ledger.set_aside(share.delta, what=SETTING_ASIDE)
    return replace(share, set_aside=True)


def release_about_rows(private: PrivateTable, gate: Gate, *, mu_squared: float) -> int:
    """Release how many rows there are, about: what finding domains may spend follows from it."""
    num_rows = sum(part.num_rows for part in open_parts(private, private.names[:1]))
    return gate.release_row_count(num_rows, noise_multiplier=multiplier_for(mu_squared))


def plan_releases(schema: Schema, share: DiscoveryShare) -> Releases:
    """Divide what finding domains may spend: depends on the schema and on what was released before."""
    missing = schema.missing_domains
    ranges = tuple(name for name in missing if not isinstance(schema[name], Categorical))
    categories = tuple(name for name in missing if isinstance(schema[name], Categorical))
    decimals = () if share.types_found else tuple(name for name in ranges if _is_open(schema, name))
    booleans = tuple(name for name in schema if isinstance(schema[name], Boolean)) if share.types_found else ()
    fixed = {"decimals": FINDING.decimals if decimals else 0.0, "lost": FINDING.lost}
    needs = {"ranges": float(len(ranges)), "categories": FINDING.categories_weight * len(categories)}
    rest = (1 - sum(fixed.values())) / sum(needs.values())
    weights = fixed | {part: rest * need for part, need in needs.items()}
    return Releases(
        decimals=decimals,
        ranges=ranges,
        categories=categories,
        lost=(*missing, *booleans),
        mu_squared={part: share.mu_squared * weight for part, weight in weights.items() if weight},
    )


def _is_open(schema: Schema, name: str) -> bool:
    """Whether nobody said how fine an attribute's numbers or times are."""
    match schema[name]:
        case Real() as attribute:
            return "decimals" not in attribute.fields() and not pa.types.is_decimal(attribute.arrow_type)
        case Datetime() as attribute:
            return "resolution" not in attribute.fields()
        case _:
            return False


def discover_domains(private: PrivateTable, schema: Schema, gate: Gate, share: DiscoveryShare) -> FoundDomains:
    """Return the schema with a domain for every attribute that lacked one, and what is known of it.

    Categories that few rows have are not found: their rows count as "other". A range covers nearly all rows; what is
    outside is clamped to it. Where no range stands out of the noise, the usual one of the name or the type is taken.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_discovery]
        What is released is what `plan_releases` says.  [test_the_ledger_is_what_was_planned]
        A range holds 99% of the rows at 500 rows and epsilon 1.  [test_ranges_hold_the_rows_of_small_tables]
    """
    about_rows = float(share.about_rows or 0)
    planned = plan_releases(schema, share)
    spend = planned.mu_squared
    if planned.decimals:
        schema = _find_decimals(private, schema, planned.decimals, gate, mu_squared=spend["decimals"])
    by_default: tuple[str, ...] = ()
    if planned.ranges:
        bounds = gate.release_bounds(
            _numbers(private, schema, planned.ranges),
            {name: cells_of(schema[name]) for name in planned.ranges},
            noise_multiplier=multiplier_for(spend["ranges"]),
            about_rows=about_rows,
        )
        schema, by_default = _with_ranges(schema, bounds)
    if planned.categories:
        sets = gate.release_categories(
            _count_texts(private, planned.categories),
            noise_multiplier=multiplier_for(spend["categories"]),
            delta=share.delta,
            set_aside=share.set_aside,
        )
        schema = _with_categories(schema, sets)
    lost = release_lost(private, schema, planned.lost, gate, noise_multiplier=multiplier_for(spend["lost"]))
    shares = lost.shares(about_rows)
    return FoundDomains(schema=schema, types_found=share.types_found, by_default=by_default, lost=shares)


def _find_decimals(
    private: PrivateTable, schema: Schema, names: tuple[str, ...], gate: Gate, *, mu_squared: float
) -> Schema:
    """The schema with the decimals of numbers and the resolution of times that stand out of the noise."""
    for name, ways in release_ways(private, names, gate, mu_squared=mu_squared, typed=True).items():
        attribute = schema[name]
        finer = {"decimals": ways.decimals} if isinstance(attribute, Real) else {"resolution": ways.resolution}
        schema = schema.with_attribute(name, type(attribute)(**{**attribute.fields(), **finer}))
    return schema


def _with_ranges(schema: Schema, bounds: Mapping[str, NoisyBounds]) -> tuple[Schema, tuple[str, ...]]:
    by_default = []
    for name, found in bounds.items():
        if found.found:
            low, high = values_at(name, schema[name], found.lower, found.upper)
        else:
            low, high = usual_range(name, schema[name])
            by_default.append(name)
        schema = schema.with_domain(name, min=low, max=high)
    return schema, tuple(by_default)


def _with_categories(schema: Schema, sets: Mapping[str, NoisyCategories]) -> Schema:
    """Put found categories into a schema.

    Categories that are text have an "other" beside them, which no integer type holds: such a column becomes text.

    Guarantees:
        Whatever type was declared, what was found fits it.  [test_codes_declared_as_integers_are_found_as_text]
    """
    for name, found in sets.items():
        if found.values and all(isinstance(value, int) for value in found.values):
            schema = schema.with_domain(name, values=list(found.values))
            continue
        values = [str(value) for value in found.values]
        other = next(text for text in _other_names() if text not in values)
        kind: dict[str, Any] = {"dtype": "string"} if pa.types.is_integer(schema[name].arrow_type) else {}
        schema = schema.with_domain(name, values=[*values, other], other=other, **kind)
    return schema


def _other_names() -> Iterable[str]:
    """Names for "anything else", the first of which that is no category is taken."""
    number = 1
    yield OTHER
    while True:
        number += 1
        yield f"{OTHER}{number}"


def _numbers(private: PrivateTable, schema: Schema, names: tuple[str, ...]) -> Values:
    """The numbers of some columns; those of a table in parts are read anew each time."""

    def read() -> Iterator[dict[str, NDArray[Any]]]:
        for part in open_parts(private, names):
            yield {name: read_numbers(part.column(name), name, schema[name]).values for name in names}

    if private.is_streamed:
        return read
    (only,) = read()
    return only


def _count_texts(private: PrivateTable, names: tuple[str, ...]) -> dict[str, Counter[Category]]:
    """How often each category occurs; as many numbers are held as there are different values."""
    counts: dict[str, Counter[Category]] = {name: Counter() for name in names}
    for part in open_parts(private, names):
        for name in names:
            counts[name].update(count_categories(_texts(part.column(name))))
    return counts


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as categories are counted: text, or whole numbers of a dictionary column."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    return column
