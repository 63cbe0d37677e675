"""Tables with a hard dependency that was made up first, of many kinds, sizes and budgets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kamino import Synthesizer
from kamino.pipeline.output.learned_maps import expected_right
from kamino.schema import Attribute, Categorical, Integer, Schema

EPSILONS = (0.3, 1.0, 3.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mapped:
    """A table whose last two columns are the right side and one that goes with nothing."""

    table: pa.Table
    schema: Schema
    left: tuple[str, ...]
    epsilon: float


def _listed(size: int) -> Categorical:
    return Categorical(values=list(range(size)))


def _shares(size: int, skew: float) -> np.ndarray:
    falling = (1.0 + np.arange(size)) ** -skew
    return np.asarray(falling / falling.sum())


def made_up(kind: str, seed: int) -> Mapped:
    """A map of one kind: of one column (`single`), of two (`pair`), to numbers (`number`, `pair to number`), through
    a third column (`through`), or a product of two numbers (`product`).
    """
    rng = np.random.default_rng(seed)
    rows, lefts = int(rng.choice([500, 1500, 4000])), int(rng.choice([4, 12, 32, 100, 300]))
    rights, skew = int(rng.choice([2, 4, 10, 30])), float(rng.choice([0.0, 0.7, 1.3]))
    if kind == "product":
        x, b = rng.choice([2, 5, 9, 11], rows), rng.integers(1, 9, rows)
        domains: dict[str, Attribute] = {"x": Integer(min=0, max=12), "b": Integer(min=1, max=8)}
        return _table(domains | {"y": Integer(min=0, max=100)}, {"x": x, "b": b}, x * b, seed)
    if kind in ("pair", "pair to number"):
        many = int(rng.choice([2, 3, 5])) if kind == "pair" else 2
        first = max(2, lefts // many if kind == "pair" else min(50, lefts))
        x, b = rng.choice(first, rows, p=_shares(first, skew)), rng.integers(0, many, rows)
        size = rights if kind == "pair" else 3000
        y = rng.integers(0, size, (first, many))[x, b]
        domains = {"x": _listed(first), "b": _listed(many)}
        right = _listed(size) if kind == "pair" else Integer(min=0, max=size)
        return _table(domains | {"y": right}, {"x": x, "b": b}, y, seed)
    x = rng.choice(lefts, rows, p=_shares(lefts, skew))
    if kind == "number":
        y = rng.integers(0, 2000, lefts)[x]
        return _table({"x": _listed(lefts), "y": Integer(min=0, max=2000)}, {"x": x}, y, seed)
    if kind == "through":
        group = (np.arange(lefts) * 8 // lefts)[x]
        domains = {"x": _listed(lefts), "group": _listed(8), "y": _listed(rights)}
        return _table(domains, {"x": x}, rng.integers(0, rights, 8)[group], seed, beside={"group": group})
    assert kind == "single", kind
    return _table({"x": _listed(lefts), "y": _listed(rights)}, {"x": x}, rng.integers(0, rights, lefts)[x], seed)


def _table(
    domains: dict[str, Attribute],
    left: dict[str, np.ndarray],
    right: np.ndarray,
    seed: int,
    beside: dict[str, np.ndarray] | None = None,
) -> Mapped:
    rng = np.random.default_rng(seed + 1_000_000)
    columns = {**left, **(beside or {}), "y": right, "z": rng.integers(0, 4, len(right))}
    schema = Schema(attributes={**domains, "z": _listed(4)})
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    return Mapped(table=table, schema=schema, left=tuple(left), epsilon=EPSILONS[seed % 3])


def expected_and_true(mapped: Mapped, seed: int) -> tuple[float, float]:
    """What is said of a map that was fitted, and the share of drawn rows whose right side is that of the original."""
    rule = f"{', '.join(mapped.left)} -> y"
    made = Synthesizer(mapped.schema, rule, epsilon=mapped.epsilon, seed=seed).fit(mapped.table)
    expected = expected_right(made.fitted, next(iter(made.fitted.constraints)))
    assert expected is not None, "the dependency is hard"
    drawn = made.sample(mapped.table.num_rows)
    known = dict(zip(_keys(mapped.table, mapped.left), mapped.table["y"].to_pylist(), strict=True))
    pairs = zip(_keys(drawn, mapped.left), drawn["y"].to_pylist(), strict=True)
    # A left side that the original does not have has no right side there.
    return expected, float(np.mean([known[key] == y for key, y in pairs if key in known]))


def _keys(table: pa.Table, left: tuple[str, ...]) -> list[tuple[object, ...]]:
    return list(zip(*(table[name].to_pylist() for name in left), strict=True))
