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

from kamino import InputError, Synthesizer
from kamino.io import Reading, read_table
from tests.contracts.servers import postgres

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
        with pytest.raises(InputError, match="column 'l'"):
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
    assert list(
        made.schema.names() if kind == "polars" else made.columns if kind == "pandas" else made.column_names
    ) == [
        "n",
        "t",
    ]
