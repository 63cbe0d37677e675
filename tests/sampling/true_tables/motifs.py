"""Rules, each with columns that keep it: what true tables are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.sampling.true_tables.making import Codes, Kind, Making, Motif, TrueTable

COMPARED = (Kind.INTEGER, Kind.REAL, Kind.DATE, Kind.DATETIME)


def free_columns(making: Making) -> None:
    for _ in range(making.number(1, 4)):
        making.free(high=making.pick([3, 60, 500, 100_000]))


def wide_column(making: Making) -> None:
    """A column of very many values, that something follows from."""
    wide = making.free(10**6, 8 * 10**13)
    if making.chance(0.7):
        size = making.number(2, 30)
        right = making.add(making.mapped(wide, size=size), size)
        making.rules.append(f"{wide.name} -> {right.name}")


def made_up_key(making: Making) -> None:
    key = making.add(making.rng.permutation(making.rows).astype(np.int64), 10**6, kinds=[Kind.ID])
    making.rules.append(f"key ({key.name})")


def own_key(making: Making) -> None:
    """A column whose values are all different; at times there are no more values than rows."""
    size = making.pick([making.rows, making.rows + 10, 2 * making.rows, 100 * making.rows, 10**12])
    codes = np.unique(making.rng.integers(0, size, 2 * making.rows)) if size > 50 * making.rows else np.arange(size)
    key = making.add(making.rng.permutation(codes)[: making.rows].astype(np.int64), size)
    making.rules.append(f"key ({key.name})")


def composite_key(making: Making) -> None:
    """Two or three columns with hardly more combinations than rows, or many more."""
    first = max(2, making.number(2, 400))
    second = -(-making.rows // first) * making.pick([1, 1, 2, 10])
    sizes = [first, max(2, second), *([making.number(2, 5)] if making.chance(0.3) else [])]
    total = int(np.prod(sizes))
    chosen = making.rng.choice(total, making.rows, replace=False)
    codes = np.stack(np.unravel_index(chosen, sizes)).astype(np.int64)
    parts = [making.add(codes[i], size) for i, size in enumerate(sizes)]
    making.rules.append(f"key ({', '.join(c.name for c in parts)})")
    if making.chance(0.3):
        size = making.number(2, 12)
        right = making.add(making.mapped(parts[0], size=size), size)
        making.rules.append(f"{parts[0].name} -> {right.name}")


def numbered_key(making: Making) -> None:
    """A column that numbers the rows of a group, as lines of an order."""
    group = making.some()
    numbers = np.zeros(making.rows, dtype=np.int64)
    for value in np.unique(group.codes):
        rows = np.flatnonzero(group.codes == value)
        numbers[rows] = making.rng.permutation(len(rows))
    size = int(numbers.max()) + 1
    line = making.add(numbers, max(2, size * making.pick([1, 2])))
    making.rules.append(f"key ({group.name}, {line.name})")


def group_id(making: Making) -> None:
    """An id that repeats, and what its rows share."""
    codes = making.rng.integers(0, max(2, making.rows // making.pick([2, 5, 20])), making.rows)
    key = making.add(codes, 10**6, kinds=[Kind.ID])
    key.repeats = True
    for _ in range(making.number(1, 3)):
        size = making.number(2, 40)
        right = making.add(making.mapped(key, size=size), size)
        making.rules.append(f"{key.name} -> {right.name}")


def dependency(making: Making) -> None:
    """One or two columns that another follows from."""
    left = [making.some() for _ in range(making.pick([1, 1, 1, 2, 3]))]
    left = list({c.name: c for c in left}.values())
    size = making.number(2, making.pick([5, 50, 1_000]))
    right = making.add(making.mapped(*left, size=size), size)
    making.rules.append(f"{', '.join(c.name for c in left)} -> {right.name}")


def two_ways(making: Making) -> None:
    """Two columns of which each follows from the other."""
    left = making.some()
    used, places = np.unique(left.codes, return_inverse=True)
    size = max(2, len(used) + making.pick([0, 0, 3, left.size]))
    right = making.add(making.rng.permutation(size)[: len(used)].astype(np.int64)[places], size)
    making.rules += [f"{left.name} -> {right.name}", f"{right.name} -> {left.name}"]
    if making.chance(0.4):
        last = making.add(making.rng.permutation(size)[right.codes].astype(np.int64), size)
        making.rules.append(f"{right.name} -> {last.name}")
        making.rules.append(f"{last.name} -> {making.pick([left, right]).name}")


def chain(making: Making) -> None:
    """Each column follows from the one before, and at times the last from the first."""
    columns = [making.some()]
    for _ in range(making.number(2, 4)):
        size = max(2, columns[-1].size // making.number(2, 8))
        columns.append(making.add(making.mapped(columns[-1], size=size), size))
        making.rules.append(f"{columns[-2].name} -> {columns[-1].name}")
    if making.chance(0.4):
        making.rules.append(f"{columns[0].name} -> {columns[-1].name}")


def diamond(making: Making) -> None:
    """Two columns that follow from one, and one that follows from both of them, each alone."""
    top = making.some()
    size = making.number(2, 8)
    bottom = making.mapped(top, size=size)
    sides = []
    for _ in range(2):
        finer = making.number(2, 10)
        sides.append(making.add(bottom * finer + making.mapped(top, size=finer), size * finer))
    last = making.add(bottom, size)
    for side in sides:
        making.rules += [f"{top.name} -> {side.name}", f"{side.name} -> {last.name}"]


def exchange(making: Making) -> None:
    """A cycle of dependencies on two columns: a, b -> c and a, c -> b."""
    first, second = making.some(200), making.free(high=30)
    shifts = making.rng.integers(0, second.size, len(np.unique(first.codes)))
    turned = (second.codes + shifts[making.joint(first)]) % second.size
    last = making.add(turned, second.size)
    making.rules += [f"{first.name}, {second.name} -> {last.name}", f"{first.name}, {last.name} -> {second.name}"]


def parts_of_a_value(making: Making) -> None:
    """Steps of one column: quarters of months, regions of zip codes."""
    fine = making.free(50, 3_000, ordered=making.chance(0.5))
    for _ in range(making.number(1, 3)):
        width = making.pick([3, 4, 7, 10, 12, 100])
        size = -(-fine.size // width)
        part = making.add(fine.codes // width, max(2, size))
        making.rules.append(f"{fine.name} -> {part.name}")


def order(making: Making) -> None:
    """A column that does not fall where another rises, in groups or as a whole."""
    groups = [making.some(60) for _ in range(making.pick([0, 0, 1, 1, 2]))]
    groups = list({c.name: c for c in groups}.values())
    x = making.free(20, making.pick([100, 5_000, 10**6]), ordered=True)
    size = making.number(5, making.pick([50, 5_000, 10**6]))
    codes, falls = making.rising(x, groups, size), making.chance(0.4)
    y = making.add(size - 1 - codes if falls else codes, size, ordered=True)
    same = "".join(f"t1.{c.name} = t2.{c.name} and " for c in groups)
    making.rules.append(f"not ({same}t1.{x.name} < t2.{x.name} and t1.{y.name} {'<' if falls else '>'} t2.{y.name})")
    if making.chance(0.3):
        z = making.add(making.rising(y, groups, size), size, ordered=True)
        making.rules.append(f"not ({same}t1.{y.name} < t2.{y.name} and t1.{z.name} > t2.{z.name})")


def followed_order(making: Making) -> None:
    """A column that follows from another and rises with it, such as a tax from a salary."""
    x = making.free(20, 5_000, ordered=True)
    size = making.number(5, 1_000)
    steps = np.sort(making.rng.integers(0, size, x.size))
    y = making.add(steps[x.codes], size, ordered=True)
    making.rules += [f"{x.name} -> {y.name}", f"not (t1.{x.name} < t2.{x.name} and t1.{y.name} > t2.{y.name})"]


def compared(making: Making) -> None:
    """Columns in order within each row: a start, an end, and what lies between; named in pairs, also the far ones."""
    size = making.number(20, 15_000)
    gaps = making.rng.geometric(making.pick([0.5, 0.05, 20 / (20 + size)]), (making.pick([2, 3, 3, 4]), making.rows))
    codes = np.cumsum(np.vstack([making.skewed(size)[None, :], gaps[1:] - 1]), axis=0).astype(np.int64)
    total = int(codes.max()) + 1
    first = making.add(codes[0], total, kinds=COMPARED)
    columns = [first, *(making.add(each, total, like=first) for each in codes[1:])]
    strict = "<" if bool(np.all(np.diff(codes, axis=0) > 0)) else "<="
    pairs = [(i, j) for i in range(len(columns)) for j in range(i + 1, len(columns))]
    near = [(i, j) for i, j in pairs if j == i + 1]
    chosen = pairs if making.chance(0.5) else near
    making.rng.shuffle(chosen)
    for i, j in chosen:
        making.rules.append(f"check ({columns[i].name} {strict} {columns[j].name})")


def from_one_start(making: Making) -> None:
    """Several columns that come after one."""
    size = making.number(20, 15_000)
    start = making.skewed(size)
    later = [start + making.rng.geometric(making.pick([0.5, 0.05]), making.rows) for _ in range(making.pick([2, 3]))]
    total = int(max(each.max() for each in later)) + 1
    first = making.add(start, total, kinds=COMPARED)
    for each in later:
        column = making.add(each.astype(np.int64), total, like=first)
        making.rules.append(f"check ({first.name} {making.pick(['<', '<='])} {column.name})")


def bounded(making: Making) -> None:
    """A check on single values: bounds, lists."""
    size = making.number(5, 5_000)
    low, high = sorted(making.rng.integers(0, size, 2).tolist())
    column = making.add(making.rng.integers(low, high + 1, making.rows), size)
    if column.kind is Kind.BOOLEAN or making.chance(0.2):
        listed = np.unique(column.codes)[:40]
        column.codes = making.rng.choice(listed, making.rows)
        making.rules.append(f"check ({column.name} in ({', '.join(map(column.literal, listed.tolist()))}))")
        return
    making.rules.append(f"check ({column.name} between {column.literal(low)} and {column.literal(high)})")


def conditional(making: Making) -> None:
    """A check that asks one thing of a column where another has some value."""
    when, size = making.some(60), making.number(5, 1_000)
    value = int(making.pick(when.codes))
    limit = int(making.rng.integers(1, size))
    codes = making.rng.integers(0, size, making.rows)
    column = making.add(
        np.where((when.codes == value) & (codes > limit), codes % (limit + 1), codes), size, ordered=True
    )
    making.rules.append(
        f"check (not ({when.name} = {when.literal(value)} and {column.name} > {column.literal(limit)}))"
    )


def conditional_null(making: Making) -> None:
    """A column that is null unless another has some value, and then is not."""
    when = making.some(60)
    value = int(making.pick(when.codes))
    column = making.free(high=2_000)
    column.null = when.codes != value
    making.asked.add(column.name)
    making.rules.append(f"check ({when.name} = {when.literal(value)} or {column.name} is null)")
    if making.chance(0.5):
        making.rules.append(f"check ({when.name} != {when.literal(value)} or {column.name} is not null)")


def conditional_dependency(making: Making) -> None:
    """A dependency that holds among rows with some value only."""
    when, left, size = making.some(20), making.some(200), making.number(2, 50)
    value = int(making.pick(when.codes))
    codes = np.where(when.codes == value, making.mapped(left, size=size), making.rng.integers(0, size, making.rows))
    right = making.add(codes, size)
    making.rules.append(
        f"not (t1.{left.name} = t2.{left.name} and t1.{when.name} = {when.literal(value)} and "
        f"t2.{when.name} = {when.literal(value)} and t1.{right.name} != t2.{right.name})"
    )


def apart(making: Making) -> None:
    """Two columns that share no value."""
    size = making.number(6, 300)
    owned = making.rng.random(size) < 0.5
    owned[:2] = [True, False]
    first = making.add(making.rng.choice(np.flatnonzero(owned), making.rows), size, kinds=COMPARED)
    other = making.add(making.rng.choice(np.flatnonzero(~owned), making.rows), size, like=first)
    making.rules.append(f"not (t1.{first.name} = t2.{other.name})")


def monotone_by_two(making: Making) -> None:
    """A denial of three orders: who has more of two things does not have less of a third."""
    size = making.number(5, 60)
    a, b = (making.free(5, 60, ordered=True) for _ in range(2))
    c = making.add((a.codes * size // a.size + b.codes * size // b.size) // 2, size, ordered=True)
    making.rules.append(f"not (t1.{a.name} < t2.{a.name} and t1.{b.name} < t2.{b.name} and t1.{c.name} > t2.{c.name})")


def soft(making: Making) -> None:
    """Rules that some rows break."""
    left, size = making.some(200), making.number(2, 40)
    codes: Codes = making.mapped(left, size=size)
    noisy = making.rng.random(making.rows) < making.pick([0.0, 0.01, 0.1])
    right = making.add(np.where(noisy, making.rng.integers(0, size, making.rows), codes), size)
    prefix = making.pick(["soft:", "soft:", "soft:", "weight 2.5:"])
    making.rules.append(f"{prefix} {left.name} -> {right.name}")


def soft_order(making: Making) -> None:
    x = making.free(20, 1_000, ordered=True)
    size = making.number(5, 1_000)
    codes = making.rising(x, [], size)
    noisy = making.rng.random(making.rows) < making.pick([0.01, 0.1])
    y = making.add(np.where(noisy, making.rng.integers(0, size, making.rows), codes), size, ordered=True)
    making.rules.append(f"soft: not (t1.{x.name} < t2.{x.name} and t1.{y.name} > t2.{y.name})")


#: All motifs, the frequent ones more than once.
MOTIFS: Sequence[Motif] = (
    *[free_columns] * 3,
    wide_column,
    made_up_key,
    own_key,
    composite_key,
    numbered_key,
    group_id,
    *[dependency] * 3,
    *[two_ways] * 2,
    chain,
    diamond,
    exchange,
    parts_of_a_value,
    *[order] * 2,
    followed_order,
    *[compared] * 2,
    from_one_start,
    bounded,
    conditional,
    conditional_null,
    conditional_dependency,
    apart,
    monotone_by_two,
    soft,
    soft_order,
)


def found_rules(making: Making) -> None:
    """Rules that nobody made and that happen to hold, as somebody finds who looks at a table."""
    columns = [c for c in making.columns.values() if c.kind is not Kind.ID]
    for _ in range(10):
        size = making.pick([2, 2, 3])
        if len(columns) <= size:
            return
        *left, right = (columns[i] for i in making.rng.permutation(len(columns))[:size])
        names = ", ".join(c.name for c in left)
        if len(np.unique(making.joint(*left))) == len(np.unique(making.joint(*left, right))):
            making.rules.append(f"{names} -> {right.name}")
        if len(np.unique(making.joint(*left))) == making.rows:
            making.rules.append(f"key ({names})")


def true_table(rng: np.random.Generator, *, rows: int, columns: int) -> TrueTable:
    """A table of about so many columns, and its rules."""
    making = Making(rng=rng, rows=rows)
    making.free()
    while len(making.columns) < columns:
        making.pick(MOTIFS)(making)
    if making.chance(0.3):
        found_rules(making)
    return making.done(making.pick([0.0, 0.2, 0.8]))
