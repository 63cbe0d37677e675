"""Random databases: two to six tables, with keys, roles, rules and numbers of children by chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

COLORS = ["red", "green", "blue"]


@dataclass(frozen=True)
class RandomDatabase:
    """The text of a schema and of rules, and true tables."""

    schema: str
    rules: str
    tables: dict[str, pa.Table]


def random_database(seed: int) -> RandomDatabase:
    """A database that follows from a seed."""
    rng = np.random.default_rng(seed)
    return _Maker(rng).make()


class _Maker:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.schema: list[str] = ["tables:"]
        self.rules: list[str] = []
        self.tables: dict[str, pa.Table] = {}
        self.levels: dict[str, int] = {}

    def make(self) -> RandomDatabase:
        rng = self.rng
        has_public = rng.random() < 0.6
        if has_public:
            self.schema.append("  places: {role: public, key: place}")
            names = ["north", "south", "east"] if rng.random() < 0.5 else [3, 7, 11, 12]
            self.tables["places"] = pa.table({"place": names, "size": list(range(len(names)))})
        roots = int(rng.choice([1, 2, 7, 40, 120]))
        owned = int(rng.integers(1, 5))
        parents = ["t0"]
        for i in range(owned + 1):
            name = f"t{i}"
            parent = None if i == 0 else str(rng.choice(parents))
            if parent is not None and self.levels[parent] >= 3:
                parent = "t0"
            self.levels[name] = 0 if parent is None else self.levels[parent] + 1
            self._table(name, parent, roots, has_public)
            parents.append(name)
        return RandomDatabase("\n".join(self.schema) + "\n", "\n".join(self.rules) + "\n", self.tables)

    def _table(self, name: str, parent: str | None, roots: int, has_public: bool) -> None:
        rng = self.rng
        whole = bool(rng.random() < 0.5)
        owner = parent is not None
        numbered, dated, named = owner and rng.random() < 0.5, rng.random() < 0.5, has_public and rng.random() < 0.5
        key_rows = self._owners(parent) if parent is not None else np.zeros(roots, dtype=np.int64)
        size = len(key_rows)
        ids = (np.arange(size) + 100).tolist() if whole else [f"{name}-{i}" for i in range(size)]
        columns: dict[str, pa.Array] = {"id": pa.array(ids, pa.int64() if whole else pa.string())}
        lines = [f"  {name}:", f"    role: {'root' if parent is None else f'owned by {parent}'}", "    key: id"]
        keys, attributes = [], [f"      id: {{type: key{', dtype: int64' if whole else ''}}}"]
        if parent is not None:
            above = self.tables[parent].column("id")
            columns["up"] = above.combine_chunks().take(pa.array(key_rows))
            keys.append(f"      - {{columns: up, references: {parent}}}")
            attributes.append(f"      up: {{type: key{', dtype: int64' if pa.types.is_integer(above.type) else ''}}}")
        if numbered:
            starts = np.searchsorted(key_rows, key_rows)
            columns["number"] = pa.array(np.arange(size) - starts + 1)
            attributes.append("      number: {type: integer, min: 1, max: 6}")
            self.rules.append(f"number ({name}.number)")
        if named:
            values = self.tables["places"].column("place").to_pylist()
            picked = [None if rng.random() < 0.2 else values[int(rng.integers(len(values)))] for _ in range(size)]
            columns["place"] = pa.array(picked, self.tables["places"].column("place").type)
            keys.append("      - {columns: place, references: places}")
            kind = "integer" if isinstance(values[0], int) else "categorical"
            attributes.append(f"      place: {{type: {kind}, nullable: true}}")
        self._data(name, parent, size, key_rows, columns, attributes, dated)
        self.schema += [*lines, *(["    foreign_keys:", *keys] if keys else []), "    attributes:", *attributes]
        self.tables[name] = pa.table(columns)

    def _owners(self, parent: str) -> np.ndarray:
        rng = self.rng
        most = int(rng.integers(1, 6))
        least = int(rng.integers(0, most + 1)) if rng.random() < 0.5 else 0
        counts = rng.integers(least, most + 1, self.tables[parent].num_rows)
        child = f"t{len(self.levels) - 1}"
        self.rules.append(f"each {parent} has {least}..{most} {child}")
        return np.repeat(np.arange(len(counts)), counts)

    def _data(
        self,
        name: str,
        parent: str | None,
        size: int,
        owners: np.ndarray,
        columns: dict[str, pa.Array],
        attributes: list[str],
        dated: bool,
    ) -> None:
        rng = self.rng
        columns["color"] = pa.array([COLORS[int(i)] for i in rng.integers(0, 3, size)], pa.string())
        attributes.append(f"      color: {{type: categorical, values: [{', '.join(COLORS)}]}}")
        nulls = rng.random(size) < 0.2
        columns["amount"] = pa.array(np.round(rng.uniform(0, 5, size), 1), mask=nulls)
        attributes.append("      amount: {type: real, decimals: 1, min: 0, max: 5, nullable: true}")
        if rng.random() < 0.4:
            columns["twice"] = pa.array(
                [None if a is None else round(2 * a, 1) for a in columns["amount"].to_pylist()], pa.float64()
            )
            attributes.append("      twice: {type: real, decimals: 1, nullable: true}")
            self.rules.append(f"{name}.twice = {name}.amount * 2")
        if rng.random() < 0.4:
            fine = np.array([c != "red" for c in columns["color"].to_pylist()], dtype=bool)
            columns["amount"] = pa.array(
                [
                    a if f or a is None or a < 4 else 3.9
                    for a, f in zip(columns["amount"].to_pylist(), fine, strict=True)
                ],
                pa.float64(),
            )
            if "twice" in columns:
                columns["twice"] = pa.array(
                    [None if a is None else round(2 * a, 1) for a in columns["amount"].to_pylist()], pa.float64()
                )
            self.rules.append(f"not ({name}.color = 'red' and {name}.amount >= 4)")
        if dated:
            first = np.datetime64("2015-01-01")
            if parent is not None and "day" in self.tables[parent].column_names:
                above = self.tables[parent].column("day").to_numpy().astype("datetime64[D]")[owners]
                days = above + rng.integers(0, 30, size)
                self.rules.append(f"check ({name}.day >= {parent}.day)")
            else:
                days = first + rng.integers(0, 300, size)
            columns["day"] = pa.array(days.astype("datetime64[D]"))
            attributes.append("      day: {type: date, min: 2014-01-01, max: 2016-12-31}")
        if parent is not None and rng.random() < 0.5:
            reds = np.bincount(
                owners[np.array([c == "red" for c in columns["color"].to_pylist()], dtype=bool)],
                minlength=self.tables[parent].num_rows,
            )
            label = f"reds_{name}"
            place = self.schema.index(f"  {parent}:")
            end = next(
                (i for i in range(place + 1, len(self.schema)) if not self.schema[i].startswith("    ")),
                len(self.schema),
            )
            self.schema.insert(end, f"      {label}: {{type: integer, min: 0, max: 5}}")
            self.tables[parent] = self.tables[parent].append_column(label, pa.array(reds.astype(np.int64)))
            self.rules.append(f"count({name} where color = 'red') = {parent}.{label}")
