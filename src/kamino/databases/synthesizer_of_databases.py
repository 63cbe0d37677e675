"""The front door for databases in Python: fit, sample, write."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kamino.databases.rule_lines import parse_rules
from kamino.databases.table_rules import DatabaseRules
from kamino.errors import InputError, ModelError, SamplingError, SchemaError
from kamino.io.text import read_text
from kamino.pipeline.settings import Settings
from kamino.pipeline.spending import telling_what_is_spent
from kamino.pipeline.stages import Progress, Stage, quietly, silent
from kamino.privacy import Neighbours
from kamino.schema.database import Database
from kamino.schema.files.database_file import is_database_text, read_database

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from kamino.databases.family_layout import Layout
    from kamino.databases.fitting_levels import FittedDatabase
    from kamino.databases.table_sets import TableSet

CERTIFICATE = "certificate.json"


@dataclass(frozen=True, kw_only=True)
class WrittenDatabase:
    """A database that was written, and what is certified of it. Every field may be published."""

    folder: Path
    rows: Mapping[str, int]
    certificate: Mapping[str, Any]

    def __str__(self) -> str:
        tables = ", ".join(f"{count:,} {name}" for name, count in self.rows.items())
        return f"{tables} in {self.folder}, certificate in {self.folder / CERTIFICATE}"


class DatabaseSynthesizer:
    """Fits the tables of a database once, under one budget, and draws synthetic databases from the fit.

    What is protected is one row of the root table with everything that hangs on it.

    Args:
        schema: a `Database`, the text of its schema file, or the `Path` of one.
        rules: the rules of its tables: text (one a line), or the `Path` of a file; None for none.
        epsilon: the privacy loss that is allowed, for all tables together.
        delta: the chance that is allowed for a larger loss than epsilon.
        neighbours: "add_remove", one family more or less (the default), or "replace", one is another.
        accept: mark what is drawn for release although the budget promises next to nothing.
        seed: for tests only; fixes noise and draws, and marks the run "not for release".

    Guarantees:
        What it draws is (epsilon, delta)-differentially private in families.  [test_replay_passes_for_databases]
        Hard rules hold in what is written, or nothing is written.  [test_random_databases_hold]
    """

    def __init__(
        self,
        schema: Database | str | os.PathLike[str],
        rules: DatabaseRules | str | os.PathLike[str] | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: Neighbours | str | None = None,
        accept: bool = False,
        seed: int | None = None,
    ) -> None:
        self.database = _database(schema)
        self.rules = _rules(rules, self.database)
        self.settings = Settings.of(epsilon=epsilon, delta=delta, neighbours=neighbours, accept=accept, seed=seed)
        self._fitted: FittedDatabase | None = None
        self._tables: TableSet | None = None

    def __repr__(self) -> str:
        state = "fitted " if self._fitted is not None else ""
        return f"{state}DatabaseSynthesizer({', '.join(self.database.tables)})"

    def layout(self, tables: object) -> Layout:
        """What a fit will do with these tables, of which only public ones are read.

        Raises:
            SchemaError, InputError: what cannot be done, before anything is spent.
        """
        return self._laid_out(_open(tables, self.database))

    def _laid_out(self, source: TableSet) -> Layout:
        from kamino.databases.family_layout import lay_out

        public = {name: source.public(name) for name in self.database.public}
        _check_public(self.database, public)
        return lay_out(self.database, self.rules, public)

    def fit(self, tables: object, *, progress: Progress = silent) -> DatabaseSynthesizer:
        """Spend the budget on a database: a folder with a file for each table, or frames by name."""
        from kamino.databases.fitting_levels import check_private, fit_database
        from kamino.databases.table_sets import FrameTables
        from kamino.privacy import Gate, PrivacyUnit, SeededNoise

        with quietly():
            progress(Stage.READ)
            source = _open(tables, self.database)
            layout = self._laid_out(source)
            private = {name: source.private(name) for name in self.database.private}
            for name, table in private.items():
                check_private(name, self.database[name].known, table)
            noise = SeededNoise(self.settings.seed) if self.settings.seed is not None else None
            unit = PrivacyUnit(family=self.database.root, max_rows=layout.rows)
            gate = Gate(self.settings.budget, unit=unit, noise=noise)
            progress(Stage.FIT)
            with telling_what_is_spent(gate.ledger.to_dict, self.settings):
                self._fitted = fit_database(private, layout, gate, self.settings)
            self._tables = source.without_rows() if isinstance(source, FrameTables) else source
        return self

    @property
    def fitted(self) -> FittedDatabase:
        """The models of all tables."""
        if self._fitted is None:
            raise ModelError("found no fitted model; call fit(tables) first")
        return self._fitted

    @property
    def ledger(self) -> dict[str, Any]:
        """Everything that was released, with its noise and its cost."""
        return self.fitted.ledger

    def sample(self, num_families: int | None = None, *, scale: float = 1.0, seed: int | None = None) -> dict[str, Any]:
        """Draw a synthetic database: the private tables by name, of the kind that was fitted.

        Args:
            num_families: how many rows of the root; None for about as many as there are.
            scale: how many times as many.
            seed: draws the same rows again.
        """
        with quietly():
            drawn = self._drawn(num_families, scale, seed)
        assert self._tables is not None, "a fit keeps where the tables came from"
        found = {}
        for name, table in drawn.items():
            found[name] = self._tables.comes_back(name, table, self.database[name].known)
        return found

    def _drawn(self, num_families: int | None, scale: float, seed: int | None) -> dict[str, pa.Table]:
        from kamino.databases.drawing import Drawer
        from kamino.databases.making import make_tables

        count = round(self.fitted.num_families * scale) if num_families is None else num_families
        if count < 0:
            raise InputError(f"found {count} families asked for; expected none or more")
        drawn = Drawer(fitted=self.fitted, rng=self._rng(seed)).draw(max(count, 0))
        return make_tables(self.fitted, drawn)

    def _rng(self, seed: int | None) -> np.random.Generator:
        import numpy as np

        return np.random.default_rng(seed if seed is not None else self.settings.seed)

    def write(
        self,
        folder: str | os.PathLike[str],
        num_families: int | None = None,
        *,
        scale: float = 1.0,
        ending: str | None = None,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> WrittenDatabase:
        """Draw a database into a new folder: a file for each private table, and one certificate for all.

        What was written is read back, and every rule and key is counted in it.

        Raises:
            InputError: the folder cannot be written.
            SamplingError: what was drawn breaks a rule; nothing is written.
        """
        from kamino.databases.kept_rules import count_broken
        from kamino.databases.table_sets import FolderTables, check_folder, staged_folder

        if ending is None:
            source = self._tables
            root = self.database.root
            ending = "".join(source.file(root).suffixes[-1:]) if isinstance(source, FolderTables) else ".parquet"
        path = check_folder(folder, ending)
        with quietly():
            progress(Stage.SAMPLE)
            tables = self._drawn(num_families, scale, seed)
            with staged_folder(path, ending) as staged:
                progress(Stage.WRITE)
                back = {name: staged.write(name, table) for name, table in tables.items()}
                hashes = {name: _sha256(staged.file(name)) for name in tables}
                progress(Stage.CHECK)
                broken = count_broken(self.fitted.layout, back)
                if broken.total:
                    raise SamplingError(
                        f"found drawn tables that break {'; '.join(broken.lines())}; nothing was written. "
                        "Please report this with the schema and the rules"
                    )
                rows = {name: table.num_rows for name, table in back.items()}
                certificate = self.certificate(rows, broken, hashes)
                text = json.dumps(certificate, indent=1, ensure_ascii=False, allow_nan=False)
                (staged.temporary / CERTIFICATE).write_text(text + "\n", encoding="utf-8")
        return WrittenDatabase(folder=path, rows=rows, certificate=certificate)

    def certificate(self, rows: Mapping[str, int], broken: Any, hashes: Mapping[str, str]) -> dict[str, Any]:
        """The privacy of the fit, and what the written tables keep: plain data."""
        from kamino.databases.certificate_of_databases import certificate_of

        return certificate_of(self.fitted, self.settings, rows=rows, broken=broken, hashes=hashes)


def is_database(schema: object) -> bool:
    """Whether a schema, its text or its file is that of several tables."""
    if isinstance(schema, Database):
        return True
    if isinstance(schema, os.PathLike):
        path = Path(schema)
        return path.is_file() and path.suffix.lower() in (".yaml", ".yml") and is_database_text(_text(path))
    return isinstance(schema, str) and is_database_text(schema)


def _text(path: Path) -> str:
    return read_text(path, what="schema file")


def _database(schema: Database | str | os.PathLike[str]) -> Database:
    if isinstance(schema, Database):
        return schema
    if isinstance(schema, os.PathLike):
        return read_database(_text(Path(schema)), source=str(schema))
    return read_database(schema)


def _rules(rules: DatabaseRules | str | os.PathLike[str] | None, database: Database) -> DatabaseRules:
    if rules is None:
        return DatabaseRules()
    if isinstance(rules, DatabaseRules):
        return rules
    if isinstance(rules, os.PathLike):
        return parse_rules(read_text(Path(rules), what="constraint file"), database, source=str(rules))
    return parse_rules(rules, database)


def _open(tables: object, database: Database) -> TableSet:
    from kamino.databases.table_sets import table_set

    source = table_set(tables)
    source.check(tuple(database.tables))
    return source


def _check_public(database: Database, public: Mapping[str, pa.Table]) -> None:
    """Refuse public tables without the columns that keys name, and keys that repeat."""
    for name, table in public.items():
        needed = {*database[name].key}
        for other in database.tables.values():
            needed |= {c for key in other.foreign_keys if key.references == name for c in key.to}
        missing = sorted(needed - set(table.column_names))
        if missing:
            raise SchemaError(
                f"tables.{name}: found no column {missing[0]!r} in the public table, expected it for a key"
            )
        key = list(database[name].key)
        if key and table.select(key).group_by(key).aggregate([]).num_rows != table.num_rows:
            raise SchemaError(
                f"tables.{name}: found rows of the public table with one key ({', '.join(key)}), expected all different"
            )


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
