"""The fast ways to move the state of a chain agree with the formula."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sampling.fakes import integers

from kamino.model.protocol import Cells, CodeMap, Conditional
from kamino.sampling.codes.choices import make_choices
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.steps.chain.chain_cells import ChainCells, make_cells
from kamino.sampling.steps.chain.chain_filter import Blocks, _Moves, _running_logsumexp

SIZE = 5


def _cells(contexts: int, rng: np.random.Generator, *, without: int) -> ChainCells:
    """Cells of which the last `without` contexts cannot have all."""
    p = rng.dirichlet(np.full(SIZE, 0.5), size=contexts)
    if without:
        p[-without:, :2] = 0.0
    codec = integers(a=SIZE)
    cells = Cells(map=CodeMap.identity(SIZE), width=np.ones(SIZE, np.int64), share=np.ones(SIZE))
    with np.errstate(divide="ignore"):
        log = np.log(p)
    conditional = Conditional(attribute="a", context=np.arange(contexts), log_prob=log, cells=cells)
    made = make_cells(make_choices(conditional, Judge(codec), (), {}), codec["a"], falling=False, max_cells=SIZE)
    # Choices have a floor, so that what a model thinks impossible can be drawn; here it stays impossible.
    return ChainCells(choices=made.choices, run=made.run, cell_of=made.cell_of, probability=p)


def _formula(p: np.ndarray, rows: np.ndarray, before: np.ndarray, *, ties_equal: bool) -> np.ndarray:
    """Weights of the cells after a block, by summing over the states before."""
    after = np.zeros(SIZE)
    for state, weight in enumerate(before):
        m = max(state - 1, 0)
        for u in range(m, SIZE):
            within = np.prod([p[row, m : u + 1].sum() for row in rows])
            below = np.prod([p[row, m:u].sum() for row in rows]) if state == 0 or u > m else 0.0
            after[u] += weight * (np.prod(p[rows, u]) if ties_equal else within - below)
    return after


@pytest.mark.parametrize("ties_equal", [False, True])
@pytest.mark.parametrize("without", [0, 4])
@pytest.mark.parametrize("num_rows", [1, 2, 3, 8, 12])
def test_moves_agree(num_rows: int, without: int, ties_equal: bool) -> None:
    """Blocks of one row, of few and of many; with cells that are impossible, and without."""
    rng = np.random.default_rng(num_rows)
    num_blocks, contexts = 6, 9
    cells = _cells(contexts, rng, without=without)
    context = rng.integers(0, contexts, num_blocks * num_rows)
    block = rng.permutation(np.repeat(np.arange(num_blocks), num_rows))
    moves = _Moves(cells, Blocks(block=block, context=context, chain=np.arange(num_blocks)), ties_equal=ties_equal)
    before = rng.dirichlet(np.ones(SIZE + 1), size=num_blocks)
    before[0, 1:] = 0.0
    with np.errstate(divide="ignore"):
        log_before = np.log(before)
    forward = np.exp(moves.advance(np.arange(num_blocks), log_before))
    for each in range(num_blocks):
        wanted = _formula(cells.probability, context[block == each], before[each], ties_equal=ties_equal)
        assert forward[each, 1:] == pytest.approx(wanted, rel=1e-9, abs=1e-15)
        for u in range(SIZE):
            # What moves to u from all states, one column of the matrix, adds up to the same.
            column = np.exp(moves.into(np.array([each]), np.array([u + 1]))[0])
            assert before[each] @ column == pytest.approx(wanted[u], rel=1e-9, abs=1e-15)


def test_an_unlikely_way_is_kept() -> None:
    """Thirty rows are all but sure to be high, and the last must be low: the only way has weight 1e-480."""
    rng = np.random.default_rng(0)
    cells = _cells(2, rng, without=0)
    high, low = np.full(SIZE, 1e-16), np.full(SIZE, 0.0)
    high[-1], low[0] = 1.0, 1.0
    cells = ChainCells(choices=cells.choices, run=cells.run, cell_of=cells.cell_of, probability=np.array([high, low]))
    for per_block in (1, 2):
        block = np.append(np.repeat(np.arange(30 // per_block), per_block), 30 // per_block)
        blocks = Blocks(block=block, context=np.append(np.zeros(30, np.int64), 1), chain=np.zeros(block[-1] + 1, int))
        moves = _Moves(cells, blocks, ties_equal=False)
        state = np.full((1, SIZE + 1), -np.inf)
        state[0, 0] = 0.0
        for each in range(block[-1]):
            state = moves.advance(np.array([each]), state)
        assert state[0, 1] == pytest.approx(30 * np.log(1e-16))
        assert moves.advance(np.array([block[-1]]), state)[0, 1] == pytest.approx(30 * np.log(1e-16))


def test_running_sums_are_those_of_logarithms() -> None:
    """Weights that are near each other, that lie far apart, that are missing, and none at all."""
    values = np.random.default_rng(1).normal(0, [[1], [100], [1e4], [1], [1]], size=(5, 40))
    values[3, 1:20] = -np.inf
    values[4] = -np.inf
    values[:2, 0] = -1e3
    expected = np.logaddexp.accumulate(values, axis=1)
    np.testing.assert_allclose(_running_logsumexp(values), expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(_running_logsumexp(values[:1]), expected[:1], rtol=1e-13, atol=1e-13)
