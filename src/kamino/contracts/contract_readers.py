"""The readers of contracts: each knows its files by name or content, and gives a `Contract`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from kamino.advice import named
from kamino.constraints.collection import Constraints
from kamino.contracts.contract import Contract, ImportedRule
from kamino.errors import ConstraintErrors, InputError, SchemaError
from kamino.schema.files.yaml_text import load_yaml


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What a reader may be told: the dialect of SQL, the day that stands for today, and a name of the table."""

    dialect: str | None = None
    today: date | None = None
    table: str = "data"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file: its path, its text, and what that is as YAML or JSON; a folder has neither."""

    path: Path
    text: str = ""
    document: Any = None


@dataclass(frozen=True, kw_only=True)
class ContractReader:
    """One kind of source: its name, whether a source is one, and what reads it."""

    name: str
    is_one: Callable[[Source], bool]
    read: Callable[[Source, ReadOptions], Contract]


def read_contract(path: str | Path, *, kind: str | None = None, options: ReadOptions | None = None) -> Contract:
    """Read a source of rules by the reader that knows it, or by the one that is named.

    Raises:
        InputError: nothing there, or no reader knows it.
    """
    options = options or ReadOptions()
    source = _open(Path(path))
    readers = [reader for reader in READERS if reader.name == kind] if kind is not None else list(READERS)
    if not readers:
        raise InputError(f"found the kind '{kind}', expected one of {', '.join(r.name for r in READERS)}")
    for reader in readers:
        if kind is not None or reader.is_one(source):
            return reader.read(source, options)
    known = ", ".join(reader.name for reader in READERS)
    raise InputError(f"{path}: found no rules of a kind that is known; say {named('kind')}, one of {known}")


def _open(path: Path) -> Source:
    if path.is_dir():
        return Source(path=path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot be read ({type(problem).__name__})") from None
    document: Any = None
    if path.suffix == ".json":
        try:
            document = json.loads(text)
        except json.JSONDecodeError as problem:
            raise InputError(f"{path}:{problem.lineno}: found no JSON ({problem.msg})") from None
    elif path.suffix in (".yml", ".yaml"):
        try:
            document, _ = load_yaml(text, source=str(path))
        except SchemaError:
            document = None
    return Source(path=path, text=text, document=document)


def _mapping(source: Source) -> Mapping[str, Any]:
    return source.document if isinstance(source.document, Mapping) else {}


def _is_dbt(source: Source) -> bool:
    if source.path.is_dir():
        return (source.path / "dbt_project.yml").exists() or any(source.path.rglob("*.yml"))
    found = _mapping(source)
    if "nodes" in found and "metadata" in found:
        return True
    return any(isinstance(found.get(key), list) for key in ("models", "sources", "seeds", "snapshots"))


def _dbt(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.from_dbt import contract_from_dbt

    return contract_from_dbt(source.path, dialect=options.dialect, today=options.today)


def _sql(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.from_sql import contract_from_sql

    return contract_from_sql(source.text, source=str(source.path), dialect=options.dialect, today=options.today)


def _r(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.from_r import contract_from_r

    return contract_from_r(source.text, source=str(source.path), table=options.table)


def _expectations(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.from_expectations import contract_from_expectations

    return contract_from_expectations(source.document, source=str(source.path))


def _soda(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.from_soda import contract_from_soda

    return contract_from_soda(source.document, source=str(source.path), today=options.today)


def _odcs(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.from_odcs import contract_from_odcs

    return contract_from_odcs(source.document, source=str(source.path), today=options.today)


def _pandera(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.pandera_checks import contract_from_pandera

    return contract_from_pandera(_mapping(source), source=str(source.path), table=options.table)


def _python(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.python_sources import contract_from_python

    return contract_from_python(source.text, source=str(source.path), table=options.table)


def _sdv(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.sdv_constraints import contract_from_sdv_constraints

    return contract_from_sdv_constraints(source.document, source=str(source.path), table=options.table)


def _table_schema(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.from_table_schema import contract_from_table_schema

    return contract_from_table_schema(source.document, source=str(source.path), table=options.table)


def _omop(source: Source, options: ReadOptions) -> Contract:
    from kamino.contracts.omop_checks import contract_from_omop

    return contract_from_omop(source.text, source=str(source.path), today=options.today)


def _own(source: Source, options: ReadOptions) -> Contract:
    """This language, and HoloClean's, line by line: a line that cannot be read is listed."""
    from kamino.contracts.contract import Draft

    draft = Draft(str(source.path))
    for number, line in enumerate(source.text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            found = Constraints.parse(line, source=str(source.path))
        except ConstraintErrors as problem:
            draft.leave(options.table, line, problem.errors[0].message, number)
            continue
        statements = (*found.derivations, *found.items, *found.group_rules)
        place = statements[0].place if statements else None
        if place is not None:
            draft.rules.append(
                ImportedRule(table=options.table, statements=statements, text=line.strip(), place=_at(place, number))
            )
    return draft.contract()


def _at(place: Any, line: int) -> Any:
    from dataclasses import replace

    return replace(place, line=line)


READERS: tuple[ContractReader, ...] = (
    ContractReader(name="dbt", is_one=_is_dbt, read=_dbt),
    ContractReader(name="sql", is_one=lambda s: s.path.suffix == ".sql", read=_sql),
    ContractReader(
        name="great-expectations",
        is_one=lambda s: isinstance(_mapping(s).get("expectations"), list),
        read=_expectations,
    ),
    ContractReader(
        name="soda", is_one=lambda s: any(str(key).startswith("checks for") for key in _mapping(s)), read=_soda
    ),
    ContractReader(
        name="odcs",
        is_one=lambda s: _mapping(s).get("kind") == "DataContract" or "dataContractSpecification" in _mapping(s),
        read=_odcs,
    ),
    ContractReader(name="pandera", is_one=lambda s: _mapping(s).get("schema_type") == "dataframe", read=_pandera),
    ContractReader(
        name="sdv", is_one=lambda s: isinstance(_mapping(s).get("constraints"), list) or _is_sdv_list(s), read=_sdv
    ),
    ContractReader(
        name="r-validate",
        is_one=lambda s: s.path.suffix.lower() == ".r" or isinstance(_mapping(s).get("rules"), list),
        read=_r,
    ),
    ContractReader(
        name="table-schema",
        is_one=lambda s: any(key in _mapping(s) for key in ("fields", "resources", "properties", "$schema")),
        read=_table_schema,
    ),
    ContractReader(name="python", is_one=lambda s: s.path.suffix == ".py", read=_python),
    ContractReader(
        name="omop",
        is_one=lambda s: s.path.suffix == ".csv" and re.search(r"^\W?cdmTableName", s.text) is not None,
        read=_omop,
    ),
    ContractReader(name="kamino", is_one=lambda s: s.path.suffix in (".dc", ".txt"), read=_own),
)


def _is_sdv_list(source: Source) -> bool:
    found = source.document
    return isinstance(found, list) and any(isinstance(each, Mapping) and "constraint_class" in each for each in found)
