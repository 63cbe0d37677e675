"""Random small schemas and sets of constraints over them: dependencies, keys, orders, checks, general ones, mixes."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from kamino.constraints import Constraints
from kamino.schema import Boolean, Categorical, Codec, Integer, Real, Schema

NAMES = ("a", "b", "c", "d", "e")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def codecs(draw: st.DrawFn) -> Codec:
    """Two to five attributes with up to four values each; most are integers, so that they can be compared."""
    attributes = {}
    for name in NAMES[: draw(st.integers(2, 5))]:
        nullable = draw(st.sampled_from([False, False, True]))
        kind = draw(st.sampled_from(["integer", "integer", "integer", "listed", "real", "boolean"]))
        size = draw(st.integers(1, 4))
        if kind == "listed":
            attributes[name] = Categorical(values=[3, 0, 2, 1][:size], nullable=nullable)
        elif kind == "real":
            attributes[name] = Real(
                min=Decimal("0.9"), max=Decimal("0.9") + Decimal("0.1") * (size - 1), decimals=1, nullable=nullable
            )
        elif kind == "boolean":
            attributes[name] = Boolean(nullable=nullable)
        else:
            attributes[name] = Integer(min=0, max=size - 1, nullable=nullable)
    return Codec(Schema(attributes=attributes))


def _comparable(codec: Codec) -> list[str]:
    return [name for name in codec.attributes if not isinstance(codec.schema[name], Boolean)]


@st.composite
def lines(draw: st.DrawFn, codec: Codec) -> str:
    """One constraint in the language."""
    names = list(codec.attributes)
    numbers = _comparable(codec)
    kinds = ["fd", "fd", "fd", "key", "check", "null"] + (
        ["order", "order", "general", "general"] if len(numbers) > 1 else []
    )
    kind = draw(st.sampled_from(kinds))
    if kind == "fd":
        mixed = draw(st.permutations(names))
        left = mixed[: draw(st.integers(1, min(2, len(names) - 1)))]
        return f"{', '.join(left)} -> {mixed[len(left)]}"
    if kind == "key":
        return f"key ({', '.join(draw(st.permutations(names))[: draw(st.integers(1, 2))])})"
    if kind == "null":
        return f"check ({draw(st.sampled_from(names))} is not null)"
    if kind == "check" and not numbers:
        return f"check ({names[0]} = true)"
    if kind == "check":
        return draw(checks(numbers))
    if kind == "order":
        x, y, *rest = draw(st.permutations(numbers))
        group = f"t1.{rest[0]} = t2.{rest[0]} and " if rest and draw(st.booleans()) else ""
        one, other = (
            draw(st.sampled_from([">", "<", ">", "<", ">=", "<="])),
            draw(st.sampled_from(["<", ">", "<", ">", "<="])),
        )
        return f"not ({group}t1.{x} {one} t2.{x} and t1.{y} {other} t2.{y})"
    return draw(general(numbers))


@st.composite
def checks(draw: st.DrawFn, numbers: list[str]) -> str:
    """A constraint on single rows."""
    name, op = draw(st.sampled_from(numbers)), draw(st.sampled_from(OPERATORS))
    if draw(st.booleans()):
        return f"check ({name} {op} {draw(st.integers(-1, 4))})"
    other = draw(st.sampled_from(numbers))
    return f"not ({name} {op} {draw(st.integers(0, 3))} and {other} {draw(st.sampled_from(OPERATORS))} {name})"


@st.composite
def general(draw: st.DrawFn, numbers: list[str]) -> str:
    """Any comparisons of two rows, of an attribute with itself, with another, or with a constant."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        name, op = draw(st.sampled_from(numbers)), draw(st.sampled_from(OPERATORS))
        other = draw(st.sampled_from([name, name, draw(st.sampled_from(numbers))]))
        parts.append(f"t1.{name} {op} t2.{other}")
    if draw(st.booleans()):
        parts.append(
            f"t{draw(st.integers(1, 2))}.{draw(st.sampled_from(numbers))} {draw(st.sampled_from(OPERATORS))} 1"
        )
    return f"not ({' and '.join(parts)})"


@st.composite
def problems(draw: st.DrawFn) -> tuple[Codec, Constraints, int]:
    """A schema, up to five constraints and a number of rows."""
    codec = draw(codecs())
    text = "\n".join(draw(st.lists(lines(codec), min_size=1, max_size=5)))
    return codec, Constraints.parse(text), draw(st.integers(0, 9))
