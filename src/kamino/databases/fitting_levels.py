"""From private tables to a model of each level, through the gate, with one budget for all.

The levels share the budget; each is one marginal fit of its own columns given its context, and where a family may have
several rows, one of a row given another of the same owner. A family is so many rows of each sample, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kamino.constraints import Constraints, DenialConstraint
from kamino.databases.family_layout import Layout, Level, nullable, numbered, other_name
from kamino.databases.level_model import Tilt
from kamino.databases.siblings import fit_siblings
from kamino.engine import DiscoveryShare, MemoryMeasurer, discover_domains, encode, release_about_rows, share_close
from kamino.engine.families import Families, OwnedTable
from kamino.engine.finding_policy import FINDING
from kamino.errors import SchemaError
from kamino.model import order_attributes, plan_marginal
from kamino.model.marginal.fit_marginal import fit_planned
from kamino.model.marginal.network import MarginalModel
from kamino.pipeline.plan.bound_schema import schema_types
from kamino.pipeline.plan.close_dates import SHARE, choose_bases, kept_by, open_pairs, ordered_dates
from kamino.pipeline.plan.hints import hints_of, model_attributes
from kamino.pipeline.plan.planned_discovery import Discovery
from kamino.pipeline.settings import Settings
from kamino.privacy import Gate, Neighbours, multiplier_for
from kamino.privacy.private import PrivateTable
from kamino.privacy.sensitivity import Sensitivity
from kamino.sampling import require
from kamino.schema import Attribute, Codec, Schema, check_columns
from kamino.schema.coding.differences import Difference


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLevel:
    """The model of one level: its own columns given its context. Every field may be published.

    `sequence` are the columns in the order in which they are drawn, those of the context first.
    """

    level: Level
    schema: Schema
    differences: Mapping[str, Difference]
    rules: tuple[DenialConstraint, ...]
    held: tuple[DenialConstraint, ...]
    redrawn: tuple[DenialConstraint, ...]
    model: MarginalModel
    context: tuple[str, ...]
    own: tuple[str, ...]
    tilts: Mapping[str, tuple[Tilt, ...]] = field(default_factory=dict)
    """How columns of a row are tilted by those of another row of the same owner."""

    @cached_property
    def codec(self) -> Codec:
        """Codes to values and back."""
        return Codec(self.schema, self.differences)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedDatabase:
    """The models of all levels, and the ledger of what they cost. Every field may be published."""

    layout: Layout
    attributes: Mapping[str, Attribute]
    first: Mapping[str, FittedLevel]
    num_families: float
    ledger: dict[str, Any]
    settings: Any = None
    notes: tuple[str, ...] = field(default=())


def check_private(name: str, schema: Schema, table: PrivateTable) -> None:
    """Refuse a private table whose columns are not those of the schema, or of types that do not fit; never for rows.

    Raises:
        SchemaError: what does not fit.
    """
    try:
        check_columns(schema, table.without_rows())
    except SchemaError as error:
        raise SchemaError("\n".join(f"{name}: {line}" for line in str(error).splitlines())) from None


def owned_tables(layout: Layout) -> dict[str, OwnedTable]:
    """How each table below the root hangs on its owner."""
    found = {}
    for name in layout.database.private:
        key = layout.database[name].owner
        if key is not None:
            found[name] = OwnedTable(owner=key.references, by=key.columns, to=key.to)
    return found


def shares_of(layout: Layout) -> dict[tuple[str, bool], float]:
    """The part of the budget of each fit, by its table and whether it is that of pairs.

    The errors of a fit add up over what it measures, and fall with the root of its share; of parts that measure m each,
    the sum is least where shares go with m to the power of two thirds. A fit measures its own columns by themselves,
    with each other and with its context.
    """
    sizes = {}
    for level in layout.levels:
        own, above = len(level.drawn), len(level.context) + len(level.numbers)
        sizes[level.table, False] = own * (1 + (own - 1) / 2 + above)
        if level.siblings:
            sizes[level.table, True] = own * (own + 1) / 2
    weights = {key: max(size, 1.0) ** (2 / 3) for key, size in sizes.items()}
    return {key: weight / sum(weights.values()) for key, weight in weights.items()}


def fit_database(
    private: Mapping[str, PrivateTable], layout: Layout, gate: Gate, settings: Any = None
) -> FittedDatabase:
    """Fit a model of each level, spending the gate's budget.

    Guarantees:
        What is returned depends on the tables through the gate only.  [test_replay_passes_for_databases]
        The budget is spent and not overspent.  [test_the_budget_of_a_database_is_spent_once]
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        coins = gate.family_coins()
        attributes = dict(layout.attributes)
        schemas = {
            name: Schema(
                attributes={
                    c: attributes.get(f"{name}.{c}", each) for c, each in layout.database[name].known.attributes.items()
                }
            )
            for name in layout.database.private
        }
        families = Families(private, schemas, owned_tables(layout), coins)
        attributes = _found(families, layout, gate, attributes, settings or Settings())
        whole, shares = gate.gaussian_left(), shares_of(layout)
        fit = FittedDatabase(layout=layout, attributes=attributes, first={}, num_families=0.0, ledger={})
        for level in layout.levels:
            spend = whole * shares[level.table, False]
            made = _fit(families, fit, level, gate, spend)
            fit = replace(fit, first={**fit.first, level.table: made})
            if len(level.path) == 1:
                fit = replace(fit, num_families=made.model.num_rows / layout.rows)
            if level.siblings:
                made = _with_tilts(families, fit, level, gate, whole * shares[level.table, True])
                fit = replace(fit, first={**fit.first, level.table: made})
    return replace(fit, ledger=gate.ledger.to_dict(), settings=settings)


def _found(
    families: Families, layout: Layout, gate: Gate, attributes: Mapping[str, Attribute], settings: Settings
) -> dict[str, Attribute]:
    """The attributes with domains for those that had none, found level by level within a part of the budget."""
    missing = {level.table: _missing(level, attributes) for level in layout.levels}
    number = sum(map(len, missing.values()))
    found = dict(attributes)
    if not number:
        return found
    rows, whole = layout.rows, gate.gaussian_left()
    root = layout.levels[0]
    about = release_about_rows(families.sample(root.sample(rows)), gate, mu_squared=FINDING.rows * whole)
    share = Discovery(num_columns=number, untyped=False, about_rows=round(about / rows)).share(settings)
    for level in layout.levels:
        names = missing[level.table]
        if not names:
            continue
        part = len(names) / number
        schema = Schema(attributes={name: found[name] for name in names})
        columns = {name: level.own[name] for name in names}
        sample = families.sample(replace(level.sample(rows), columns=columns))
        spend = DiscoveryShare(
            mu_squared=share * part * whole,
            delta=settings.delta * FINDING.delta * part,
            about_rows=float(about),
        )
        found |= discover_domains(sample, schema, gate, spend).schema.attributes
    for level in layout.levels:
        found |= numbered(level, found, layout.rules)
        for name in level.context:
            base = name.replace("[one].", ".")
            if base != name:
                found[name] = nullable(found[base])
    return found


def _missing(level: Level, attributes: Mapping[str, Attribute]) -> tuple[str, ...]:
    return tuple(name for name in level.drawn if not attributes[name].has_domain)


def _fit(
    families: Families,
    fit: FittedDatabase,
    level: Level,
    gate: Gate,
    mu_squared: float,
) -> FittedLevel:
    """Fit one level."""
    from kamino.databases.public_rows import known_rows

    layout, attributes = fit.layout, dict(fit.attributes)
    context = (*level.context, *level.numbers)
    schema = Schema(attributes={name: attributes[name] for name in (*context, *level.drawn)})
    bound = Constraints(level.rules).bind(schema_types(schema))
    plain = Codec(schema)
    orders = Constraints(tuple(c for c in bound if len(c.predicates) == 1 and len(c.attributes) == 2))
    differences = _allowed(ordered_dates(orders, plain), level)
    private = families.sample(level.sample(layout.rows))
    spent = 0.0
    near: dict[tuple[str, str], float] = {}
    pairs = [pair for pair in open_pairs(bound, plain, differences) if set(pair) & set(level.drawn)]
    if pairs:
        spent = mu_squared * SHARE
        near = share_close(encode(private, plain), plain, pairs, gate, noise_multiplier=multiplier_for(spent))
    named = frozenset(name for constraint in bound for name in constraint.attributes)
    differences |= _allowed(choose_bases(near, named | set(differences)), level)
    codec = Codec(schema, differences)
    held = tuple(c for c in bound if kept_by(differences, c, plain))
    # What asks more of a date that is a distance is kept by drawing such rows anew.
    redrawn = tuple(c for c in bound if c not in held and set(differences) & set(c.attributes))
    rules = tuple(c for c in bound if c not in held and c not in redrawn)
    tied = _of_drawn(level, schema)
    own = (*level.placed, *(n for n in _in_turn(codec, level, (*rules, *tied)) if n not in level.placed))
    codes = encode(private, codec)
    noise = multiplier_for(mu_squared - spent)
    modelled = model_attributes(codec)
    hints = hints_of(Constraints((*rules, *tied)), codec)
    rng = np.random.default_rng(0)  # what is drawn from a public model is public, and told to nobody
    known = known_rows(fit, level, codec, rng) if len(level.path) > 1 else None
    plan = plan_marginal(
        modelled,
        noise_multiplier=noise,
        sequence=(*context, *own),
        hints=replace(hints, together=(*hints.together, *_with_counts(layout, level))),
        distance=gate.sensitivity(Sensitivity.of_histogram()).under(gate.budget.neighbours),
        replaced=gate.budget.neighbours is Neighbours.REPLACE,
        known=known,
    )
    model = fit_planned(MemoryMeasurer(codes, codec.sizes, gate), plan)
    return FittedLevel(
        level=level,
        schema=schema,
        differences=differences,
        rules=rules,
        held=held,
        redrawn=redrawn,
        model=model,
        context=context,
        own=own,
    )


def _with_tilts(families: Families, fit: FittedDatabase, level: Level, gate: Gate, mu_squared: float) -> FittedLevel:
    """Measure how rows of one owner are alike, and add it to what is fitted of their table."""
    from kamino.databases.public_rows import pair_rows

    first, layout = fit.first[level.table], fit.layout
    rng = np.random.default_rng(0)
    rows = pair_rows(fit, level, rng)
    names = tuple(name for name in first.own if name not in level.placed)
    if rows is None or not names:
        return first
    others = {other_name(level.table, name): fit.attributes[name] for name in level.own}
    differences = {
        other_name(level.table, name): replace(each, base=_other_base(level, each.base))
        for name, each in first.differences.items()
    }
    schema = Schema(attributes={**first.schema.attributes, **others})
    codec = Codec(schema, {**first.differences, **differences})
    codes = encode(families.sample(level.pair_sample(layout.rows)), codec)
    tilts = fit_siblings(
        level.table,
        names,
        first.model,
        rows,
        MemoryMeasurer(codes, codec.sizes, gate),
        mu_squared=mu_squared,
        deviation=gate.sensitivity(Sensitivity.of_histogram()).under(gate.budget.neighbours),
        rng=rng,
    )
    return replace(first, tilts=tilts)


def _other_base(level: Level, base: str) -> str:
    """The base of a date of another row: of the same row, where it is own."""
    return other_name(level.table, base) if base in level.own else base


def _allowed(differences: Mapping[str, Difference], level: Level) -> dict[str, Difference]:
    """The differences of own dates: those of the context are there already."""
    return {name: each for name, each in differences.items() if name in level.drawn}


def _of_drawn(level: Level, schema: Schema) -> tuple[DenialConstraint, ...]:
    """The rules on two rows of a level whose columns are all modelled."""
    known = tuple(c for c in level.pairs if set(c.attributes) <= set(level.drawn))
    return tuple(Constraints(known).bind(schema_types(schema)))


def _in_turn(codec: Codec, level: Level, rules: Sequence[DenialConstraint]) -> tuple[str, ...]:
    """The own columns in the order in which they are drawn: a date after its base, small ones first.

    Where rules on two rows make one order cheaper than another, in that.
    """
    named = {each.name: each for each in model_attributes(codec)}
    wanted = require(codec, rules)
    asked = wanted.arrange().sequence if wanted.asks_for_an_order else order_attributes([named[n] for n in level.drawn])
    order = [name for name in asked if name in level.drawn]
    done: list[str] = []
    while len(done) < len(order):
        for name in order:
            base = codec.differences[name].base if name in codec.differences else None
            if name not in done and (base is None or base not in order or base in done):
                done.append(name)
    return tuple(done)


def _with_counts(layout: Layout, level: Level) -> tuple[tuple[str, str], ...]:
    """Each own column with the number of rows of its owner: children are weighed by it."""
    owner = layout.database[level.table].owner
    if owner is None:
        return ()
    count = layout.level(owner.references).counts[level.table]
    return tuple((count, name) for name in level.drawn)
