"""Expectations of Great Expectations, which dbt_expectations has as tests of the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kamino.constraints.group_rules import GroupRule, Measure
from kamino.constraints.language.expressions import And, Expression, Not, Or
from kamino.constraints.language.parser import Statement
from kamino.constraints.terms.canonical_terms import applied, compared, is_true
from kamino.constraints.terms.term import Term
from kamino.constraints.tree import Column, Comparison, Constant, DenialConstraint, Operator
from kamino.constraints.types import ValueType
from kamino.contracts.rule_forms import (
    between,
    grouped,
    holds,
    in_values,
    length_between,
    matches,
    not_null,
    null_test,
    unique,
    value_of,
)
from kamino.errors import ConstraintError

Arguments = Mapping[str, Any]
Reader = Callable[["Expectation"], Iterable[Statement]]


class Expectation:
    """One expectation: its arguments, the condition on rows, and how its texts of SQL are read as terms."""

    def __init__(self, arguments: Arguments, where: Expression | None, term: Callable[[Any], Term]) -> None:
        self.arguments, self.where, self._term = arguments, where, term

    @property
    def column(self) -> Term:
        """The column that it is about."""
        return self.named("column", "column_name")

    def named(self, *names: str) -> Term:
        """A column under one of several names of the argument."""
        found = next((self.arguments[name] for name in names if self.arguments.get(name) is not None), None)
        if found is None:
            raise ConstraintError(f"it has no '{names[0]}'")
        return self._term(found)

    def bound(self, name: str) -> Term | None:
        """A bound: a number or a date as it is, a text as SQL where it may be one."""
        found = self.arguments.get(name)
        if isinstance(found, Mapping):
            raise ConstraintError("a bound is a parameter of the run")
        if found is None or not isinstance(found, str):
            return None if found is None else value_of(found)
        return self._term(found) if self.arguments.get("_sql") else value_of(found)

    def values(self, name: str) -> list[Any]:
        """A list of values."""
        found = self.arguments.get(name)
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise ConstraintError(f"its '{name}' is no list")
        return list(found)

    def columns(self, *names: str) -> list[Term]:
        """A list of columns."""
        found = next((self.arguments[name] for name in names if self.arguments.get(name)), None)
        if not isinstance(found, Sequence) or isinstance(found, str) or not found:
            raise ConstraintError(f"it has no '{names[0]}'")
        return [self._term(each) for each in found]

    def flag(self, *names: str) -> bool:
        """Whether one of the arguments is true."""
        return any(self.arguments.get(name) is True for name in names)

    def groups(self) -> tuple[str, ...]:
        """The columns of `group_by`."""
        listed = self.arguments.get("group_by") or ()
        return tuple(str(each) for each in ([listed] if isinstance(listed, str) else listed))


def expectation_statements(name: str, expectation: Expectation) -> tuple[Statement, ...]:
    """What an expectation says of rows.

    Raises:
        ConstraintError: it is not known here, or says nothing of rows.
    """
    reader = _EXPECTATIONS.get(name)
    if reader is None:
        raise ConstraintError(_NOT_OF_ROWS.get(name, f"the expectation '{name}' is not known here"))
    return tuple(reader(expectation))


def expected_columns(name: str, arguments: Arguments) -> list[tuple[str, ValueType | None]] | None:
    """The columns and types that an expectation names; None where it is about values."""
    match name:
        case "expect_column_to_exist":
            return [(str(arguments.get("column") or arguments.get("column_name")), None)]
        case "expect_column_values_to_be_of_type" | "expect_column_values_to_be_in_type_list":
            listed = arguments.get("type_list") or arguments.get("column_type_list")
            listed = listed or [arguments.get("type_") or arguments.get("column_type") or ""]
            column = str(arguments.get("column") or arguments.get("column_name"))
            return [(column, type_of_name([str(each) for each in listed]))]
        case "expect_table_columns_to_match_set" | "expect_table_columns_to_match_ordered_list":
            found = arguments.get("column_set") or arguments.get("column_list") or []
            return [(str(each), None) for each in found]
    return None


def type_of_name(names: Sequence[str]) -> ValueType | None:
    """The type that the names of a type in any language agree on."""
    found = {kind for name in names for word, kind in _TYPE_WORDS if word in name.lower()}
    return found.pop() if len(found) == 1 else None


_TYPE_WORDS = (
    ("char", ValueType.TEXT),
    ("str", ValueType.TEXT),
    ("text", ValueType.TEXT),
    ("int", ValueType.NUMBER),
    ("float", ValueType.NUMBER),
    ("double", ValueType.NUMBER),
    ("numeric", ValueType.NUMBER),
    ("decimal", ValueType.NUMBER),
    ("number", ValueType.NUMBER),
    ("bool", ValueType.BOOLEAN),
    ("timestamp", ValueType.TIMESTAMP),
    ("datetime", ValueType.TIMESTAMP),
)


def _ranged(e: Expectation) -> Iterable[Statement]:
    strictly = e.flag("strictly")
    low, high = e.bound("min_value"), e.bound("max_value")
    test = between(
        e.column, low, high, strict_low=strictly or e.flag("strict_min"), strict_high=strictly or e.flag("strict_max")
    )
    return holds(test, e.where)


def _any_pattern(e: Expectation, name: str, make: Callable[[str], Expression]) -> Expression:
    tests = tuple(make(str(pattern)) for pattern in e.values(name))
    if not tests:
        raise ConstraintError("its list of patterns is empty")
    return And(tests) if str(e.arguments.get("match_on")) == "all" else Or(tests)


def _fold(e: Expectation) -> bool:
    return "i" in str(e.arguments.get("flags") or "")


def _regex(e: Expectation, pattern: str) -> Expression:
    return matches(e.column, pattern, fold=_fold(e))


def _like(e: Expectation, pattern: str) -> Expression:
    return is_true(applied("like", e.column, Constant(pattern)))


def _lengths(e: Expectation) -> Iterable[Statement]:
    exact = e.arguments.get("value")
    low, high = (exact, exact) if exact is not None else (e.arguments.get("min_value"), e.arguments.get("max_value"))
    if not all(each is None or isinstance(each, int) for each in (low, high)):
        raise ConstraintError("its lengths are no whole numbers")
    return holds(length_between(e.column, low, high), e.where)


def _pair(e: Expectation) -> Iterable[Statement]:
    op = Operator.GE if e.flag("or_equal") else Operator.GT
    return holds(compared(e.named("column_A"), op, e.named("column_B")), e.where)


def _pairs_in_set(e: Expectation) -> Iterable[Statement]:
    a, b = e.named("column_A"), e.named("column_B")
    tests = []
    for pair in e.values("value_pairs_set"):
        if not isinstance(pair, Sequence) or len(pair) != 2 or None in pair:
            raise ConstraintError("its pairs are not of two values")
        tests.append(And((compared(a, Operator.EQ, value_of(pair[0])), compared(b, Operator.EQ, value_of(pair[1])))))
    return holds(Or(tuple(dict.fromkeys(tests))), e.where)


def _sum(e: Expectation) -> Iterable[Statement]:
    terms = e.columns("column_list")
    total = e.arguments.get("sum_total")
    if isinstance(total, str) and not e.arguments.get("_sql"):
        raise ConstraintError("its sum is no number")
    wanted = e.named("sum_total") if isinstance(total, str) else value_of(total)
    found = terms[0]
    for each in terms[1:]:
        found = applied("add", found, each)
    if e.groups():
        rule = GroupRule(measure=Measure.SUM, term=applied("subtract", found, wanted), per=e.groups(), low=0, high=0)
        return (rule,)
    return holds(compared(found, Operator.EQ, wanted), e.where)


def _differ_within(e: Expectation) -> Iterable[Statement]:
    terms = e.columns("column_list")
    tests = [compared(one, Operator.NE, other) for place, one in enumerate(terms) for other in terms[place + 1 :]]
    return holds(And(tuple(tests)) if len(tests) > 1 else tests[0], e.where)


def _ordered(e: Expectation, wrong: Operator) -> Iterable[Statement]:
    sort = e.arguments.get("sort_column")
    column = e.column
    if sort is None or not isinstance(column, Column):
        raise ConstraintError("it depends on the order of rows, and a table has none; expected a sort_column")
    if e.flag("strictly") or "strictly" not in e.arguments:
        wrong = Operator.GE if wrong is Operator.GT else Operator.LE
    names = e.groups()
    equal = [Comparison(Column(name), Operator.EQ, Column(name, 2)) for name in names]
    order = e.named("sort_column")
    if not isinstance(order, Column):
        raise ConstraintError("it is sorted by a term")
    if order.name == column.name:
        return (DenialConstraint(predicates=(*equal, Comparison(column, Operator.EQ, Column(column.name, 2)))),)
    first = Comparison(order, Operator.LT, Column(order.name, 2))
    return (DenialConstraint(predicates=(*equal, first, Comparison(column, wrong, Column(column.name, 2)))),)


def _statistic(measure: Measure) -> Reader:
    def read(e: Expectation) -> Iterable[Statement]:
        if e.flag("strictly", "strict_min", "strict_max"):
            raise ConstraintError("a statistic that must lie strictly between bounds")
        low, high = (e.bound(name) for name in ("min_value", "max_value"))
        bounds = [each.value if isinstance(each, Constant) else None for each in (low, high)]
        if any(isinstance(each, str | bool) or hasattr(each, "year") for each in bounds):
            raise ConstraintError("its bounds are no numbers")
        return grouped(measure, e.groups(), low=bounds[0], high=bounds[1], term=e.column, where=e.where)  # type: ignore[arg-type]

    return read


def _rows(e: Expectation) -> Iterable[Statement]:
    exact = e.arguments.get("value")
    low, high = (exact, exact) if exact is not None else (e.arguments.get("min_value"), e.arguments.get("max_value"))
    return grouped(Measure.ROWS, e.groups(), low=low, high=high, where=e.where)


def _casing(e: Expectation) -> Iterable[Statement]:
    column = e.column
    if not isinstance(column, Column):
        raise ConstraintError("it is about a term")
    other = Column(column.name, 2)
    same = compared(applied("lower", column), Operator.EQ, applied("lower", other))
    return (DenialConstraint(predicates=(same, Comparison(column, Operator.NE, other))),)


def _dated(e: Expectation) -> Iterable[Statement]:
    form = str(e.arguments.get("strftime_format") or "")
    return holds(matches(e.column, strftime_pattern(form), whole=True), e.where)


def strftime_pattern(form: str) -> str:
    """A format of dates as a regular expression.

    Raises:
        ConstraintError: it has parts in words.
    """
    import re

    parts = {"Y": r"\d{4}", "m": "(?:0?[1-9]|1[0-2])", "d": "(?:0?[1-9]|[12][0-9]|3[01])", "y": r"\d{2}",
             "H": "(?:[01]?[0-9]|2[0-3])", "M": "[0-5]?[0-9]", "S": "[0-5]?[0-9]", "f": r"\d{1,6}", "%": "%",
             "j": r"\d{1,3}", "z": r"[+-]\d{2}:?\d{2}", "T": r"\d{2}:\d{2}:\d{2}", 
             "F": r"\d{4}-\d{2}-\d{2}"}  # fmt: skip
    made, place = [], 0
    while place < len(form):
        if form[place] == "%" and place + 1 < len(form):
            place += 1
            if form[place] not in parts:
                raise ConstraintError(f"its format has %{form[place]}")
            made.append(parts[form[place]])
        else:
            made.append(re.escape(form[place]))
        place += 1
    return "".join(made)


def _compound(e: Expectation) -> Iterable[Statement]:
    return unique(e.columns("column_list", "columns", "combination_of_columns"), e.where)


_EXPECTATIONS: dict[str, Reader] = {
    "expect_column_values_to_not_be_null": lambda e: not_null(e.column, e.where),
    "expect_column_values_to_be_null": lambda e: holds(null_test(e.column), e.where),
    "expect_column_values_to_be_unique": lambda e: unique([e.column], e.where),
    "expect_column_values_to_be_in_set": lambda e: holds(in_values(e.column, e.values("value_set")), e.where),
    "expect_column_distinct_values_to_be_in_set": lambda e: holds(in_values(e.column, e.values("value_set")), e.where),
    "expect_column_values_to_not_be_in_set": lambda e: holds(Not(in_values(e.column, e.values("value_set"))), e.where),
    "expect_column_values_to_be_between": _ranged,
    "expect_column_values_to_match_regex": lambda e: holds(_regex(e, str(e.arguments.get("regex"))), e.where),
    "expect_column_values_to_not_match_regex": lambda e: holds(Not(_regex(e, str(e.arguments.get("regex")))), e.where),
    "expect_column_values_to_match_regex_list": lambda e: holds(
        _any_pattern(e, "regex_list", lambda pattern: _regex(e, pattern)), e.where
    ),
    "expect_column_values_to_not_match_regex_list": lambda e: holds(
        Not(_any_pattern(e, "regex_list", lambda pattern: _regex(e, pattern))), e.where
    ),
    "expect_column_values_to_match_like_pattern": lambda e: holds(
        _like(e, str(e.arguments.get("like_pattern"))), e.where
    ),
    "expect_column_values_to_not_match_like_pattern": lambda e: holds(
        Not(_like(e, str(e.arguments.get("like_pattern")))), e.where
    ),
    "expect_column_values_to_match_like_pattern_list": lambda e: holds(
        _any_pattern(e, "like_pattern_list", lambda pattern: _like(e, pattern)), e.where
    ),
    "expect_column_values_to_not_match_like_pattern_list": lambda e: holds(
        Not(_any_pattern(e, "like_pattern_list", lambda pattern: _like(e, pattern))), e.where
    ),
    "expect_column_values_to_match_strftime_format": _dated,
    "expect_column_value_lengths_to_be_between": _lengths,
    "expect_column_value_lengths_to_equal": _lengths,
    "expect_column_pair_values_A_to_be_greater_than_B": _pair,
    "expect_column_pair_values_a_to_be_greater_than_b": _pair,
    "expect_column_pair_values_to_be_equal": lambda e: holds(
        compared(e.named("column_A"), Operator.EQ, e.named("column_B")), e.where
    ),
    "expect_column_pair_values_to_be_in_set": _pairs_in_set,
    "expect_multicolumn_sum_to_equal": _sum,
    "expect_compound_columns_to_be_unique": _compound,
    "expect_multicolumn_values_to_be_unique": _compound,
    "expect_select_column_values_to_be_unique_within_record": _differ_within,
    "expect_column_values_to_be_increasing": lambda e: _ordered(e, Operator.GT),
    "expect_column_values_to_be_decreasing": lambda e: _ordered(e, Operator.LT),
    "expect_column_values_to_have_consistent_casing": _casing,
    "expect_column_min_to_be_between": _statistic(Measure.LEAST),
    "expect_column_max_to_be_between": _statistic(Measure.MOST),
    "expect_column_mean_to_be_between": _statistic(Measure.MEAN),
    "expect_column_sum_to_be_between": _statistic(Measure.SUM),
    "expect_column_unique_value_count_to_be_between": _statistic(Measure.DISTINCT),
    "expect_table_row_count_to_be_between": _rows,
    "expect_table_row_count_to_equal": _rows,
}

_NOT_OF_ROWS = {
    "expect_column_most_common_value_to_be_in_set": "it is about the most frequent value of a column",
    "expect_column_median_to_be_between": "it is about the median of a column",
    "expect_column_quantile_values_to_be_between": "it is about quantiles of a column",
    "expect_column_stdev_to_be_between": "it is about the deviation of a column",
}
