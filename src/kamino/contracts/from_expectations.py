"""Suites of Great Expectations, as JSON: of all versions that name an expectation and its arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import sqlglot

from kamino.constraints.language.expressions import Expression
from kamino.constraints.language.sql_expressions import SqlReader
from kamino.constraints.tree import Column
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.gx_expectations import Expectation, expectation_statements, expected_columns
from kamino.errors import ConstraintError
from kamino.limits import cut

_COLUMN = re.compile(r"col\(\s*['\"]([^'\"]+)['\"]\s*\)(?:\.notNull\(\))?")


def contract_from_expectations(document: Any, *, source: str = "<suite>", table: str = "") -> Contract:
    """Read a suite of expectations; `mostly` below 1 makes a rule soft.

    Guarantees:
        An expectation that is not carried over is listed.  [test_expectations_are_read]
    """
    draft = Draft(source)
    suite = document if isinstance(document, Mapping) else {"expectations": document}
    named = table or str(suite.get("expectation_suite_name") or suite.get("name") or "data").split(".")[0]
    for place, (name, arguments) in enumerate(_expectations(suite), start=1):
        _add(draft, named, name, arguments, place)
    return draft.contract()


def _expectations(suite: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for each in suite.get("expectations") or []:
        if isinstance(each, Mapping):
            name = each.get("expectation_type") or each.get("type")
            if name:
                yield str(name), each.get("kwargs") or {}
            elif len(each) == 1:
                ((key, value),) = each.items()
                yield str(key), value if isinstance(value, Mapping) else {}


def _add(draft: Draft, table: str, name: str, arguments: Mapping[str, Any], line: int) -> None:
    text = cut(f"{name} {json.dumps(dict(arguments), default=str)}")
    columns = expected_columns(name, arguments)
    if columns is not None:
        for column, kind in columns:
            draft.column(table, column, kind)
        return
    mostly = arguments.get("mostly")
    share = mostly if isinstance(mostly, int | float) and not isinstance(mostly, bool) else 1.0
    note = f"in at least {share:.6g} of the rows there" if share < 1 else ""

    def make() -> Any:
        where = condition_of(arguments.get("row_condition"))
        return expectation_statements(name, Expectation(arguments, where, lambda value: Column(str(value))))

    draft.add(table, make, text, line, soft=share < 1, note=note)


def condition_of(text: object) -> Expression | None:
    """A condition on rows, as pandas, Spark or SQL write it."""
    if not text:
        return None
    plain = _COLUMN.sub(
        lambda found: f'"{found.group(1)}"' + (" IS NOT NULL" if "notNull" in found.group() else ""), str(text)
    )
    plain = plain.replace("==", "=").replace("&&", " AND ").replace("&", " AND ")
    plain = plain if re.search(r"[\"][^\"]*[\"]\s*(=|!=|<|>|IS)", plain) else plain.replace('"', "'")
    try:
        return SqlReader().expression(sqlglot.parse_one(plain))
    except sqlglot.errors.SqlglotError:
        raise ConstraintError(f"its row_condition cannot be read: {cut(str(text))}") from None
