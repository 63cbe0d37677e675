"""The tables that are measured: folders with a judge's description, folders of the paper, and parity tables."""

from __future__ import annotations

import csv
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.tables import load
from kamino.constraints import Constraints
from kamino.io import read_table, write_table

PARITY_ROWS = 20_000


@dataclass(frozen=True)
class Source:
    """A true table and its constraints. `judged` is the folder that an outside judge reads, if there is one.

    `parity` names the binary columns of which the last is the parity of the others.
    """

    name: str
    path: Path
    judged: Path | None = None
    parity: tuple[str, ...] = ()

    @cached_property
    def table(self) -> pa.Table:
        """The true rows."""
        return read_table(self.path)

    @cached_property
    def rules(self) -> Constraints:
        """The constraints, all of them hard; of the paper's, those that the table itself keeps."""
        if self.judged is not None:
            file = self.path.parent / f"{self.name}.dc"
            return Constraints.parse(file.read_text(encoding="utf-8")) if file.exists() else Constraints()
        return Constraints() if self.parity else load(self.path.parent.parent, self.name)[1]


def find_source(folder: Path, *, rows: int | None, work: Path) -> Source:
    """The table of a folder: train.csv with judge.json, or NAME.csv with NAME.ic; with `rows`, so many of its rows."""
    name = folder.resolve().name
    judged = (folder / "judge.json").exists()
    files = ["train.csv", "test.csv", "judge.json", f"{name}.dc"] if judged else [f"{name}.csv", f"{name}.ic"]
    if not (folder / files[0]).exists():
        raise FileNotFoundError(f"{folder}: found no {files[0]}; expected train.csv and judge.json, or NAME.csv")
    if rows is not None:
        small = work / f"{rows} rows" / name
        small.mkdir(parents=True, exist_ok=True)
        for file in files[1:]:
            if (folder / file).exists():
                shutil.copyfile(folder / file, small / file)
        sample_lines(folder / files[0], small / files[0], rows)
        folder = small
    return Source(name, folder / files[0], folder if judged else None)


def sample_lines(source: Path, target: Path, rows: int) -> None:
    """Copy the header and so many rows, always the same ones, cells as they are written."""
    with source.open(newline="", encoding="utf-8") as handle:
        header, *lines = csv.reader(handle)
    chosen = np.sort(np.random.default_rng(0).permutation(len(lines))[:rows])
    with target.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle, lineterminator="\n").writerows([header, *(lines[i] for i in chosen)])


def parity_source(inputs: int, *, rows: int | None, work: Path) -> Source:
    """A table whose last binary column is the parity of `inputs` others: no pair of columns shows anything of it."""
    names = tuple(f"bit{i + 1}" for i in range(inputs + 1))
    path = work / f"xor{inputs + 1}-{rows or PARITY_ROWS}.csv"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        write_table(parity_table(names, rows or PARITY_ROWS, np.random.default_rng(inputs)), path)
    return Source(f"xor{inputs + 1}", path, None, names)


def parity_table(names: tuple[str, ...], rows: int, rng: np.random.Generator) -> pa.Table:
    """Random bits, their parity, and a few columns that depend on each other or on nothing."""
    bits = rng.integers(0, 2, (len(names) - 1, rows))
    group = rng.choice(5, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    columns = {name: bits[i] for i, name in enumerate(names[:-1])} | {names[-1]: bits.sum(axis=0) % 2}
    columns |= {
        "group": np.array(list("vwxyz"))[group],
        "amount": np.round(rng.lognormal(3 + group / 4, 0.7), 1),
        "level": rng.integers(0, 8, rows),
    }
    return pa.table(columns)
