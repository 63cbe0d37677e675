"""Terms and tests of them in their canonical form: constants folded, plain comparisons plain, tuples on sides.

Guarantees:
    What is made here is printed and read back as the same.  [test_terms_are_printed_and_read_back]
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from kamino.constraints.terms.exact import decimal_digits
from kamino.constraints.terms.term import Apply, Term, refuse_depth
from kamino.constraints.tree import (
    NOWHERE,
    Column,
    Comparison,
    Constant,
    NullTest,
    Operator,
    Place,
    Predicate,
    TermTest,
)
from kamino.errors import ConstraintError

TRUE = Constant(True)
FALSE = Constant(False)
_MOST_CONSTANT = 10**60
_BY_OPERATOR = {
    Operator.EQ: "eq",
    Operator.NE: "ne",
    Operator.LT: "lt",
    Operator.LE: "le",
    Operator.GT: "gt",
    Operator.GE: "ge",
}
_OPERATORS = {name: op for op, name in _BY_OPERATOR.items()}


def applied(function: str, *arguments: Term, place: Place = NOWHERE) -> Term:
    """The function of the terms; a constant where it is arithmetic of constants that ends in a decimal."""
    made = Apply(function, arguments, place)
    refuse_depth(made)
    numbers = [Fraction(a.value) for a in arguments if isinstance(a, Constant) and _is_number(a)]  # type: ignore[arg-type]
    if function in _ARITHMETIC and len(numbers) == len(arguments):
        folded = _folded(function, numbers)
        if folded is not None:
            return Constant(folded, place)
    if function in _FOLDED and all(isinstance(each, Constant) for each in arguments):
        return _computed(made)
    return made


_FOLDED = ("year", "quarter", "month", "day", "number", "date", "lower", "upper", "trim", "start_of", "floor", "ceil")


def _computed(made: Apply) -> Term:
    """The constant that a function of constants is; the function where its value is none that can be written."""
    import pyarrow as pa

    from kamino.constraints.terms.evaluation import evaluate

    try:
        value = evaluate(made, {"row": pa.array([1])})[0].as_py()
    except (AttributeError, TypeError, AssertionError, pa.ArrowException):
        return made  # arguments of other types, which binding tells
    return made if value is None or isinstance(value, float) else Constant(value, made.place)


def _is_number(constant: Constant) -> bool:
    return isinstance(constant.value, int | Decimal) and not isinstance(constant.value, bool)


_ARITHMETIC = ("add", "subtract", "multiply", "divide", "negate")


def _folded(function: str, numbers: list[Fraction]) -> int | Decimal | None:
    match function, numbers:
        case "add", [a, b]:
            found = a + b
        case "subtract", [a, b]:
            found = a - b
        case "multiply", [a, b]:
            found = a * b
        case "divide", [a, b] if b:
            found = a / b
        case "negate", [a]:
            found = -a
        case _:
            return None
    digits = decimal_digits(found.denominator)
    if digits is None or digits > 60 or abs(found) > _MOST_CONSTANT:
        return None
    if found.denominator == 1:
        return int(found)
    scaled = found * 10**digits
    return Decimal(f"{int(scaled)}e-{digits}")


def compared(left: Term, op: Operator, right: Term, place: Place = NOWHERE) -> Predicate:
    """A comparison of two terms: a plain one where that is what it is; else with one tuple on each side.

    Raises:
        ConstraintError: both sides are constants, or a side mixes tuples in another way than by sums.
    """
    if isinstance(left, Column) and not isinstance(right, Apply):
        return Comparison(left, op, right)
    if isinstance(left, Constant) and isinstance(right, Column):
        return Comparison(right, op.mirrored, left)
    if not left.columns and not right.columns:
        raise _error(place, "found a comparison of two constants, expected an attribute on one side")
    if isinstance(left, Constant):
        left, op, right = right, op.mirrored, left
    if any(len({column.tuple for column in side.columns}) > 1 for side in (left, right)):
        return _by_tuples(left, op, right, place)
    return TermTest(left, op, right)


def _by_tuples(left: Term, op: Operator, right: Term, place: Place) -> Predicate:
    """The comparison with the parts of its sums moved so that each side reads one tuple."""
    parts = [*_sum_parts(left, 1), *((part, -sign) for part, sign in _sum_parts(right, 1))]
    tuples = sorted({column.tuple for part, _ in parts for column in part.columns})
    sides: dict[int, list[tuple[Term, int]]] = {number: [] for number in tuples}
    for part, sign in parts:
        found = {column.tuple for column in part.columns} or {tuples[-1]}
        if len(found) > 1 or len(tuples) > 2:
            raise _error(
                place,
                "found tuples mixed in one side of a comparison; expected sums whose parts read one tuple each, such "
                "as t1.a - t2.a > 5",
            )
        sides[found.pop()].append((part, sign))
    first, second = sides[tuples[0]], [(part, -sign) for part, sign in sides[tuples[-1]]]
    return compared(_summed(first), op, _summed(second), place)


def _sum_parts(term: Term, sign: int) -> list[tuple[Term, int]]:
    match term:
        case Apply(function="add" | "subtract" as name, arguments=(a, b)):
            return [*_sum_parts(a, sign), *_sum_parts(b, sign if name == "add" else -sign)]
        case Apply(function="negate", arguments=(a,)):
            return _sum_parts(a, -sign)
        case _:
            return [(term, sign)]


def _summed(parts: list[tuple[Term, int]]) -> Term:
    ordered = sorted(parts, key=lambda each: (isinstance(each[0], Constant), -each[1]))
    (first, sign), *rest = ordered
    found = first if sign > 0 else applied("negate", first)
    for part, sign in rest:
        if isinstance(part, Constant):
            value = part.value if sign > 0 else applied("negate", part).value  # type: ignore[union-attr]
            found = applied("add", found, Constant(value)) if value != 0 else found
        else:
            found = applied("add" if sign > 0 else "subtract", found, part)
    return found


def is_true(term: Term) -> Predicate:
    """The test of a term that is true or false.

    Raises:
        ConstraintError: it reads no column.
    """
    if not term.columns:
        raise ConstraintError("found a test of constants, expected an attribute in it")
    return Comparison(term, Operator.EQ, TRUE) if isinstance(term, Column) else TermTest(term, Operator.EQ, TRUE)


def term_of(predicate: Predicate) -> Term:
    """A predicate as a term that is true, false, or null where it cannot be said."""
    match predicate:
        case NullTest(column=column, negated=negated):
            test = Apply("is_null", (column,))
            return Apply("not", (test,)) if negated else test
        case TermTest(left=left, op=Operator.EQ, right=Constant(value=True)) if isinstance(left, Apply):
            return left
        case TermTest(left=left, op=Operator.NE, right=Constant(value=True)) if isinstance(left, Apply):
            return Apply("not", (left,))
        case Comparison(left=left, op=op, right=right) | TermTest(left=left, op=op, right=right):
            return Apply(_BY_OPERATOR[op], (left, right))


def operator_of(function: str) -> Operator | None:
    """The comparison that a function of terms is; None for others."""
    return _OPERATORS.get(function)


def _error(place: Place, message: str) -> ConstraintError:
    return ConstraintError(message, source=place.source, line=place.line, column=place.column)
