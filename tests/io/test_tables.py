from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import kamino.io
import kamino.io.tables
from kamino.errors import InputError
from kamino.io import read_table


def test_examples_run() -> None:
    assert doctest.testmod(kamino.io.tables).failed == 0


def test_all_names_exist() -> None:
    assert sorted(kamino.io.__all__) == ["Reading", "is_untyped", "read_table", "write_table"]
    assert all(hasattr(kamino.io, name) for name in kamino.io.__all__)


@pytest.mark.parametrize("name", ["t.txt", "t", "t.xls", "t.csv.bz2"])
def test_unknown_kind_of_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"a name ending in \.csv, \.csv\.gz, \.csv\.zst, \.tsv, .* or \.xlsx"):
        read_table(tmp_path / name)


def test_query_and_source_must_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="and no table; expected query="):
        read_table("duckdb:///x.db")
    with pytest.raises(InputError, match="source is not a database"):
        read_table(tmp_path / "t.csv", query="select 1")


@pytest.mark.parametrize("source", [5, None, ["a"], {"a": [1]}, b"t.csv"])
def test_not_a_table(source: object) -> None:
    with pytest.raises(InputError, match=f"object of type {type(source).__name__}"):
        read_table(source)


def test_unknown_url() -> None:
    with pytest.raises(InputError, match="URL of kind 'mysql'") as caught:
        read_table("mysql://user:S3CRET@host/db", query="t")
    assert "S3CRET" not in str(caught.value)


@pytest.mark.parametrize("url", ["duckdb://file.db", "duckdb:///", "duckdb://"])
def test_malformed_duckdb_url(url: str) -> None:
    with pytest.raises(InputError, match="three slashes"):
        read_table(url, query="t")


@pytest.mark.parametrize("query", ["", "  ", ";", " ; "])
def test_empty_query(query: str) -> None:
    with pytest.raises(InputError, match="query is empty"):
        read_table("duckdb:///x.db", query=query)
