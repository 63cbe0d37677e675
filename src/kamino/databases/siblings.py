"""How rows of one owner are alike: what is measured of pairs of them, beyond what their owner explains.

Two rows of one owner, drawn each by itself given the owner, are alike as far as the owner makes them so. What is
measured is by how much pairs of true rows are more alike, in tables of a column of one and a column of the other; a row
that is drawn after another is *tilted* by it, column by column, such that these tables come out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.databases.family_layout import other_name
from kamino.databases.level_model import LevelModel, Tilt
from kamino.engine import MemoryMeasurer
from kamino.model.marginal.network import MarginalModel
from kamino.model.protocol import Candidate, CodeMap
from kamino.privacy import multiplier_for
from kamino.privacy.schedule import divide_by_cells

#: The most bins in which a column is read.
MOST_BINS = 16
#: The part of the budget that finds which tables are worth measuring.
SCORES = 0.1
#: Half the mean of |noise| in standard deviations, of which shrinking leaves about half.
NOISE_LEFT = 0.4 * 0.5
#: Rounds of proportional fitting, the largest step of one, and the least that a cell keeps of what is expected.
ROUNDS, STEP, FLOOR = 12, 1.0, 0.05
#: No chance moves by more than this, in logs: what asks for more is at odds with what else is known of a row.
MOST = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class PairRows:
    """Public pairs of rows of one owner, each drawn by itself, as codes of a level: of one, and of the other.

    `known` are the columns of the owner, and those of the row that are there before it is drawn.
    """

    known: Mapping[str, IntArray]
    own: Mapping[str, IntArray]
    other: Mapping[str, IntArray]


def fit_siblings(
    table: str,
    names: Sequence[str],
    model: MarginalModel,
    rows: PairRows,
    measurer: MemoryMeasurer,
    *,
    mu_squared: float,
    deviation: float,
    rng: np.random.Generator,
) -> dict[str, tuple[Tilt, ...]]:
    """Measure how rows of one owner are alike, and return by what each column of one is tilted.

    `deviation` is that of the counts of a release with noise multiplier 1; `names` are columns in the order in which
    they are drawn.

    Guarantees:
        Nothing is measured that is not paid for by `mu_squared`.  [test_the_budget_of_a_database_is_spent_once]
    """
    maps = {name: _bins(model, name, rows.own[name]) for name in names}
    size = len(next(iter(rows.own.values())))
    expected = {
        (a, b): _table(maps[a], maps[b], rows.other[a], rows.own[b]) / size
        for a, b in combinations_with_replacement(names, 2)
    }
    candidates = {pair: _candidate(table, pair, maps) for pair in expected}
    asked = list(expected)
    if not asked:
        return {}
    total = _total(measurer, candidates[asked[0]], mu_squared * SCORES / 2)
    multiplier = multiplier_for(mu_squared * SCORES / 2)
    distances = measurer.scores(
        [candidates[pair] for pair in asked],
        [expected[pair].ravel() * total for pair in asked],
        noise_multiplier=multiplier,
        against="rows of one owner that are alike by their owner alone",
    )
    left = mu_squared * (1 - SCORES)
    chosen = _worth(asked, distances / 2, expected, total, deviation / math.sqrt(left))
    targets = {}
    shares = [float(each) for each in divide_by_cells([expected[pair].size for pair in chosen])] if chosen else []
    measurer.expect([candidates[pair] for pair in chosen])
    for pair, share in zip(chosen, shares, strict=True):
        multiplier = multiplier_for(left * share)
        noisy = measurer.marginal(candidates[pair].attributes, candidates[pair].binning, noise_multiplier=multiplier)
        counts = np.asarray(noisy, dtype=float).reshape(expected[pair].shape) / total
        targets[pair] = denoised(counts, expected[pair], multiplier * deviation / total, symmetric=pair[0] == pair[1])
    return _tilts(names, model, rows, maps, targets, rng)


def _total(measurer: MemoryMeasurer, candidate: Candidate, mu_squared: float) -> float:
    """The noisy number of pairs."""
    one = {name: CodeMap(size=view.size, bins=1, starts=np.zeros(1, np.int64), labels=np.zeros(1, np.int64))
           for name, view in candidate.binning.items() if isinstance(view, CodeMap)}  # fmt: skip
    first = candidate.attributes[0]
    noisy = measurer.marginal((first,), {first: one[first]}, noise_multiplier=multiplier_for(mu_squared))
    return max(float(noisy[0]), 1.0)


def _candidate(table: str, pair: tuple[str, str], maps: Mapping[str, CodeMap]) -> Candidate:
    first, second = other_name(table, pair[0]), pair[1]
    return Candidate(attributes=(first, second), binning={first: maps[pair[0]], second: maps[pair[1]]})


def _bins(model: MarginalModel, name: str, codes: IntArray) -> CodeMap:
    """How a column is read: as the model reads it, neighbours or rare values joined where it has more bins."""
    own = model.node(name).cells.map
    if own.bins <= MOST_BINS:
        return own
    counts = np.bincount(own(codes), minlength=own.bins).astype(float)
    attribute = model.node(name).attribute
    if attribute.ordered:
        middle = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1.0)
        group = np.minimum((middle * (MOST_BINS - 1)).astype(np.int64), MOST_BINS - 2)
        if attribute.null_code is not None:
            null = int(own(np.array([attribute.null_code]))[0])
            group[null] = MOST_BINS - 1
    else:
        group = np.full(own.bins, MOST_BINS - 1, dtype=np.int64)
        group[np.argsort(-counts, kind="stable")[: MOST_BINS - 1]] = np.arange(MOST_BINS - 1)
    _, dense = np.unique(group, return_inverse=True)
    return own.merged(dense.astype(np.int64))


def _table(first: CodeMap, second: CodeMap, a: IntArray, b: IntArray) -> FloatArray:
    flat = first(a) * second.bins + second(b)
    return np.bincount(flat, minlength=first.bins * second.bins).reshape(first.bins, second.bins).astype(float)


def _worth(
    asked: Sequence[tuple[str, str]],
    errors: FloatArray,
    expected: Mapping[tuple[str, str], FloatArray],
    total: float,
    sigma: float,
) -> list[tuple[str, str]]:
    """The tables that are farther from what is expected than noise would put them, if the chosen share the budget."""
    chosen: list[tuple[str, str]] = []
    gained = 0.0
    for i in np.argsort(-errors, kind="stable"):
        tried = [*chosen, asked[i]]
        shares = divide_by_cells([expected[pair].size for pair in tried])
        by_pair = dict(zip(asked, errors, strict=True))
        gains = [
            max(float(by_pair[pair]) - NOISE_LEFT * expected[pair].size * sigma / math.sqrt(float(share)), 0.0)
            for pair, share in zip(tried, shares, strict=True)
        ]
        if sum(gains) <= gained or gains[-1] <= 0:
            break
        chosen, gained = tried, sum(gains)
    del total
    return chosen


def denoised(noisy: FloatArray, expected: FloatArray, sigma: float, *, symmetric: bool) -> FloatArray:
    """A table as a distribution, where what is measured beyond what is expected is freed of white noise.

    Singular values of the difference are shrunk as is best for white noise of known size (Gavish, Donoho 2017).

    Guarantees:
        Noise alone leaves what is expected; clear differences stay.  [test_noise_alone_tilts_nothing]
    """
    away = noisy - expected
    if symmetric:
        away, sigma = (away + away.T) / 2, sigma / math.sqrt(2)
    rows, columns = sorted(away.shape)
    aspect = rows / columns
    left, values, right = np.linalg.svd(away, full_matrices=False)
    scale = max(sigma * math.sqrt(columns), 1e-300)
    y = values / scale
    inside = np.maximum((y**2 - aspect - 1) ** 2 - 4 * aspect, 0.0)
    shrunk = np.where(y > 1 + math.sqrt(aspect), np.sqrt(inside) / np.maximum(y, 1e-300), 0.0) * scale
    table = np.maximum(expected + (left * shrunk) @ right, FLOOR * expected + 1e-9)
    found: FloatArray = table / table.sum()
    return found


def _tilts(
    names: Sequence[str],
    model: MarginalModel,
    rows: PairRows,
    maps: Mapping[str, CodeMap],
    targets: Mapping[tuple[str, str], FloatArray],
    rng: np.random.Generator,
) -> dict[str, tuple[Tilt, ...]]:
    """Fit tilts, column by column, on public rows: each pair of columns comes out as measured."""
    columns = dict(rows.known)
    size = len(next(iter(rows.own.values())))
    reads = {name: _bins(model, name, codes) for name, codes in rows.known.items()} | dict(maps)
    untilted = {**rows.known, **rows.own}
    found: dict[str, tuple[Tilt, ...]] = {}
    touched = False
    for name in names:
        wanted = {(a, True): t for (a, b), t in targets.items() if b == name}
        wanted |= {(b, True): t.T for (a, b), t in targets.items() if a == name}
        touched |= bool(wanted)
        if touched:
            # What a row says of itself and of its owner stays as it is, whatever the other row moves.
            for before in columns:
                wanted[before, False] = _table(reads[before], maps[name], untilted[before], rows.own[name]) / size
            base = model.conditional(name, columns, size)
            chance = np.exp(base.log_prob)[base.context]
            group = bin_groups(base.cells.map, maps[name])
            read = {key: reads[key[0]]((rows.other if key[1] else columns)[key[0]]) for key in wanted}
            found[name] = _raked(chance, group, reads, read, wanted, name)
        tilted = LevelModel(model, tuple(model.sequence), {name: found.get(name, ())}, rows.other)
        drawn = tilted.conditional(name, columns, size)
        columns[name] = _draw(drawn.log_prob, drawn.context, drawn.cells.map, rng)
    return found


def bin_groups(fine: CodeMap, coarse: CodeMap) -> IntArray:
    """The coarse bin of each fine bin."""
    group = np.zeros(fine.bins, dtype=np.int64)
    group[fine.labels] = coarse(fine.starts)
    return group


def _raked(
    chance: FloatArray,
    group: IntArray,
    reads: Mapping[str, CodeMap],
    read: Mapping[tuple[str, bool], IntArray],
    wanted: Mapping[tuple[str, bool], FloatArray],
    name: str,
) -> tuple[Tilt, ...]:
    """Proportional fitting of one column to its tables with others, of the same row and of another one."""
    from scipy.sparse import csr_matrix

    size, bins = len(chance), reads[name].bins
    joined = np.zeros((len(group), bins))
    joined[np.arange(len(group)), group] = 1.0
    now = chance @ joined
    now /= np.maximum(now.sum(axis=1, keepdims=True), 1e-300)
    logs = {key: np.zeros((reads[key[0]].bins, bins)) for key in wanted}
    ones = {
        key: csr_matrix((np.ones(size), (codes, np.arange(size))), shape=(reads[key[0]].bins, size))
        for key, codes in read.items()
    }
    for _ in range(ROUNDS):
        for key, target in wanted.items():
            seen = (ones[key] @ now) / size
            # A cell of less than a row tells nothing.
            step = np.log((target + 0.5 / size) / (seen + 0.5 / size)).clip(-STEP, STEP)
            step = (logs[key] + step).clip(-MOST, MOST) - logs[key]
            logs[key] += step
            now *= np.exp(step)[read[key]]
            now /= np.maximum(now.sum(axis=1, keepdims=True), 1e-300)
    return tuple(
        Tilt(by=by, of_other=other, reads=reads[by], own=reads[name], logs=logs[by, other].clip(-MOST, MOST))
        for by, other in wanted
    )


def _draw(log_prob: FloatArray, context: IntArray, cells: CodeMap, rng: np.random.Generator) -> IntArray:
    """A code of the bin that is drawn for each row: the first one, for other columns are tilted by bins."""
    from kamino.model.marginal.even_draws import draw_bins

    bins = draw_bins(context, np.exp(log_prob), rng)
    first = np.zeros(cells.bins, dtype=np.int64)
    first[cells.labels[::-1]] = cells.starts[::-1]
    return first[bins]
