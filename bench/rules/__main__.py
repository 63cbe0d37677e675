"""`python -m bench.rules RULES.jsonl`: how many rules of public sources are expressed and imported, by form and source.

A rule is imported if the reader of its source makes rules of it and nothing of it is left out, and if one table
satisfies them and another breaks them, counted as `kamino check` counts. A rule is expressed if it is imported, or if
whoever collected the rules wrote down how it is said in the language. References to other tables are carried as data
and told apart. Exit code 1 where a share is short of what is wanted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

from bench.rules.records import Record, write_source
from bench.rules.witnesses import shown
from kamino.contracts import read_contract
from kamino.contracts.contract_readers import ReadOptions
from kamino.errors import KaminoError

OUT_OF_SCOPE = ("table_stat", "pipeline_test")
"""Statistics of whole tables and comparisons of pipelines: they do not speak of rows."""
BETWEEN_TABLES = ("foreign_key", "cross_table")
PLAIN = ("not_null", "unique", "type_or_column")
WANTED = {"in scope": (0.97, 0.85), "with content": (0.92, 0.75)}


def judge(record: Record) -> tuple[str, str]:
    """How a rule fared: imported, referred, typed or left out; and why."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_source(record, Path(folder))
        if path is None:
            return "left out", "prose, or code of no source that is read"
        try:
            contract = read_contract(path, options=ReadOptions(today=date(2024, 5, 1)))
        except KaminoError as problem:
            return "left out", str(problem)[:200]
    if contract.left_out:
        return "left out", contract.left_out[0].reason
    if contract.rules:
        rules = contract.constraints()
        declared = {name: kind for table in contract.tables for name, kind in table.columns}
        missing = shown(rules, declared)
        return ("imported", "") if not missing else ("not shown", f"{missing} | {rules}".replace("\n", " ; ")[:300])
    if contract.references:
        return "referred", ""
    return ("typed", "") if contract.tables else ("left out", "nothing was found")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rules", type=Path)
    parser.add_argument("--show", help="list the rules of this form or source that are not imported")
    parser.add_argument("--random-only", action="store_true", help="leave out what was added to the random sample")
    arguments = parser.parse_args()
    records = [json.loads(line) for line in arguments.rules.read_text(encoding="utf-8").splitlines() if line.strip()]
    if arguments.random_only:
        records = [record for record in records if record.get("sample") != "extra"]
    rows = [(record, *judge(record)) for record in records]
    if arguments.show:
        for record, verdict, why in rows:
            if verdict in ("left out", "not shown") and arguments.show in (record["form"], record["type"], "all"):
                print(f"{record['type']} | {record['form']} | {verdict}: {why} | {record['rule'][:300]!r}")
    for key in ("form", "type"):
        _table(key, rows)
    return _summary(rows)


def _counts(rows: list[tuple[Record, str, str]]) -> tuple[int, int, int]:
    imported = [verdict in ("imported", "referred", "typed") for _, verdict, _ in rows]
    expressed = [good or record["expressible"] == "y" for (record, _, _), good in zip(rows, imported, strict=True)]
    return len(rows), sum(expressed), sum(imported)


def _table(key: str, rows: list[tuple[Record, str, str]]) -> None:
    groups: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row[0][key]].append(row)
    print(f"{key:28} {'rules':>6} {'expressed':>10} {'imported':>9} {'not shown':>10}")
    for name, mine in sorted(groups.items(), key=lambda each: -len(each[1])):
        number, expressed, imported = _counts(mine)
        unshown = sum(verdict == "not shown" for _, verdict, _ in mine)
        print(f"{name:28} {number:6} {expressed:10} {imported:9} {unshown:10}")
    print()


def _summary(rows: list[tuple[Record, str, str]]) -> int:
    scope = [row for row in rows if row[0]["form"] not in (*OUT_OF_SCOPE, *BETWEEN_TABLES)]
    content = [row for row in scope if row[0]["form"] not in PLAIN]
    with_references = [row for row in rows if row[0]["form"] not in OUT_OF_SCOPE]
    short = False
    for name, mine in (("in scope", scope), ("with content", content), ("with references", with_references)):
        number, expressed, imported = _counts(mine)
        shares = expressed / max(number, 1), imported / max(number, 1)
        wanted = WANTED.get(name)
        told = f"wanted {wanted[0]:.0%} and {wanted[1]:.0%}" if wanted else "told only"
        print(f"{name:18} {number:5} rules: {shares[0]:6.1%} expressed, {shares[1]:6.1%} imported ({told})")
        short |= wanted is not None and (shares[0] < wanted[0] or shares[1] < wanted[1])
    return int(short)


if __name__ == "__main__":
    sys.exit(main())
