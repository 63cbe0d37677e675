"""What a user of Python meets: notes and warnings, wrong arguments, tools for the owner of a table."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kamino
from kamino import KaminoError, KaminoWarning, Reading, SchemaError, Synthesizer

ROWS = 2_000


def _people() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "zip": (codes := rng.integers(0, 5, ROWS)),
            "city": np.asarray(list("ABCDE"))[codes],
            "age": rng.integers(18, 90, ROWS),
            "name": [f"Person {number}" for number in range(ROWS)],
        }
    )


PEOPLE = _people()
SCHEMA: dict[str, Any] = {
    "zip": {"type": "integer", "min": 0, "max": 4},
    "city": {"type": "categorical", "values": list("ABCDE")},
    "age": {"type": "integer", "min": 0, "max": 120},
}
DATA = PEOPLE.drop(columns="name")


def test_python_warns_of_what_was_lost() -> None:
    synthesizer = Synthesizer(epsilon=1.0, seed=1)
    with pytest.warns(KaminoWarning, match=r"name: about .* of its cells became `other`"):
        synthesizer.fit(PEOPLE)
    assert any("name: about" in note for note in synthesizer.notes)


@pytest.mark.parametrize(
    ("budget", "said"),
    [({"epsilon": 50.0}, "epsilon 50 is above 10"), ({"delta": 0.001}, "delta 0.001 is above one over the rows")],
)
def test_python_warns_of_weak_promises(budget: dict[str, float], said: str) -> None:
    with pytest.warns(KaminoWarning, match=said):
        Synthesizer(SCHEMA, seed=1, **budget).fit(DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("error", KaminoWarning)
        Synthesizer(SCHEMA, seed=1, accept=True, **budget).fit(DATA)


def test_it_fits_into_pipelines() -> None:
    sklearn = pytest.importorskip("sklearn.pipeline")
    pipeline = sklearn.Pipeline([("synthesizer", Synthesizer(SCHEMA, ["zip -> city"], seed=1))])
    drawn = pipeline.fit(DATA)["synthesizer"].sample(300)
    assert kamino.check(drawn, ["zip -> city"]).is_clean
    assert list(drawn.columns) == ["zip", "city", "age"]


def test_schemas_may_be_mappings_and_rules_lists() -> None:
    made = Synthesizer({"attributes": SCHEMA, "unit": "row"}, ("zip -> city", "soft: city -> zip"))
    assert made.schema == kamino.Schema.from_yaml("unit: row\n" + Synthesizer(SCHEMA).schema.to_yaml())  # type: ignore[union-attr]
    assert len(made.constraints) == 2
    with pytest.raises(SchemaError, match=r"age.maxx.*Did you mean 'max'"):
        Synthesizer({"age": {"type": "integer", "min": 0, "maxx": 4}})


def test_one_record_is_a_condition() -> None:
    made = Synthesizer(SCHEMA, seed=1).fit(DATA)
    for given in ([{"city": "B"}], pd.DataFrame({"city": ["B"]}), {"city": "B"}):
        assert set(made.sample(20, given=given)["city"]) == {"B"}  # type: ignore[arg-type]


def test_tools_of_the_owner_do_what_the_commands_do(tmp_path: Path) -> None:
    drafted = kamino.draft_schema(PEOPLE, keys=["name"])
    assert [each.type for each in drafted.attributes.values()] == ["categorical", "categorical", "integer", "key"]
    broken = DATA.assign(city="A")
    assert not kamino.check(broken.assign(city=list("AB") * (ROWS // 2)), "zip -> city").is_clean
    same = kamino.report(DATA, DATA, ["zip -> city"])
    assert (same.level, same.score.value, same.score.rules) == ("good", 1.0, 1.0)
    far = kamino.report(DATA, broken, "city -> zip")
    assert far.level == "poor"
    assert "hard constraints: poor" in far.reasons
    assert far.score.value < kamino.score(DATA, DATA).value
    assert far.score.rules == 0.0
    assert same.score.chance is not None
    assert same.score.chance < 1
    assert str(same.score).startswith("1.000 (columns 1.000, pairs 1.000, hard constraints 1.000); two halves")
    far.write(tmp_path / "r.html")
    assert "<html" in (tmp_path / "r.html").read_text()


def test_what_is_public_is_listed() -> None:
    assert {"Synthesizer", "draft_schema", "report", "check", "score", "verify"} <= set(dir(kamino))
    assert all(hasattr(kamino, name) for name in dir(kamino))
    assert next(iter(inspect.signature(Synthesizer).parameters)) == "schema"


def _fit(table: object = DATA, schema: Any = SCHEMA, rules: Any = None, **given: Any) -> Any:
    fitting = {name: given.pop(name) for name in ("y", "reading", "query", "output", "num_rows") if name in given}
    return Synthesizer(schema, rules, ledger=None, **given).fit(table, **fitting)


# What somebody may write at first, and what the one line says that answers.
WRONG: tuple[tuple[str, Callable[[], object], str], ...] = (
    ("random_state", lambda: Synthesizer(random_state=1), "Say seed="),  # type: ignore[call-arg]
    ("eps", lambda: Synthesizer(eps=1), "Say epsilon="),  # type: ignore[call-arg]
    ("epsilom", lambda: Synthesizer(epsilom=1), "Did you mean 'epsilon'"),  # type: ignore[call-arg]
    ("rules", lambda: Synthesizer(rules="a -> b"), "Say constraints="),  # type: ignore[call-arg]
    ("metadata", lambda: Synthesizer(metadata={}), "Say schema="),  # type: ignore[call-arg]
    ("drop", lambda: Synthesizer(drop=["a"]), "Reading(drop="),  # type: ignore[call-arg]
    ("set_params", lambda: Synthesizer().set_params(random_state=1), "Say seed="),
    ("y", lambda: _fit(y=DATA["age"]), "fit(table.assign(label=y))"),
    ("epsilon text", lambda: Synthesizer(epsilon="1"), "epsilon"),  # type: ignore[arg-type]
    ("epsilon zero", lambda: Synthesizer(epsilon=0), "epsilon"),
    ("epsilon negative", lambda: Synthesizer(epsilon=-1), "epsilon"),
    ("epsilon nan", lambda: Synthesizer(epsilon=float("nan")), "epsilon"),
    ("delta one", lambda: Synthesizer(delta=1.5), "delta"),
    ("delta zero", lambda: Synthesizer(delta=-0.1), "delta"),
    ("unit alone", lambda: Synthesizer(unit="zip"), "max_rows"),
    ("max_rows alone", lambda: Synthesizer(max_rows=3), "unit"),
    ("backend", lambda: Synthesizer(backend="gan"), "marginal"),
    ("preset", lambda: Synthesizer(preset="fast"), "default"),
    ("seed text", lambda: Synthesizer(seed="x"), "seed"),  # type: ignore[arg-type]
    ("schema path", lambda: Synthesizer("schema.yaml"), "Path("),
    ("schema number", lambda: Synthesizer(7), "expected a Schema"),  # type: ignore[arg-type]
    ("schema empty", lambda: Synthesizer({}), "attributes"),
    ("schema type", lambda: Synthesizer({"a": {"type": "number"}}), "integer"),
    ("schema half", lambda: Synthesizer({"a": {"type": "integer", "min": 0}}), "max"),
    ("schema range", lambda: Synthesizer({"a": {"type": "integer", "min": 2, "max": 1}}), "exchange"),
    ("rules path", lambda: Synthesizer(None, "rules.dc"), "Path("),
    ("rules number", lambda: Synthesizer(None, 7), "expected Constraints"),  # type: ignore[arg-type]
    ("rules mixed", lambda: Synthesizer(None, ["a -> b", 7]), "list of texts"),  # type: ignore[list-item]
    ("rules no arrow", lambda: Synthesizer(None, "zip city"), "1:"),
    ("rules unknown", lambda: _fit(rules="zipp -> city"), "Did you mean 'zip'"),
    ("rules quotes", lambda: _fit(rules='check (city in ("A"))'), "single quotes"),
    ("no columns", lambda: _fit(pd.DataFrame(), None), "no columns"),
    ("no table", lambda: _fit(None), "NoneType"),
    ("a number", lambda: _fit(7), "int"),
    ("a list", lambda: _fit([1, 2]), "list"),
    ("a missing file", lambda: _fit("nowhere.csv"), "nowhere.csv"),
    ("an unknown ending", lambda: _fit("table.sas7bdat"), "Expected a name ending in"),
    ("sqlite", lambda: _fit("sqlite:///f.db"), "duckdb"),
    ("mysql", lambda: _fit("mysql://h/d"), "duckdb"),
    ("s3", lambda: _fit("s3://bucket/t.parquet"), "duckdb"),
    ("https", lambda: _fit("https://example.org/t.csv"), "duckdb"),
    ("a column too many", lambda: _fit(PEOPLE), "not in the schema"),
    ("a column too few", lambda: _fit(DATA.drop(columns="age")), "not in the table"),
    ("names twice", lambda: _fit(pd.concat([DATA, DATA], axis=1), None), "more than once"),
    ("unit unknown", lambda: _fit(unit="zipp", max_rows=2), "zip"),
    ("drop unknown", lambda: _fit(schema=None, reading=Reading(drop=("agee",))), "Did you mean 'age'"),
    ("nulls", lambda: Reading(nulls=7), "NA"),  # type: ignore[arg-type]
    ("numbers", lambda: Reading(numbers={"a": "%"}), "1,234.5"),
    ("keep and drop", lambda: Reading(columns=("a",), drop=("a",)), "say one"),
    ("query for a frame", lambda: _fit(query="select 1"), "not a database"),
    ("output", lambda: _fit(output="out.xls"), ".csv"),
    ("sample before fit", lambda: Synthesizer(SCHEMA).sample(5), "fit(table)"),
    ("plan without schema", lambda: Synthesizer().plan(), "Synthesizer(schema="),
    ("load", lambda: Synthesizer.load("nowhere.model"), "nowhere.model"),
    ("draft of nothing", lambda: kamino.draft_schema(None), "NoneType"),
    ("check of nothing", lambda: kamino.check(DATA, "zipp -> city"), "Did you mean 'zip'"),
    ("report of nothing", lambda: kamino.report(DATA, None), "NoneType"),
    ("verify of nothing", lambda: kamino.verify("nowhere.csv"), "nowhere.csv"),
    ("neural without torch", lambda: Synthesizer(training="deep"), "fitted"),
    ("sweeps", lambda: Synthesizer(sweeps=-1), "0 or more"),
)


@pytest.mark.parametrize(("wrong", "said"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_wrong_keyword_is_told_in_one_line(
    wrong: Callable[[], object], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kamino.privacy.ledger import Ledger

    def charge(*given: object, **named: object) -> None:
        pytest.fail("something was spent")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Ledger, "charge", charge)
    with pytest.raises(KaminoError) as problem:
        wrong()
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"state": "CA"}, "state"),
        ({"city": "Z"}, "Z"),
        ([{"city": "A"}, {"city": "B"}], "found given with 2 records"),
        (pd.DataFrame({"city": ["A", "B"]}), "found given with 2 records"),
        ("city", "expected a mapping"),
        ({"age": (90, 30)}, "age"),
    ],
)
def test_conditions_that_cannot_be_are_told(given: Any, said: str) -> None:
    made = Synthesizer(SCHEMA, seed=1).fit(DATA)
    with pytest.raises(KaminoError) as problem:
        made.sample(5, given=given)
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)
