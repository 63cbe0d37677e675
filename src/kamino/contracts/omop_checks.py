"""Thresholds of OMOP's DataQualityDashboard: its files of fields and of concepts, as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from datetime import date, timedelta

from kamino.advice import named
from kamino.constraints.language.expressions import And
from kamino.constraints.terms.canonical_terms import compared
from kamino.constraints.tree import Column, Comparison, Constant, Operator
from kamino.constraints.types import ValueType
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.rule_forms import holds, in_values, not_null, unique
from kamino.errors import ConstraintError
from kamino.limits import read_number

_TODAY = re.compile(r"^DATEADD\(\s*dd\s*,\s*(-?\d+)\s*,\s*GETDATE\(\)\s*\)$", re.IGNORECASE)
_YEAR = re.compile(r"^YEAR\(GETDATE\(\)\)\s*(?:\+\s*(\d+))?$", re.IGNORECASE)


def contract_from_omop(text: str, *, source: str = "<omop>", today: date | None = None) -> Contract:
    """Read a file of fields or concepts; a threshold above zero makes a rule soft.

    Guarantees:
        A check that is not carried over is listed with its line.  [test_omop_thresholds_are_read]
    """
    draft = Draft(source)
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        facts = {str(key): (value or "").strip() for key, value in row.items() if key}
        table = facts.get("cdmTableName") or "data"
        name = facts.get("cdmFieldName") or ""
        _field(draft, table, name, facts, line, today)
    return draft.contract()


def _is_yes(facts: Mapping[str, str], key: str) -> bool:
    return facts.get(key, "").lower() == "yes"


def _field(draft: Draft, table: str, name: str, facts: Mapping[str, str], line: int, today: date | None) -> None:
    column = Column(name)
    draft.column(table, name, _type(facts.get("cdmDatatype", "")))

    def soft(key: str) -> bool:
        threshold = facts.get(f"{key}Threshold", "")
        return bool(threshold) and threshold not in ("0", "0.0")

    if _is_yes(facts, "isRequired"):
        draft.add(table, lambda: not_null(column), f"{name} isRequired", line, soft=soft("isRequired"))
    if _is_yes(facts, "isPrimaryKey"):
        draft.add(table, lambda: unique([column]), f"{name} isPrimaryKey", line, soft=soft("isPrimaryKey"))
    if _is_yes(facts, "isForeignKey"):
        there, to = facts.get("fkTableName", ""), facts.get("fkFieldName", "")
        draft.refer(table, [name], there, [to], f"{name} isForeignKey {there}.{to}", line)
    concept = facts.get("conceptId", "")
    for key, op in (("plausibleValueLow", Operator.GE), ("plausibleValueHigh", Operator.LE)):
        value = facts.get(key, "")
        if value:
            _bound(draft, table, name, value, op, concept, facts, line, soft(key), today, key)
    if _is_yes(facts, "plausibleTemporalAfter"):
        _after(draft, table, name, facts, line, soft("plausibleTemporalAfter"))
    units = facts.get("plausibleUnitConceptIds", "")
    if units:
        _units(draft, table, name, concept, units, line, soft("plausibleUnitConceptIds"))
    for key in ("plausibleGender", "isTemporallyConstant", "fkDomain", "fkClass", "isStandardValidConcept",
                "measureValueCompleteness", "plausibleAfterBirth", "plausibleBeforeDeath",
                "plausibleDuringLife", "standardConceptRecordCompleteness", "plausibleStartBeforeEnd"):  # fmt: skip
        if facts.get(key, "") and facts[key].lower() != "no":
            draft.leave(table, f"{name} {key} {facts[key]}", "it reads other tables or the whole column", line)


def _type(named: str) -> ValueType | None:
    lower = named.lower()
    if lower.startswith(("int", "float", "num")):
        return ValueType.NUMBER
    if lower.startswith("datetime"):
        return ValueType.TIMESTAMP
    return ValueType.DATE if lower.startswith("date") else ValueType.TEXT if "char" in lower else None


def _value(text: str, today: date | None) -> Constant:
    plain = text.strip("'")
    moved, year = _TODAY.match(plain), _YEAR.match(plain)
    if moved or year:
        if today is None:
            raise ConstraintError(f"it changes from day to day; say {named('today')} to fix it")
        return Constant(
            today + timedelta(days=int(moved.group(1))) if moved else today.year + int((year and year.group(1)) or 0)
        )
    if re.fullmatch(r"\d{8}", plain) and text.startswith("'"):
        return Constant(date(int(plain[:4]), int(plain[4:6]), int(plain[6:])))
    return Constant(read_number(plain))


def _bound(
    draft: Draft,
    table: str,
    name: str,
    value: str,
    op: Operator,
    concept: str,
    facts: Mapping[str, str],
    line: int,
    soft: bool,
    today: date | None,
    key: str,
) -> None:
    column = Column("VALUE_AS_NUMBER" if concept else name)

    def make() -> tuple[object, ...]:
        where = None
        if concept:
            where = Comparison(Column(name), Operator.EQ, Constant(int(concept)))
            unit = facts.get("unitConceptId", "")
            if unit:
                where = And((where, Comparison(Column("UNIT_CONCEPT_ID"), Operator.EQ, Constant(int(unit)))))  # type: ignore[assignment]
        return holds(compared(column, op, _value(value, today)), where)

    draft.add(table, make, f"{name} {key} {value}", line, soft=soft)  # type: ignore[arg-type]


def _after(draft: Draft, table: str, name: str, facts: Mapping[str, str], line: int, soft: bool) -> None:
    there = facts.get("plausibleTemporalAfterTableName", "")
    other = facts.get("plausibleTemporalAfterFieldName", "")
    text = f"{name} plausibleTemporalAfter {there}.{other}"
    if there.lower() != table.lower():
        draft.leave(table, text, "it reads another table", line)
        return
    known = {each.lower(): each for each in draft.tables.get(table, {})}
    column = Column(known.get(other.lower(), other))
    draft.add(table, lambda: holds(compared(Column(name), Operator.GE, column)), text, line, soft=soft)


def _units(draft: Draft, table: str, name: str, concept: str, units: str, line: int, soft: bool) -> None:
    def make() -> tuple[object, ...]:
        listed = [int(each) for each in units.split(",") if each.strip() not in ("", "-1")]
        where = Comparison(Column(name), Operator.EQ, Constant(int(concept))) if concept else None
        return holds(in_values(Column("UNIT_CONCEPT_ID"), listed), where)

    draft.add(table, make, f"{name} {concept} plausibleUnitConceptIds {units}", line, soft=soft)  # type: ignore[arg-type]
