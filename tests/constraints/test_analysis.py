"""What the passes claim, against the definition of a violation."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.constraints.brute_force import violations
from tests.constraints.strategies import constraints, predicates, tables
from tests.trying import examples

from kamino.constraints import ConstraintClass, Constraints, DenialConstraint, FindingKind, analyse, classify
from kamino.constraints.analysis.canonical import same_meaning
from kamino.constraints.analysis.reasoning import can_hold
from kamino.constraints.tree import swapped


def findings(text: str, **options: frozenset[str]) -> list[tuple[str, str, list[str]]]:
    return [
        (f.kind.value, str(Constraints((f.constraint,))), [str(Constraints((other,))) for other in f.by])
        for f in analyse(Constraints.parse(text), **options)
    ]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("check (a > 1)", "unary"),
        ("not (a < b and c is null)", "unary"),
        ("a -> b", "fd"),
        ("not (t1.c != t2.c and t2.b = t1.b and t1.a = t2.a)", "fd"),
        ("key (a, b)", "key"),
        ("not (t1.a < t2.a and t1.b < t2.b)", "order"),
        ("not (t1.s = t2.s and t1.a > t2.a and t1.b <= t2.b)", "order"),
        ("not (t1.a != t2.a)", "general"),
        ("not (t1.a = t2.a and t1.b != t2.b and t1.c != t2.c)", "general"),
        ("not (t1.a = t2.b)", "general"),
        ("not (t1.a = t2.a and t1.b = 3)", "general"),
        ("not (t1.a < t2.a and t1.b < t2.b and t1.c < t2.c)", "general"),
        ("not (t1.a < t2.a and t1.a > t2.a)", "general"),
    ],
)
def test_classes(text: str, shape: str) -> None:
    (constraint,) = Constraints.parse(text)
    assert classify(constraint) is ConstraintClass(shape)
    turned = (
        DenialConstraint(predicates=tuple(swapped(p) for p in constraint.predicates[::-1]))
        if not constraint.is_unary
        else constraint
    )
    assert classify(turned) is ConstraintClass(shape)


@pytest.mark.parametrize(
    "text",
    [
        "not (t1.a = t2.a and t1.a != t2.a)",
        "not (a < 3 and a > 3)",
        "not (a < b and b < c and c <= a)",
        "not (a = 'x' and a = 'y')",
        "not (a is null and a is not null)",
        "not (a is null and a = 3)",
        "not (t1.a < t1.a)",
        "a -> a",
        "not (a = 1 and b = 2 and a >= b)",
        "not (d < date '2020-01-01' and d > timestamp '2020-01-01 00:00:00')",
    ],
)
def test_trivial_is_found(text: str) -> None:
    assert [kind for kind, _, _ in findings(text)] == ["trivial"]


@examples(300)
@given(tables(max_rows=6), st.lists(predicates(), min_size=2, max_size=6))
def test_trivial_constraints_are_never_violated(table: object, found: list[object]) -> None:
    from kamino.constraints.language.parser import speak_of_t1

    constraint = DenialConstraint(predicates=speak_of_t1(tuple(found)))  # type: ignore[arg-type]
    if not can_hold(constraint.predicates):
        assert violations(constraint, table.to_pylist()) == []  # type: ignore[attr-defined]


def test_contradictions_name_the_smallest_set() -> None:
    text = "check (a >= 17)\ncheck (b > 0)\ncheck (a < 10)\ncheck (a is not null)"
    assert findings(text) == [
        ("contradictory", "check (a is not null)", ["check (a >= 17)", "check (a < 10)"]),
    ]
    assert findings("check (a is null)\ncheck (a is not null)") == [
        ("contradictory", "check (a is not null)", ["check (a is null)"]),
    ]
    assert findings("check (a >= 17)\ncheck (a < 10)") == []  # a null age satisfies both
    assert findings("check (a >= 17)\ncheck (a < 10)", not_null=frozenset({"a"})) == [
        ("contradictory", "check (a < 10)", ["check (a >= 17)"]),
    ]


@examples(200)
@given(tables(max_rows=4), st.lists(constraints(max_predicates=2), min_size=1, max_size=5))
def test_contradictory_sets_allow_no_row(table: object, found: list[DenialConstraint]) -> None:
    rows = table.to_pylist()  # type: ignore[attr-defined]
    for finding in analyse(found):
        if finding.kind is FindingKind.CONTRADICTORY and rows:
            assert any(violations(c, rows) for c in (finding.constraint, *finding.by))


def test_duplicates_in_other_words() -> None:
    text = "a -> b\nnot (t2.b != t1.b and t2.a = t1.a)\nsoft: a -> b\nnot (t1.a < t2.a)\nnot (t1.a > t2.a)"
    assert findings(text) == [
        ("duplicate", "not (t2.b != t1.b and t2.a = t1.a)", ["a -> b"]),
        ("duplicate", "soft: a -> b", ["a -> b"]),
        ("duplicate", "not (t1.a > t2.a)", ["not (t1.a < t2.a)"]),
    ]


@examples(200)
@given(tables(), constraints(max_predicates=3), st.randoms(use_true_random=False))
def test_duplicates_have_equal_counts(table: object, constraint: DenialConstraint, random: object) -> None:
    other = list(constraint.predicates)
    random.shuffle(other)  # type: ignore[attr-defined]
    if not constraint.is_unary:
        other = [swapped(p) for p in other]
    rewritten = DenialConstraint(predicates=tuple(other))
    assert same_meaning(constraint, rewritten)
    rows = table.to_pylist()  # type: ignore[attr-defined]
    assert violations(constraint, rows) == violations(rewritten, rows)


def test_implied_by_closure_only_through_attributes_without_nulls() -> None:
    text = "a -> b\nb -> c\na -> c"
    assert findings(text) == []
    assert findings(text, not_null=frozenset({"b"})) == [("implied", "a -> c", ["a -> b", "b -> c"])]
    assert findings(text + "\ncheck (b is not null)") == [
        ("implied", "a -> c", ["a -> b", "b -> c", "check (b is not null)"])
    ]


def test_implied_by_a_stronger_constraint() -> None:
    text = "key (a)\nkey (a, b)\na -> c\nsoft: a, b -> c\ncheck (x > 5)\ncheck (x > 3)"
    assert findings(text) == [
        ("implied", "key (a, b)", ["key (a)"]),
        ("implied", "a -> c", ["key (a)"]),
        ("implied", "soft: a, b -> c", ["key (a)"]),
        ("implied", "check (x > 3)", ["check (x > 5)"]),
    ]
    assert findings("soft: key (a)\na -> c") == []  # a soft constraint promises nothing


@examples(400)
@given(tables(max_rows=6), st.lists(constraints(max_predicates=3), min_size=2, max_size=5))
def test_implied_constraints_add_nothing(table: object, found: list[DenialConstraint]) -> None:
    rows = table.to_pylist()  # type: ignore[attr-defined]
    for finding in analyse(found):
        if finding.kind is FindingKind.IMPLIED and not any(violations(c, rows) for c in finding.by):
            assert violations(finding.constraint, rows) == []


@examples(300)
@given(st.lists(constraints(max_predicates=2), min_size=2, max_size=6))
def test_implied_never_drops_both(found: list[DenialConstraint]) -> None:
    # The passes go from the last constraint to the first: what was dropped before may not justify a later drop.
    implied = [f for f in analyse(found) if f.kind is FindingKind.IMPLIED]
    for position, finding in enumerate(implied):
        dropped_before = [later.constraint for later in implied[position + 1 :]]
        assert not any(other is dropped for other in finding.by for dropped in dropped_before)


def test_analysis_reads_no_table() -> None:
    assert set(inspect.signature(analyse).parameters) == {"constraints", "not_null"}
