"""What goes in and out of a peer's process: a CSV table, a JSON description of its public domain, a CSV table back.

Peers run in environments of their own, so this module needs nothing but pandas.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Column:
    """What is public about a column: `kind` is category, integer or real; numbers have bounds, categories values."""

    name: str
    kind: str
    nullable: bool
    values: tuple[str, ...] = ()
    lower: float = 0.0
    upper: float = 0.0
    decimals: int = 0

    @property
    def width(self) -> float:
        """How many values there are, null aside; infinite for a real number."""
        if self.kind == "category":
            return len(self.values)
        return self.upper - self.lower + 1 if self.kind == "integer" else float("inf")


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a peer is asked to do."""

    method: str
    frame: pd.DataFrame
    columns: tuple[Column, ...]
    epsilon: float
    delta: float
    rows: int
    seed: int


def read_domain(text: str) -> tuple[Column, ...]:
    """The columns of a domain description."""
    return tuple(Column(**{**column, "values": tuple(column["values"])}) for column in json.loads(text))


def read_frame(path: Path, columns: tuple[Column, ...]) -> pd.DataFrame:
    """A table with texts, integers and floats; an empty cell is null, and makes an integer column a float one."""
    texts: Mapping[str, Any] = {column.name: "str" for column in columns if column.kind == "category"}
    return pd.read_csv(path, dtype=dict(texts), keep_default_na=False, na_values=[""])


def in_domain(frame: pd.DataFrame, columns: tuple[Column, ...]) -> pd.DataFrame:
    """The table with numbers rounded to their decimals and kept within their bounds. Free: the domain is public."""
    made = {}
    for column in columns:
        values = frame[column.name]
        if column.kind != "category":
            numbers = pd.to_numeric(values, errors="coerce").astype(float)
            values = numbers.round(column.decimals).clip(column.lower, column.upper)
            if column.kind == "integer":
                values = values.astype("Int64")
        made[column.name] = values
    return pd.DataFrame(made)


def serve(synthesize: Callable[[Task], pd.DataFrame]) -> None:
    """Read the command line, make a table, write it."""
    parser = argparse.ArgumentParser()
    for option in ("method", "table", "domain", "output"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    columns = read_domain(Path(given.domain).read_text(encoding="utf-8"))
    task = Task(
        method=given.method,
        frame=read_frame(Path(given.table), columns),
        columns=columns,
        epsilon=given.epsilon,
        delta=given.delta,
        rows=given.rows,
        seed=given.seed,
    )
    in_domain(synthesize(task), columns).to_csv(given.output, index=False)
