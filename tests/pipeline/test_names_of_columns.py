"""Names of columns come from a header, a schema or the user, never from a row; of what is left out, nothing stays."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.io import Reading
from kamino.pipeline import Synthesizer
from kamino.schema import Categorical, Integer, Schema

SCHEMA = Schema(attributes={"city": Categorical(values=["Rome", "Oslo"], nullable=True), "n": Integer(min=0, max=9)})
ROWS = [{"city": "Rome", "n": 1}, {"city": "Oslo", "n": 2}] * 20


def as_lines(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("odd", [{"S3CRET": 1}, {"n": 1}, {}, {"city": ["S3CRET"], "n": 3, "S3CRET": {}}])
@pytest.mark.parametrize("first", [False, True])
def test_json_lines_have_the_columns_of_the_schema(tmp_path: Path, odd: dict[str, object], first: bool) -> None:
    path = as_lines(tmp_path / "t.jsonl", [odd, *ROWS] if first else [*ROWS, odd])
    made = Synthesizer(SCHEMA, seed=1).fit(path)
    made.save(tmp_path / "m.kamino")
    assert made.sample(5).column_names == ["city", "n"]
    assert b"S3CRET" not in (tmp_path / "m.kamino").read_bytes()
    named = Synthesizer(seed=1, anyway=True, epsilon=20).fit(path, reading=Reading(columns=("city", "n")))
    assert named.sample(5).column_names == ["city", "n"]
    with pytest.raises(InputError, match=r"declare no columns: .* a schema, or Reading\(columns=\('name'") as told:
        Synthesizer().fit(path)
    assert "S3CRET" not in str(told.value)


FRAMES = {
    "pandas": lambda: pd.DataFrame({"a": [1, 2] * 20, "S3CRET": pd.Categorical([1.5, 2.5] * 20)}),
    "pandas struct": lambda: pd.DataFrame({"a": [1, 2] * 20}).assign(
        S3CRET=pd.arrays.ArrowExtensionArray(pa.array([{"S3CRET": 1}] * 40))
    ),
    "polars": lambda: pl.DataFrame({"a": [1, 2] * 20, "S3CRET": [{"S3CRET": 1}] * 40}),
    "pyarrow": lambda: pa.table({"a": [1, 2] * 20, "S3CRET": [{"S3CRET'": 1}] * 40}),
}


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("how", [{"drop": ("S3CRET",)}, {"columns": ("a",)}], ids=["drop", "columns"])
@pytest.mark.parametrize("trusted", [False, True])
def test_what_is_left_out_leaves_no_trace(
    tmp_path: Path, library: str, how: dict[str, tuple[str]], trusted: bool
) -> None:
    """Neither its name, nor its type, nor a key of one of its cells reaches the model or the certificate."""
    schema = None if trusted else Schema(attributes={"a": Integer(min=1, max=2)})
    made = Synthesizer(schema, seed=1, trust_domain=trusted).fit(FRAMES[library](), reading=Reading(**how))
    made.save(tmp_path / "m.kamino")
    written = made.write(tmp_path / "o.csv", 5)
    texts = [*made.fitted.to_bundle().texts.values(), json.dumps(written.certificate)]
    assert all("S3CRET" not in text for text in texts)
    assert Synthesizer.load(tmp_path / "m.kamino").fitted.schema.names == ("a",)
