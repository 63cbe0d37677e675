"""What each reader takes over, and what it lists as left out: nothing is in neither."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from kamino.contracts import Contract, read_contract
from kamino.contracts.contract import print_statement
from kamino.contracts.contract_readers import READERS, ReadOptions
from kamino.errors import InputError


def read(tmp_path: Path, name: str, text: str) -> Contract:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return read_contract(path, options=ReadOptions(today=date(2024, 5, 1)))


def rules(contract: Contract) -> list[str]:
    return [print_statement(each) for rule in contract.rules for each in rule.statements]


SQL = """
-- a dump
CREATE TYPE public.mood AS ENUM ('sad', 'ok');
CREATE DOMAIN public.year AS integer CONSTRAINT y CHECK (((VALUE >= 1901) AND (VALUE <= 2155)));
CREATE TABLE public.t (
  id bigint NOT NULL,
  m public.mood DEFAULT 'sad'::public.mood NOT NULL,
  y public.year,
  name character varying(20),
  hours numeric(6,2) GENERATED ALWAYS AS (round(length / 60.0, 2)) STORED,
  CONSTRAINT c CHECK ((y IS NOT NULL) OR (char_length(name) <= 10))
);
COPY public.t (a, b) FROM stdin;
1\ta;b
\\.
ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX i ON public.t USING btree (lower(name)) WHERE (m = 'ok'::public.mood);
CREATE INDEX k ON t (y);
ALTER TABLE ONLY t ADD CONSTRAINT f FOREIGN KEY (y) REFERENCES public.u(id) ON DELETE CASCADE;
CREATE FUNCTION x() RETURNS int AS $$ begin; return 1; end $$ LANGUAGE sql;
ALTER TABLE t ADD CONSTRAINT j CHECK (jsonb_typeof(z) = 'object');
CREATE TABLE broken (a int CHECK (a >), b int);
"""


def test_sql_files_are_read_whole(tmp_path: Path) -> None:
    found = read(tmp_path, "schema.sql", SQL)
    assert rules(found) == [
        "check (id is not null)",
        "not (m != 'sad' and m != 'ok')",
        "check (m is not null)",
        "check (y >= 1901)",
        "check (y <= 2155)",
        "check (length(name) <= 20)",
        "check (hours > -10000)",
        "check (hours < 10000)",
        "hours := round(length / 60.0, 2)",
        "not (y is null and length(name) > 10)",
        "check (id is not null)",
        "key (id)",
        "not (lower(t1.name) = lower(t2.name) and t1.m = 'ok' and t2.m = 'ok')",
    ]
    (reference,) = found.references
    assert (reference.table, reference.columns, reference.to_table, reference.to_columns) == ("t", ("y",), "u", ("id",))
    assert ["jsonb_typeof" in each.reason or "cannot be read" in each.reason for each in found.left_out] == [True, True]


def test_r_rules_are_read(tmp_path: Path) -> None:
    text = (
        "AGE <- c('young', 'old')\nage %in% AGE\nif (income > 0) job == \"yes\"\n"
        "turnover + other.rev == total.rev  # balance\nfield_length(id, n=5)\nlog(x) > 1\nis.numeric(turnover)\n"
        'exists_one(role == "head", by=household)\nstreet ~ postcode\n'
    )
    found = read(tmp_path, "rules.R", text)
    assert rules(found) == [
        "not (age != 'young' and age != 'old')",
        "not (income > 0 and job != 'yes')",
        'check (turnover + "other.rev" = "total.rev")',
        "check (length(id) = 5)",
        "count per (household) where (role = 'head') = 1",
        "street -> postcode",
    ]
    assert [(each.place.line, each.text) for each in found.left_out] == [(6, "log(x) > 1")]
    yaml = "rules:\n- expr: age >= 0\n  name: V1\n- expr: cor(a, b) > 0\n  name: V2\n"
    again = read(tmp_path, "rules.yaml", yaml)
    assert rules(again) == ["check (age >= 0)"]
    assert [each.place.line for each in again.left_out] == [4]


DBT = """
version: 2
models:
  - name: orders
    tests:
      - dbt_utils.unique_combination_of_columns: {combination_of_columns: [a, b]}
      - dbt_utils.expression_is_true:
          expression: "n_all >= (n_x + n_y)"
          config: {severity: warn, where: "day > '{{ var('start') }}'"}
    columns:
      - name: id
        data_tests: [not_null, unique]
      - name: status
        tests:
          - accepted_values: {values: [a, b]}
          - relationships: {to: ref('x'), field: id}
          - dbt_expectations.expect_column_value_lengths_to_equal: {value: 3}
          - my_macro
"""


def test_dbt_projects_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    for name, text in {
        "dbt_project.yml": "name: p\nvars: {start: 2020-01-01}\n",
        "models/schema.yml": DBT,
        "tests/no_debt.sql": "with o as (select * from {{ ref('orders') }}) select id from o where paid < due",
        "tests/one_city.sql": "select zip from {{ ref('orders') }} group by zip having count(distinct city) > 1",
        "tests/other.sql": "select * from {{ ref('a') }} join {{ ref('b') }} using (id)",
    }.items():
        read_into(folder, name, text)
    found = read_contract(folder)
    assert rules(found) == [
        "key (a, b)",
        "soft: not (day > '2020-01-01' and n_all < n_x + n_y)",
        "check (id is not null)",
        "key (id)",
        "not (status != 'a' and status != 'b')",
        "check (length(status) = 3)",
        "check (paid >= due)",
        "count(city) per (zip) <= 1",
    ]
    assert [each.reason for each in found.left_out] == [
        "the test 'my_macro' is not known here",
        "its query reads several tables",
    ]
    assert [each.to_table for each in found.references] == ["x"]
    manifest = {
        "metadata": {},
        "nodes": {
            "test.p.a": {
                "resource_type": "test",
                "attached_node": "model.p.orders",
                "column_name": "id",
                "test_metadata": {"name": "not_null", "kwargs": {"column_name": "id", "model": "x"}},
                "config": {"severity": "WARN"},
            }
        },
    }
    assert rules(read(tmp_path, "manifest.json", json.dumps(manifest))) == ["soft: check (id is not null)"]


def read_into(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_expectations_are_read(tmp_path: Path) -> None:
    suite = {
        "expectation_suite_name": "people.warning",
        "expectations": [
            {"expectation_type": "expect_column_values_to_be_between",
             "kwargs": {"column": "age", "min_value": 0, "max_value": 120, "strict_min": True}},
            {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id", "mostly": 0.9}},
            {"type": "expect_column_pair_values_A_to_be_greater_than_B", "kwargs": {"column_A": "b", "column_B": "a"}},
            {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "z", "regex": "^\\d{5}$"}},
            {"type": "expect_column_median_to_be_between", "kwargs": {"column": "z", "min_value": 1}},
            {"type": "expect_column_values_to_be_unique",
             "kwargs": {"column": "z", "row_condition": 'col("age") > 3'}},
        ],
    }  # fmt: skip
    found = read(tmp_path, "suite.json", json.dumps(suite))
    assert rules(found) == [
        "check (age > 0)",
        "check (age <= 120)",
        "soft: check (id is not null)",
        "check (b > a)",
        "check (z ~ '^\\d{5}$')",
        "not (t1.z = t2.z and t1.age > 3 and t2.age > 3)",
    ]
    assert found.names == ("people",)
    assert [each.reason for each in found.left_out] == ["it is about the median of a column"]


def test_soda_checks_are_read(tmp_path: Path) -> None:
    text = """
checks for orders:
  - missing_count(id) = 0
  - duplicate_count(id, day) = 0
  - invalid_count(size) = 0:
      valid values: [S, M]
  - row_count > 0
  - freshness(day) < 1d
  - failed rows:
      fail query: select id from orders where total < 0
"""
    found = read(tmp_path, "checks.yml", text)
    assert rules(found) == [
        "check (id is not null)",
        "key (id, day)",
        "not (size != 'S' and size != 'M')",
        "count per () >= 1",
        "check (total >= 0)",
    ]
    assert [each.place.line for each in found.left_out] == [5]


def test_data_contracts_are_read(tmp_path: Path) -> None:
    text = """
apiVersion: v3.0.2
kind: DataContract
schema:
  - name: orders
    properties:
      - {name: id, logicalType: string, primaryKey: true, primaryKeyPosition: 1,
         logicalTypeOptions: {pattern: "^B[0-9]+$", maxLength: 9}}
      - name: total
        logicalType: number
        required: true
        logicalTypeOptions: {minimum: 0}
        quality:
          - {type: library, metric: invalidValues, arguments: {validValues: [1, 2]}, mustBe: 0}
          - {type: text, description: be good}
    quality:
      - {type: sql, query: "SELECT count(*) FROM ${model} WHERE paid > total", mustBe: 0}
"""
    found = read(tmp_path, "contract.yaml", text)
    assert rules(found) == [
        "check (id ~ '^B[0-9]+$')",
        "check (length(id) <= 9)",
        "check (total is not null)",
        "check (total >= 0)",
        "not (total != 1 and total != 2)",
        "check (id is not null)",
        "key (id)",
        "check (paid <= total)",
    ]
    assert [each.reason for each in found.left_out] == ["it is prose"]


def test_table_schemas_are_read(tmp_path: Path) -> None:
    frictionless = {
        "fields": [
            {"name": "a", "type": "integer", "constraints": {"required": True, "minimum": 1}},
            {"name": "m", "type": "string", "format": "email"},
            {"name": "k", "type": "string", "constraints": {"pattern": "[A-Z]+", "enum": ["X", "Y"]}},
        ],
        "primaryKey": ["a", "k"],
        "foreignKeys": [{"fields": "a", "reference": {"resource": "b", "fields": "c"}}],
    }
    found = read(tmp_path, "schema.json", json.dumps(frictionless))
    assert rules(found)[:2] == ["check (a is not null)", "check (a >= 1)"]
    assert rules(found)[3:] == [
        "check (k ~ '^(?:[A-Z]+)$')", "not (k != 'X' and k != 'Y')", "check (a is not null)", "check (k is not null)",
        "key (a, k)",
    ]  # fmt: skip
    assert len(found.references) == 1
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "exclusiveMinimum": 0}, "b": {"type": "object", "properties": {}}},
        "required": ["a"],
        "if": {"properties": {"a": {"const": 1}}},
        "then": {"required": ["b"]},
    }
    other = read(tmp_path, "rows.json", json.dumps(schema))
    assert rules(other) == ["check (a > 0)", "check (a is not null)", "not (a = 1 and b is null)"]
    assert [each.reason for each in other.left_out] == ["schemas within schemas are not followed"]


PYTHON = """
import pandera as pa
from sdv.cag import Inequality
class M(pa.DataFrameModel):
    year: int = pa.Field(gt=2000, le=2030)
    name: str = pa.Field(str_matches="^[a-z]+$", nullable=True, unique=True)
    @pa.dataframe_check
    def total(cls, df):
        return df["a"] + df["b"] <= df["c"]
schema = pa.DataFrameSchema({"x": pa.Column(int, [pa.Check.isin([1, 2]), pa.Check(lambda s: complicated(s))])})
rule = Inequality(low_column_name="start", high_column_name="end", strict_boundaries=True)
"""


def test_python_sources_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, "rules.py", PYTHON)
    assert sorted(rules(found)) == sorted(
        [
            "check (year is not null)",
            "check (year > 2000)",
            "check (year <= 2030)",
            "key (name)",
            "check (name ~ '^(?:^[a-z]+$)')",
            "check (a + b <= c)",
            "check (x is not null)",
            "not (x != 1 and x != 2)",
            "check (start < end)",
        ]
    )
    assert [each.reason for each in found.left_out] == ["a check that is code"]


def test_pandera_files_are_read(tmp_path: Path) -> None:
    text = """
schema_type: dataframe
columns:
  a: {dtype: int64, nullable: false, checks: {greater_than_or_equal_to: 3}}
  b: {dtype: object, nullable: true, checks: {str_length: {min_value: 1, max_value: 4}, mine: 3}}
unique: [a, b]
"""
    found = read(tmp_path, "pandera.yaml", text)
    assert rules(found) == [
        "check (a is not null)", "check (a >= 3)", "check (length(b) >= 1)", "check (length(b) <= 4)", "key (a, b)",
    ]  # fmt: skip
    assert [each.reason for each in found.left_out] == ["the check 'mine' is not known here"]


def test_sdv_constraints_are_read(tmp_path: Path) -> None:
    listed = [
        {"constraint_class": "ScalarRange", "constraint_parameters": {"column_name": "a", "low_value": 1,
         "high_value": 9, "strict_boundaries": False}},
        {"constraint_class": "OneHotEncoding", "constraint_parameters": {"column_names": ["x", "y"]}},
        {"constraint_class": "FixedCombinations", "constraint_parameters": {"column_names": ["x", "y"]}},
    ]  # fmt: skip
    found = read(tmp_path, "constraints.json", json.dumps(listed))
    assert rules(found) == [
        "check (a >= 1)", "check (a <= 9)", "not (x != 0 and x != 1)", "not (y != 0 and y != 1)", "check (x + y = 1)",
    ]  # fmt: skip
    assert [each.reason for each in found.left_out] == [
        "it keeps the combinations that the table has, which are private"
    ]


def test_omop_thresholds_are_read(tmp_path: Path) -> None:
    text = (
        "cdmTableName,cdmFieldName,isRequired,isRequiredThreshold,plausibleValueHigh,plausibleTemporalAfter,"
        "plausibleTemporalAfterTableName,plausibleTemporalAfterFieldName,plausibleGender\n"
        'VISIT,visit_end,Yes,5,"DATEADD(dd,1,GETDATE())",Yes,VISIT,visit_start,\n'
        "VISIT,concept,No,0,,No,,,Female\n"
    )
    found = read(tmp_path, "fields.csv", text)
    assert rules(found) == [
        "soft: check (visit_end is not null)", "check (visit_end <= date '2024-05-02')",
        "check (visit_end >= visit_start)",
    ]  # fmt: skip
    assert [each.place.line for each in found.left_out] == [3]


def test_nothing_is_lost_in_silence(tmp_path: Path) -> None:
    """Every line of this language comes out again, or is told; and what no reader knows is an error."""
    found = read(tmp_path, "rules.dc", "zip -> city\n# a note\ncheck (a ??? b)\nt1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b)\n")
    assert rules(found) == ["zip -> city", "a -> b"]
    assert [each.place.line for each in found.left_out] == [3]
    assert "rules.dc:3: not carried over: data: check (a ??? b)" in str(found.left_out[0])
    with pytest.raises(InputError, match="say kind, one of dbt, sql"):
        read(tmp_path, "nothing.yaml", "a: 1\n")
    assert len({reader.name for reader in READERS}) == len(READERS)
