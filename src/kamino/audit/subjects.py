"""What is audited: a run on a table, with the neighbours and strangers that it is tried on.

A subject is made of the user's own table, schema and rules, or is one of the small ones here, which between them use
every mechanism: both backends, declared and found domains, a unit of several rows, both relations, and `suggest`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.audit.near_tables import near_tables, strange_tables
from kamino.constraints import Constraints
from kamino.engine import keep_rows
from kamino.engine.suggesting import suggest_constraints
from kamino.errors import KaminoError
from kamino.pipeline import Backend, Settings
from kamino.pipeline.fitting import fit
from kamino.pipeline.output.certificate import certificate_of, count_promised
from kamino.pipeline.output.drawn_table import draw
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.pipeline.run_source import RunRequest, SourceFacts, open_for_audit, plan_source
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit
from kamino.privacy.private import PrivateTable
from kamino.schema import Categorical, Date, Integer, Key, Schema
from kamino.testing.replay import Run

# Of what was fitted no more rows are drawn: enough to use every step.
_DRAWN = 30
# The run's own randomness must be the same on both tables; that of the gate is not fixed by it.
_SEED = 7


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Subject:
    """A run `run(table, gate)`, a private table, and the tables it is repeated on, by name."""

    name: str
    table: pa.Table
    run: Run
    settings: Settings
    near: Mapping[str, pa.Table]
    strange: Mapping[str, pa.Table]
    plan: RunPlan | None = None
    """What is planned on the table; None where the run is no synthesis."""

    @property
    def budget(self) -> Budget:
        """The budget of the run."""
        return self.settings.budget

    @property
    def unit(self) -> PrivacyUnit:
        """Whose privacy the run promises."""
        return self.settings.privacy_unit

    @property
    def is_slow(self) -> bool:
        """Whether one fit takes many seconds, as those of the neural backend do."""
        return self.settings.backend is Backend.NEURAL


def subject_of(
    name: str, table: pa.Table, schema: Schema | None, rules: Constraints, settings: Settings, *, untyped: bool = False
) -> Subject:
    """Make a subject of a synthesis of a made-up table. With `untyped`, its texts are those of a file."""
    request = RunRequest(settings=replace(settings, seed=_SEED), schema=schema, constraints=rules)
    facts = SourceFacts(columns=table.schema, untyped=untyped and request.guarded)
    return _subject(name, table, facts, request)


def subject_of_run(name: str, source: object, request: RunRequest) -> Subject:
    """Make a subject of the run that a request asks for, on whatever such a run reads: it plans as that run does.

    Guarantees:
        The plan is that of the run, rule for rule and release for release.  [test_an_audit_plans_what_a_run_plans]
    """
    request = replace(request, settings=replace(request.settings, seed=_SEED))
    table, facts = open_for_audit(source, request)
    return _subject(name, table, facts, request)


def _subject(name: str, table: pa.Table, facts: SourceFacts, request: RunRequest) -> Subject:
    """A subject that plans anew on every table, unless values of the audited one are public by the user's word."""
    settings = request.settings
    plan = plan_source(PrivateTable(table), facts, request)

    def run(rows: pa.Table, gate: Gate) -> Any:
        private = PrivateTable(rows)
        return synthesize(private, gate, plan_source(private, facts, request) if request.guarded else plan)

    near = near_tables(table, settings.neighbours, settings.privacy_unit)
    strange = strange_tables(table)
    return Subject(name=name, table=table, run=run, settings=settings, near=near, strange=strange, plan=plan)


def synthesize(private: PrivateTable, gate: Gate, plan: RunPlan) -> Any:
    """Everything a run lets out: how many rows it would draw, some of them, the model file, ledger and certificate."""
    fitted = fit(private, plan, gate)
    rows = fitted.num_rows
    drawn = draw(fitted, min(rows, _DRAWN), np.random.default_rng(_SEED))
    counts = count_promised(fitted, drawn)
    bundle = fitted.to_bundle()
    certificate = certificate_of(fitted, rows=drawn.num_rows, violations=counts)
    return rows, drawn, dict(bundle.texts), dict(bundle.arrays), certificate


def _suggest(table: pa.Table, gate: Gate) -> Any:
    private = keep_rows(PrivateTable(table), gate)
    return [str(each) for each in suggest_constraints(private, gate, ordered=("age", "pay"))]


SCHEMA = Schema(
    attributes={
        "who": Key(pattern="P{:05d}"),
        "city": Categorical(values=["Rome", "Oslo", "Bern"], nullable=True),
        "age": Integer(min=0, max=99, nullable=True),
        "pay": Integer(min=0, max=99, nullable=True),
    }
)
_SOFT = Constraints.parse("soft: not (t1.city = t2.city and t1.age > t2.age and t1.pay < t2.pay)")
_NONE = Constraints()


def made_up(rows: int = 90) -> pa.Table:
    """A small table: three rows of each `who`, some cities, and pay that goes with age."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, rows)
    city = np.array(["Rome", "Oslo", "Bern"])[np.minimum(rng.geometric(0.5, rows) - 1, 2)]
    return pa.table({"who": np.arange(rows) // 3, "city": city, "age": age, "pay": age})


def declared(**settings: Any) -> Subject:
    """Declared domains and a soft constraint, on the default backend."""
    return subject_of("declared domains, a soft constraint", made_up(), SCHEMA, _SOFT, Settings(**settings))


def violating(**settings: Any) -> Subject:
    """The same with pay that does not go with age: the soft constraint is often violated."""
    table = made_up()
    pay = pa.array(np.random.default_rng(9).integers(0, 99, table.num_rows))
    return subject_of("violations", table.set_column(3, "pay", pay), SCHEMA, _SOFT, Settings(**settings))


def found(**settings: Any) -> Subject:
    """Categories and bounds found within the budget."""
    table = made_up(300).drop_columns(["who"])
    return subject_of("found domains", table, None, _NONE, Settings(**{"epsilon": 4.0, **settings}))


def found_texts(**settings: Any) -> Subject:
    """Categories of two attributes found within the budget, with a unit of up to three rows."""
    rng = np.random.default_rng(6)
    words, rows = np.array(["one", "two", "three", "four"]), 900
    table = pa.table(
        {
            "who": np.arange(rows) // 3,
            "first": words[np.minimum(rng.geometric(0.5, rows) - 1, 3)],
            "second": words[np.minimum(rng.geometric(0.6, rows) - 1, 3)],
        }
    )
    schema = Schema(attributes={"who": SCHEMA["who"], "first": Categorical(), "second": Categorical()})
    chosen = Settings(**{"epsilon": 8.0, "unit": "who", "max_rows": 3, **settings})
    return subject_of("found texts, a unit of three rows", table, schema, _NONE, chosen)


def grouped(**settings: Any) -> Subject:
    """An id that repeats, whose groups get sizes that are found."""
    schema = SCHEMA.with_attribute("who", Key(pattern="P{:05d}", repeats=True))
    return subject_of("an id of groups", made_up(), schema, _SOFT, Settings(**settings))


def dated(**settings: Any) -> Subject:
    """Texts that are read as dates, as a declared format says; some cannot be."""
    rng = np.random.default_rng(8)
    days = [f"{day:02d}.{month:02d}.2024" for day, month in rng.integers(1, 13, (120, 2)).tolist()]
    table = pa.table({"day": ["unknown", None, "31.02.2024", *days], "age": rng.integers(0, 99, 123)})
    day = Date(format="%d.%m.%Y", min=dt.date(2024, 1, 1), max=dt.date(2024, 12, 31), nullable=True)
    schema = Schema(attributes={"day": day, "age": SCHEMA["age"]})
    return subject_of("dates as texts", table, schema, _NONE, Settings(**settings))


def untyped(**settings: Any) -> Subject:
    """Texts as a CSV file has them: types and domains found within the budget."""
    table = made_up(300).drop_columns(["who"])
    texts = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
    return subject_of("texts of a file", texts, None, _NONE, Settings(**{"epsilon": 6.0, **settings}), untyped=True)


def close_dates(**settings: Any) -> Subject:
    """Three dates that lie close together."""
    rng = np.random.default_rng(4)
    first = rng.integers(18_000, 19_000, 200)
    days = {name: first + add for name, add in zip("abc", (0, *rng.integers(1, 9, (2, 200))), strict=True)}
    table = pa.table({name: pa.array(each.astype(np.int32)).view(pa.date32()) for name, each in days.items()})
    domain = Date(min=dt.date(2019, 1, 1), max=dt.date(2022, 12, 31), nullable=True)
    schema = Schema(attributes=dict.fromkeys("abc", domain))
    return subject_of("close dates", table, schema, _NONE, Settings(**settings))


def refused(**settings: Any) -> Subject:
    """A run that ends with an error, for it has too few rows; what it says is what leaves."""
    made = found(**{"epsilon": 0.02, **settings})

    def run(table: pa.Table, gate: Gate) -> str:
        try:
            made.run(table, gate)
        except KaminoError as problem:
            return str(problem)
        return "done"

    return replace(made, name="too few rows", run=run)


def with_unit(**settings: Any) -> Subject:
    """A unit of up to three rows."""
    chosen = Settings(**{"unit": "who", "max_rows": 3, **settings})
    return subject_of("a unit of three rows", made_up(), SCHEMA, _SOFT, chosen)


def replaced(**settings: Any) -> Subject:
    """The relation in which a row is replaced."""
    chosen = Settings(**{"neighbours": Neighbours.REPLACE, **settings})
    return subject_of("a row replaced", made_up(), SCHEMA, _SOFT, chosen)


def suggesting(**settings: Any) -> Subject:
    """`kamino suggest`."""
    chosen = Settings(**{"seed": _SEED, **settings})
    table = made_up()
    return Subject(
        name="suggested constraints",
        table=table,
        run=_suggest,
        settings=chosen,
        near=near_tables(table, chosen.neighbours, chosen.privacy_unit),
        strange=strange_tables(table),
    )


def _neural(name: str, rules: Constraints, settings: Settings) -> Subject:
    schema = Schema(attributes={each: SCHEMA[each] for each in ("city", "age", "pay")})
    made = subject_of(name, made_up(900).drop_columns(["who"]), schema, rules, settings)
    # A neural fit takes seconds: of each kind of table a few.
    near = {key: table for key, table in made.near.items() if "high and low" in key and "low and high" not in key}
    return replace(made, near=near, strange={"empty": made.strange["empty"]})


def neural(**settings: Any) -> Subject:
    """The neural backend, a row more or less."""
    return _neural("neural backend", _NONE, Settings(**{"backend": "neural", **settings}))


def paper(**settings: Any) -> Subject:
    """The paper's way as printed: its own networks, a row replaced, weights from a sample."""
    return _neural("the paper's way as printed", _SOFT, Settings.of("printed", **settings))


DEFAULT: tuple[Callable[..., Subject], ...] = (
    declared,
    found,
    found_texts,
    with_unit,
    replaced,
    grouped,
    dated,
    refused,
    suggesting,
)
NEURAL: tuple[Callable[..., Subject], ...] = (neural, paper)
