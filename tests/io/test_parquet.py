from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kamino.errors import InputError
from kamino.io import read_table


def test_types_and_nulls(tmp_path: Path) -> None:
    table = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "kind": pa.array(["x", None]).dictionary_encode(),
            "wide": pa.array(["x", ""], pa.large_string()),
            "none": pa.nulls(2),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert found.schema == pa.schema(
        {"small": pa.int8(), "kind": pa.string(), "wide": pa.string(), "none": pa.string()}
    )
    assert found.to_pydict() == table.to_pydict()


def test_unnamed_pandas_index_is_left_out_and_a_named_one_is_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3]})[1:]
    frame.to_parquet(tmp_path / "t.parquet", index=True)
    assert read_table(tmp_path / "t.parquet").column_names == ["a"]
    frame.rename_axis("id").to_parquet(tmp_path / "t.parquet", index=True)
    assert sorted(read_table(tmp_path / "t.parquet").column_names) == ["a", "id"]


def test_partition_folders_add_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "year=2024"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "t.parquet")
    assert read_table(folder / "t.parquet").column_names == ["a"]


def test_no_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.date32())}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").schema == pa.schema({"a": pa.date32()})


@pytest.mark.parametrize(
    "content", [b"", b"S3CRET,text\n1,2\n", b"PAR1S3CRETPAR1"], ids=["empty", "text", "marks alone"]
)
def test_not_a_parquet_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(InputError, match="not a readable Parquet file") as caught:
        read_table(tmp_path / "t.parquet")
    assert "S3CRET" not in str(caught.value)


def test_damaged_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": list(range(10_000))}), path, compression="snappy")
    content = bytearray(path.read_bytes())
    content[100:2000] = bytes(1900)
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_table(path)
