"""Which columns of a source are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tests.contracts.servers import postgres, run_in_postgres

from kamino import InputError, Synthesizer
from kamino.io import Reading, read_table

# A list, bytes, and a structure: nothing that can be compared.
TABLE = pa.table({"n": [1, 2], "l": [[1], [2]], "b": [b"\x00", b"\xff"], "s": [{"a": 1}, {"a": 2}], "t": ["x", "y"]})
ODD = ("l", "b", "s")


def sources(folder: Path) -> dict[str, Any]:
    pq.write_table(TABLE, folder / "t.parquet")
    pyarrow.feather.write_feather(TABLE, folder / "t.feather")
    (folder / "many").mkdir()
    pq.write_table(TABLE, folder / "many" / "a.parquet")
    pq.write_table(TABLE, folder / "many" / "b.parquet")
    with duckdb.connect(folder / "t.db") as connection:
        connection.execute("create table t (n bigint, l bigint[], b blob, s struct(a int), t varchar)")
        connection.execute("insert into t values (1, [1], 'a', {'a': 1}, 'x'), (2, [2], 'b', {'a': 2}, 'y')")
    return {
        "parquet": folder / "t.parquet",
        "folder": folder / "many",
        "feather": folder / "t.feather",
        "duckdb": f"duckdb:///{folder}/t.db#t",
        "pandas": pd.DataFrame({**TABLE.to_pydict(), "s": [object(), 3]}),
        "polars": pl.DataFrame(TABLE.to_pydict()),
        "pyarrow": TABLE,
    }


KINDS = ("parquet", "folder", "feather", "duckdb", "pandas", "polars", "pyarrow")


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_out_may_have_any_type(tmp_path: Path, kind: str, private: bool) -> None:
    source = sources(tmp_path)[kind]
    if not (kind == "pandas" and private):
        with pytest.raises(InputError, match=r"column '[ls]'"):
            read_table(source, private=private)
    found = read_table(source, private=private, reading=Reading(drop=ODD))
    assert found.column_names == ["n", "t"]
    assert set(found.column("t").to_pylist()) == {"x", "y"}
    assert read_table(source, private=private, reading=Reading(columns=("t", "n"))).column_names == ["t", "n"]
    with pytest.raises(InputError, match="found no column 'x' in the table"):
        read_table(source, private=private, reading=Reading(drop=("x",)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_leaves_out_what_it_cannot_read(tmp_path: Path, kind: str) -> None:
    source = sources(tmp_path)[kind]
    made = Synthesizer(trust_domain=True, seed=1, unit="row").fit(source, reading=Reading(drop=ODD)).sample(3)
    names = made.columns if kind in ("pandas", "polars") else made.column_names
    assert list(names) == ["n", "t"]


def test_a_database_server_leaves_out_what_cannot_be_read() -> None:
    address = postgres()
    run_in_postgres(address, "drop table if exists odd_types")
    run_in_postgres(address, "create table odd_types (n int, l int[], b bytea, t text)")
    run_in_postgres(address, "insert into odd_types values (1, '{1}', 'a', 'x'), (2, '{2}', 'b', 'y')")
    with pytest.raises(InputError, match="column 'l'"):
        read_table(address, query="odd_types")
    found = read_table(address, reading=Reading(query="odd_types", drop=("l", "b")))
    assert found.column_names == ["n", "t"]


def test_a_key_of_the_database_may_be_left_out(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "t.db") as connection:
        connection.execute("create table t (id int primary key, a int not null, b int, check (id > 0), unique (a, b))")
        connection.execute("insert into t select i + 1, i, i % 5 from range(40) t(i)")
    source = f"duckdb:///{tmp_path}/t.db#t"
    made = Synthesizer(trust_domain=True, seed=1, unit="row").fit(source, reading=Reading(drop=("id", "b")))
    assert made.sample(3).column_names == ["a"]
