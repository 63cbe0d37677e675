"""The laws of recodings: a class with one test for each law, from which the tests of each kind inherit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from kamino.constraints import Constraints, count_violations, violations_per_row
from kamino.layout.recoding import Recoding
from kamino.layout.rule_types import schema_types
from kamino.layout.table_layout import KINDS, Layout
from kamino.schema import Codec, CodedTable, Schema, check_columns

SEEDS = range(12)


@dataclass(frozen=True, kw_only=True)
class RecodingCase:
    """A recoding of tables of a schema, rules that it keeps and rules that it does not keep.

    `made_up` are the columns whose values are made up, so that they come back as others; `reached` says which rows the
    step can tell at all, where there are others.
    """

    schema: Schema
    recoding: Recoding
    kept: str = ""
    drawn: str = ""
    made_up: tuple[str, ...] = ()
    reached: Callable[[dict[str, Any]], bool] = lambda row: True

    @property
    def layout(self) -> Layout:
        """A layout of this step alone."""
        return Layout(schema=self.schema, recodings=(self.recoding,))

    def rules(self, text: str) -> Constraints:
        """Rules with types."""
        return Constraints.parse(text, types=schema_types(self.schema))

    def table(self, seed: int) -> pa.Table:
        """Rows that people could see, which keep what the step keeps: none, one, or some."""
        return self.keeping(random_table(self.schema, seed))

    def keeping(self, table: pa.Table) -> pa.Table:
        """The rows that break no rule of single rows."""
        unary = [rule for rule in self.rules(self.kept) if rule.is_unary]
        broken = sum((violations_per_row(table, rule) for rule in unary), np.zeros(table.num_rows, dtype=np.int64))
        reached = np.array([self.reached(row) for row in table.to_pylist()], dtype=np.bool_)
        return table.filter(pa.array((broken == 0) & reached, pa.bool_()))


def random_table(schema: Schema, seed: int) -> pa.Table:
    """Rows of any values of a schema, its ends and nulls among them."""
    rng, codec = np.random.default_rng(seed), Codec(schema)
    rows = (0, 1, 40)[seed % 3]
    sizes: Mapping[str, int] = {**codec.sizes, **dict.fromkeys(codec.groups, 5)}
    columns = {name: rng.integers(0, size, rows) for name, size in sizes.items()}
    for name, codes in columns.items():
        codes[rng.random(rows) < 0.2] = sizes[name] - 1
    return codec.decode(CodedTable(columns=columns, num_rows=rows))


def same(one: pa.Table, other: pa.Table, but: tuple[str, ...] = ()) -> bool:
    """Whether two tables have the same columns and, but for some of them, the same values."""
    names = [name for name in one.column_names if name not in but]
    return one.column_names == other.column_names and all(
        one.column(n).to_pylist() == other.column(n).to_pylist() for n in names
    )


class RecodingLaws:
    """One test for each law; a kind of recoding has a subclass with its cases."""

    cases: ClassVar[tuple[RecodingCase, ...]] = ()

    @pytest.mark.parametrize("seed", SEEDS)
    def test_what_comes_back_keeps_what_is_kept(self, seed: int) -> None:
        for case in self.cases:
            step = case.recoding
            back = step.backward(random_table(step.schema(case.schema), seed), np.random.default_rng(seed))
            check_columns(case.schema, back)
            for rule in (*case.rules(case.kept), *step.promised()):
                assert count_violations(back, rule) == 0, rule

    @pytest.mark.parametrize("seed", SEEDS)
    def test_rows_that_keep_it_come_back(self, seed: int) -> None:
        for case in self.cases:
            table = case.table(seed)
            back = case.recoding.backward(case.recoding.forward(table), np.random.default_rng(seed))
            assert same(table, back, case.made_up)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_schema_is_what_forward_gives(self, seed: int) -> None:
        for case in self.cases:
            inner, made = case.recoding.schema(case.schema), case.recoding.forward(case.table(seed))
            assert tuple(made.column_names) == inner.names
            codec = Codec(inner)
            coded = codec.encode(made)
            kept = codec.decode(
                CodedTable(
                    columns={**coded.columns, **{n: np.zeros(made.num_rows, dtype=np.int64) for n in codec.groups}},
                    num_rows=made.num_rows,
                )
            )
            assert same(made, kept, case.made_up)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_parts_are_recoded_one_by_one(self, seed: int) -> None:
        for case in self.cases:
            step, table, rng = case.recoding, case.table(seed), np.random.default_rng(seed)
            cut = table.num_rows // 3
            parts = [table.slice(0, cut), table.slice(cut)]
            forward = [step.forward(part) for part in parts]
            assert same(step.forward(table), pa.concat_tables(forward))
            back = [step.backward(part, rng, first=first) for part, first in zip(forward, (0, cut), strict=True)]
            assert same(step.backward(step.forward(table), rng), pa.concat_tables(back))

    def test_some_columns_are_recoded_alone(self) -> None:
        """What a column follows from is enough for it: tables in parts are read by columns."""
        for case in self.cases:
            step, table = case.recoding, case.table(2)
            for name in step.schema(case.schema).names:
                some = step.forward(table.select(list(case.layout.columns_for([name]))))
                assert some.column(name).to_pylist() == step.forward(table).column(name).to_pylist()

    def test_rules_are_split_as_the_step_says(self) -> None:
        for case in self.cases:
            for rule in case.rules(case.kept):
                assert case.recoding.rule(rule) is None
            for rule in case.rules(case.drawn):
                after = case.recoding.rule(rule)
                assert after is not None
                assert set(after.attributes) <= set(case.recoding.schema(case.schema))

    def test_recodings_are_read_as_they_were_written(self) -> None:
        for case in self.cases:
            written = json.loads(json.dumps(case.recoding.to_json()))
            assert written["kind"] == case.recoding.kind
            assert KINDS[case.recoding.kind].from_json(written, case.schema) == case.recoding

    def test_other_facts_in_json_are_refused(self) -> None:
        for case in self.cases:
            written: dict[str, Any] = {**case.recoding.to_json(), "more": 1}
            with pytest.raises(ValueError, match="layout"):
                KINDS[case.recoding.kind].from_json(written, case.schema)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_codecs_do_what_recodings_do(self, seed: int) -> None:
        """In one go with coding, codecs give the codes of what the step gives, and the values that it brings back."""
        for case in self.cases:
            layout, table = case.layout, case.table(seed)
            inner = Codec(case.recoding.schema(case.schema))
            fast, plain = (
                layout.codec.encode(case.recoding.forward(table) if not case.recoding.by_codec else table),
                None,
            )
            plain = inner.encode(case.recoding.forward(table))
            assert {name: fast[name].tolist() for name in fast.columns} == {
                name: plain[name].tolist() for name in plain.columns
            }
            groups = {name: np.arange(table.num_rows) % 3 for name in inner.groups}
            coded = CodedTable(columns={**plain.columns, **groups}, num_rows=table.num_rows)
            rng = np.random.default_rng(seed)
            slow = case.recoding.backward(inner.decode(coded), rng)
            assert same(layout.decode(coded, rng), slow)
