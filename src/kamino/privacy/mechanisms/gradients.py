"""DP-SGD: sums of clipped gradients over Poisson samples of the rows, each with Gaussian noise.

A step draws a sample in which every row is with probability `sampling_rate`, independently. Each sampled row's gradient
is clipped to norm C and cut, towards 0, to whole numbers of grid steps, so that the sum is exact and a row moves it by
at most C. The noise is a normal number of deviation `noise_multiplier * C`, rounded to the grid. The sum is on the
grid, so the released sum is what rounding the sum plus the unrounded noise would give: a sampled Gaussian mechanism
and free post-processing. What is computed from it (the optimizer's step, the next parameters) is free as well.

The normal numbers are double precision Box-Muller values of 64-bit uniforms, not exact draws as those of counts are:
exact ones take 13 microseconds each, and a run needs a hundred million. Rounded to the grid, they show no low bits, but
how far their probabilities are from the ideal ones is not proved (see docs/privacy.md). The bits are SHAKE-256 of 32
bytes from the operating system (of the seed, in a test).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.ledger import Entry
from kamino.privacy.mechanisms.factored_gradients import BITS, FactoredDescent, State, block_total
from kamino.privacy.mechanisms.opening import draw_coins, sampled_event
from kamino.privacy.mechanisms.poisson import Draws, sample_rows, sample_rows_by_value
from kamino.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate

# Steps that run in one compiled loop.
_CHUNK = 128
_PADDING = 8
# So many blocks are made room for; a sample that needs more, which none does in practice, has another program.
_BLOCKS = 2
_MOST_BITS = 20
Rows = tuple[NDArray[Any], ...]
Samples = Sequence[NDArray[np.int64]]


class Descent(Protocol):
    """What a model tells the mechanism: public functions that jax can trace. Private rows reach `loss` alone."""

    def start(self) -> Any:
        """Return the first state of the optimizer, arrays in any tree."""
        ...

    def parameters(self, state: Any) -> Any:
        """Return the parameters in a state, as one flat float32 vector."""
        ...

    def loss(self, parameters: Any, row: Any) -> Any:
        """Return the loss of one row: a tuple with an item of each of the arrays of rows."""
        ...

    def advance(self, state: Any, gradient: Any) -> Any:
        """Return the next state from the noisy sum of gradients."""
        ...


@dataclass(frozen=True, kw_only=True)
class DescentPlan:
    """The public facts of one descent.

    batch_size: the expected size of a sample; it decides the grid and how far ahead coins are drawn, never privacy.
    factored: whether rows' gradients are given in factors, with a finer grid; see `factored_gradients`.
    """

    what: str
    attributes: tuple[str, ...]
    noise_multiplier: float
    sampling_rate: float
    steps: int
    clip_norm: float
    batch_size: float
    num_parameters: int
    factored: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.clip_norm < math.inf or not 0 < self.batch_size < math.inf:
            raise PrivacyError("a descent needs a positive clip norm and a positive batch size.")
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise PrivacyError(f"a descent has {self.steps!r} steps; expected a whole number, 1 or larger.")

    @property
    def bits(self) -> int:
        """The clip norm is 2^bits steps of the grid. A sum that outgrows 32 bits wraps, which costs no privacy."""
        if self.factored:
            return BITS
        return max(1, min(_MOST_BITS, 28 - math.ceil(math.log2(self.batch_size + 1))))

    @property
    def grid(self) -> float:
        """The step of the grid."""
        return self.clip_norm * math.ldexp(1.0, -self.bits)

    @property
    def block_rows(self) -> int:
        """Rows whose gradients are taken at a time: nearly always all of a sample."""
        usual = self.batch_size + 3.5 * math.sqrt(self.batch_size)
        return math.ceil(usual / _PADDING) * _PADDING


def release_descent(gate: Gate, rows: Rows, descent: Descent | FactoredDescent, plan: DescentPlan) -> Any:
    """Charge all steps, then run them; see `Gate.release_descent`."""
    coins = open_descent(gate, plan)
    if gate.is_live:
        return _whole_descent(gate, rows, descent, plan, coins)
    if plan.factored:
        return _recorded_factored(gate, rows, cast("FactoredDescent", descent), plan, coins)
    return _recorded_descent(gate, rows, cast("Descent", descent), plan, coins)


def _whole_descent(gate: Gate, rows: Rows, descent: Descent | FactoredDescent, plan: DescentPlan, coins: bytes) -> Any:
    """Run all steps in one go; their end is what is handed out, and stored where releases are."""
    entry = _entry(gate, plan, (), kind="descent")
    if plan.factored:
        factored, noisy = cast("FactoredDescent", descent), gate.budget.is_private
        return gate.play(
            entry, truth=lambda: None, answer=lambda _: run_factored(rows, factored, plan, coins, noisy=noisy)
        )
    import jax

    def run() -> tuple[NDArray[Any], ...]:
        state = run_descent(rows, cast("Descent", descent), plan, coins, noisy=gate.budget.is_private)
        return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(state))

    leaves = gate.play(entry, truth=lambda: None, answer=lambda _: run())
    return jax.tree.unflatten(jax.tree.structure(descent.start()), leaves)


def run_factored(
    rows: Rows,
    descent: FactoredDescent,
    plan: DescentPlan,
    coins: bytes,
    *,
    noisy: bool,
    samples: Samples | None = None,
) -> State:
    """Run a descent whose gradients come in factors, that was charged; as `run_descent` does, without a compiler.

    Guarantees:
        It does what single steps do.  [test_a_factored_descent_equals_single_steps]
    """
    draws, state = Draws(coins), descent.start()
    for step in range(plan.steps):
        if samples is None:
            (chosen,) = sample_rows(draws, range(step, step + 1), len(rows[0]), plan.sampling_rate, plan.batch_size)
        else:
            chosen = samples[step]
        noise = _noise(draws, range(step, step + 1), plan, noisy=noisy)[0]
        state = descent.advance(state, (block_total(descent, plan, state, rows, chosen) + noise) * plan.grid)
    return state


def _recorded_factored(gate: Gate, rows: Rows, descent: FactoredDescent, plan: DescentPlan, coins: bytes) -> State:
    """Run it step by step, each through the tape; as `_recorded_descent` does."""
    draws, state = Draws(coins), descent.start()
    entry = _entry(gate, plan, (), kind="gradient step")
    for number, sample in enumerate(sample_rows_by_value(draws, plan.steps, rows, plan.sampling_rate)):
        noise = _noise(draws, range(number, number + 1), plan, noisy=gate.budget.is_private)[0]
        truth: Callable[[], NDArray[np.int64]] = partial(block_total, descent, plan, state, rows, sample)
        released = gate.play(entry, truth=truth, answer=partial(np.add, noise))
        state = descent.advance(state, released * plan.grid)
    return state


def open_descent(gate: Gate, plan: DescentPlan) -> bytes:
    """Charge all steps of a descent and return the coins that all its samples and noise come from."""
    event = sampled_event(
        gate,
        "a descent",
        instead="use the marginal backend",
        noise_multiplier=plan.noise_multiplier,
        sampling_rate=plan.sampling_rate,
    )
    gate.charge(_entry(gate, plan, ((event, plan.steps),), kind="gradients"))
    return draw_coins(gate, plan.what, plan.attributes)


def run_descent(
    rows: Rows, descent: Descent, plan: DescentPlan, coins: bytes, *, noisy: bool, samples: Samples | None = None
) -> Any:
    """Run a descent that was charged: a function of its arguments, so that another process can do it.

    `samples` are the sampled rows of each step, if they were drawn elsewhere with the same coins.

    Guarantees:
        The compiled loop does what single steps do. [test_compiled_loop_equals_single_steps]
    """
    import jax

    draws = Draws(coins)
    arrays, num_rows = _on_device(rows)
    chunk = -(-plan.steps // -(-plan.steps // _CHUNK))
    loop = jax.jit(partial(_loop, descent, plan))
    state = descent.start()
    for first in range(0, plan.steps, chunk):
        steps = range(first, first + chunk)
        if samples is None:
            chosen = sample_rows(draws, steps, num_rows, plan.sampling_rate, plan.batch_size)
        else:
            chosen = [samples[min(step, plan.steps - 1)] for step in steps]
        index, count = _blocks(chosen, plan)
        noise = _noise(draws, steps, plan, noisy=noisy)
        active = np.arange(first, first + chunk) < plan.steps
        state = loop(state, arrays, (index, count, noise, active))
    return state


def clipped_sum(descent: Descent, plan: DescentPlan, parameters: Any, rows: Any, present: Any) -> Any:
    """Return the sum of clipped gradients of some rows, in steps of the grid; rows that are not `present` add 0.

    Guarantees:
        One row moves it by at most the clip norm. [test_one_row_moves_the_sum_by_at_most_the_norm]
        The gradients are those of the loss. [test_gradients_agree_with_finite_differences]
    """
    import jax
    import jax.numpy as jnp

    gradients = jax.vmap(jax.grad(descent.loss), in_axes=(None, 0))(parameters, rows)
    norms = jnp.sqrt(jnp.sum(gradients**2, axis=1, keepdims=True))
    # A sum of P squares in single precision may be too small by P ulps: the target is below C by as much.
    target = plan.clip_norm * (1 - (plan.num_parameters + 16) * 2.0**-24)
    scale = jnp.minimum(1.0, target / jnp.maximum(norms, 1e-30)) / plan.grid
    usable = jnp.isfinite(norms) & present[:, None]
    steps = jnp.trunc(jnp.where(usable, gradients * scale, 0.0)).astype(jnp.int32)
    return jnp.sum(steps, axis=0)


def _sum_of_blocks(descent: Descent, plan: DescentPlan, parameters: Any, rows: Any, blocks: Any) -> Any:
    """Return the sum over a sample, in blocks of one size that one and the same loop takes in turn.

    A compiler may round a row's gradient otherwise in a program for other sizes. So no size follows from the sample:
    whoever else is in it, a row adds the same.

    Guarantees:
        Another row in the sample moves no row's part.  [test_no_row_moves_the_part_of_another]
    """
    import jax
    import jax.numpy as jnp

    index, count = blocks

    def add(block: Any, total: Any) -> Any:
        places = index[block]
        chosen = jax.tree.map(lambda each: each[places], rows)
        return total + clipped_sum(descent, plan, parameters, chosen, places >= 0)

    return jax.lax.fori_loop(0, count, add, jnp.zeros(plan.num_parameters, jnp.int32))


def _loop(descent: Descent, plan: DescentPlan, state: Any, rows: Any, inputs: Any) -> Any:
    """Run a chunk of steps."""
    import jax
    import jax.numpy as jnp

    def step(current: Any, given: Any) -> tuple[Any, None]:
        index, count, noise, active = given
        total = _sum_of_blocks(descent, plan, descent.parameters(current), rows, (index, count))
        following = descent.advance(current, _value(total + noise, plan))
        return jax.tree.map(lambda new, old: jnp.where(active, new, old), following, current), None

    return jax.lax.scan(step, state, inputs)[0]


def _value(steps: Any, plan: DescentPlan) -> Any:
    import jax.numpy as jnp

    return steps.astype(jnp.float32) * plan.grid


def _recorded_descent(gate: Gate, rows: Rows, descent: Descent, plan: DescentPlan, coins: bytes) -> Any:
    """Run a descent step by step, each through the tape, so that it can be recorded and played back.

    The coins of a row follow from its values here, not from its place in the table: on a neighbour, all rows but the
    changed one keep theirs. Which rows a step samples is the one thing that differs from a run without a tape.
    """
    import jax

    draws = Draws(coins)
    arrays, _ = _on_device(rows)
    total_of = jax.jit(partial(_sum_of_blocks, descent, plan))
    advance = jax.jit(lambda current, steps: descent.advance(current, _value(steps, plan)))
    state = descent.start()
    entry = _entry(gate, plan, (), kind="gradient step")
    for number, sample in enumerate(sample_rows_by_value(draws, plan.steps, rows, plan.sampling_rate)):
        blocks = tuple(each[0] for each in _blocks([sample], plan))
        noise = _noise(draws, range(number, number + 1), plan, noisy=gate.budget.is_private)[0]
        truth: Callable[[], NDArray[np.int64]] = partial(_as_int64, total_of, descent.parameters(state), arrays, blocks)
        released = gate.play(entry, truth=truth, answer=partial(np.add, noise.astype(np.int64)))
        state = advance(state, released.astype(np.int32))
    return state


def _as_int64(total_of: Callable[..., Any], *arguments: Any) -> NDArray[np.int64]:
    return np.asarray(total_of(*arguments), dtype=np.int64)


def _entry(gate: Gate, plan: DescentPlan, events: Any, *, kind: str) -> Entry:
    moved = Sensitivity(add_remove=plan.clip_norm).under(gate.budget.neighbours)
    return Entry(
        kind=kind,
        what=plan.what,
        attributes=plan.attributes,
        events=events,
        sigma=plan.noise_multiplier * plan.clip_norm if gate.budget.is_private else 0.0,
        sensitivity=moved,
        grid=plan.grid,
        shape=(plan.num_parameters,),
        parameters=(
            ("steps", float(plan.steps)),
            ("sampling_rate", plan.sampling_rate),
            ("clip_norm", plan.clip_norm),
        ),
    )


def _on_device(rows: Rows) -> tuple[Any, int]:
    """Hand the rows to jax, with one row of zeros at the end that empty places of a sample point to."""
    import jax.numpy as jnp

    num_rows = len(rows[0])
    return tuple(
        jnp.asarray(np.concatenate([each, np.zeros_like(each, shape=(1, *each.shape[1:]))])) for each in rows
    ), num_rows


def _blocks(samples: Samples, plan: DescentPlan) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the places of each sample in blocks of one size, and how many blocks it fills; -1 is no row."""
    width = plan.block_rows
    counts = np.array([math.ceil(len(each) / width) for each in samples], dtype=np.int32)
    index = np.full((len(samples), max(_BLOCKS, counts.max()), width), -1, dtype=np.int32)
    for place, each in enumerate(samples):
        index[place].ravel()[: len(each)] = each
    return index, counts


def _noise(draws: Draws, steps: range, plan: DescentPlan, *, noisy: bool) -> NDArray[np.int32 | np.int64]:
    kind = np.int64 if plan.factored else np.int32
    if not noisy:
        return np.zeros((len(steps), plan.num_parameters), dtype=kind)
    scale = plan.noise_multiplier * math.ldexp(1.0, plan.bits)
    values = [np.rint(draws.normal(step, plan.num_parameters) * scale) for step in steps]
    return np.stack(values).astype(np.int64).astype(kind)
