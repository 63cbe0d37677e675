"""Faults in single mechanisms: what is drawn, where it is cut, and how far a row is said to move it."""

from __future__ import annotations

from functools import partial

from kamino.audit import subjects
from kamino.audit.auditing import MECHANISMS, NOISE, PRICE, STRANGERS
from kamino.audit.probes.drawn_samples import SAMPLES
from kamino.audit.probes.farthest_moves import MOVES
from kamino.audit.probes.kept_rows import UNITS
from kamino.audit.probes.released_noise import RELEASED
from kamino.planted.fault import Fault, edited
from kamino.privacy import Sensitivity, gate, unit
from kamino.privacy.mechanisms import (
    bounds,
    categories,
    counts,
    factored_gradients,
    gradients,
    poisson,
    samples,
    vectors,
)
from kamino.schema.coding import value_hashes

MECHANISM_FAULTS = (
    Fault(
        name="half of a vector's noise used twice",
        wrong="The second half of the counts of a release has the noise of the first.",
        plant=partial(
            edited,
            counts,
            "noisy_counts",
            "gate.noise.discrete_gaussian(scale, shape)",
            "np.resize(gate.noise.discrete_gaussian(scale, (-(-counts.size // 2),)), shape)",
        ),
        check=NOISE,
        subject=subjects.found,
    ),
    Fault(
        name="histograms side by side taken for one",
        wrong="Several histograms that are released together get the noise of one.",
        plant=partial(
            edited, counts, "noisy_counts", "gate.sensitivity(row)", "gate.sensitivity(Sensitivity.of_histogram())"
        ),
        check=MOVES,
    ),
    Fault(
        name="the scale of noise rounded down",
        wrong="Noise on counts is drawn at a whole number that is not larger than its scale.",
        plant=partial(
            edited,
            counts,
            "noisy_counts",
            "discrete_gaussian(scale, shape)",
            "discrete_gaussian(float(int(scale)) or scale, shape)",
        ),
        check=RELEASED,
    ),
    Fault(
        name="noise of a vector in whole numbers",
        wrong="Noise on vectors is drawn at the scale of another grid, a sixteenth smaller.",
        plant=partial(
            edited,
            vectors,
            "release_vector",
            "discrete_gaussian(scale, truth",
            "discrete_gaussian(scale * 15 / 16, truth",
        ),
        check=RELEASED,
    ),
    Fault(
        name="the rounding of a vector not counted",
        wrong="A vector that is rounded to its grid is said to move as far as before.",
        plant=partial(edited, vectors, "_on_grid", "rounding = math.sqrt(size)", "rounding = 0.0"),
        check=MOVES,
    ),
    Fault(
        name="a vector not clipped",
        wrong="Numbers beyond the bounds of a vector are released as they are.",
        plant=partial(edited, vectors, "_steps", "min(upper, _MOST_STEPS * step)", "_MOST_STEPS * step"),
        check=MOVES,
    ),
    Fault(
        name="the grid of a vector taken from its values",
        wrong="How fine a vector is rounded follows from its largest number.",
        plant=partial(
            edited,
            vectors,
            "release_vector",
            "step = _step(grid, exact",
            "step = _step(float(np.abs(values).max(initial=0.5)) / 4096, exact",
        ),
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="one delta for all attributes",
        wrong="Each attribute whose categories are found takes all of delta, which is charged once.",
        plant=partial(edited, categories, "release_categories", "delta / len(columns)", "delta"),
        check=PRICE,
        subject=subjects.found_texts,
    ),
    Fault(
        name="the threshold of a unit of one row",
        wrong="Categories of a unit of three rows pass where those of a single row may.",
        plant=partial(edited, categories, "release_categories", "gate.unit.max_rows)", "1)"),
        check=PRICE,
        subject=subjects.found_texts,
    ),
    Fault(
        name="noise of categories in the order of rows",
        wrong="Which noise a category gets follows from where it occurs first.",
        plant=partial(edited, categories, "release_categories", "sorted(truth, key=public_order)", "list(truth)"),
        check=MECHANISMS,
        subject=subjects.found_texts,
    ),
    Fault(
        name="categories that pass by their true counts",
        wrong="Whether a category is published follows from its count without noise.",
        plant=partial(
            edited,
            categories,
            "release_categories",
            "np.flatnonzero(noisy >= threshold)",
            "np.flatnonzero(noisy - noise >= threshold)",
        ),
        check=MECHANISMS,
        subject=subjects.found_texts,
    ),
    Fault(
        name="categories with their true counts",
        wrong="The counts that are told of categories have no noise.",
        plant=partial(edited, categories, "release_categories", "int(noisy[place])", "truth[keys[place]]"),
        check=MECHANISMS,
        subject=subjects.found_texts,
    ),
    Fault(
        name="categories of several attributes taken for one",
        wrong="A row is said to move the categories of one attribute only.",
        plant=partial(
            edited,
            categories,
            "release_categories",
            "Sensitivity.of_histogram(len(columns))",
            "Sensitivity.of_histogram()",
        ),
        check=MOVES,
    ),
    Fault(
        name="ranges of several attributes taken for one",
        wrong="A row is said to move the histogram of one range only.",
        plant=partial(edited, bounds, "_release", "Sensitivity.of_histogram(len(cells))", "Sensitivity.of_histogram()"),
        check=MOVES,
    ),
    Fault(
        name="fine cells between the extremes",
        wrong="The cells of the second histogram of a range begin at the smallest number of the table.",
        plant=partial(
            edited,
            bounds,
            "release_bounds",
            "    finer = {name: _fine_cells(found, cells[name]) for",
            "    parts = list(columns()) if callable(columns) else [columns]\n"
            "    least = {n: min(float(np.nanmin(part[n], initial=9e9)) for part in parts) for n in cells}\n"
            "    finer = {name: _fine_cells(replace(found, lower=least[name]), cells[name]) for",
        ),
        check=MOVES,
    ),
    Fault(
        name="a sample of more rows than planned",
        wrong="A sample that is too large is released whole.",
        plant=partial(edited, samples, "sample_by_value", "sorted(found)[:most]", "sorted(found)"),
        check=SAMPLES,
    ),
    Fault(
        name="a sample at twice its rate",
        wrong="The sample of the paper's weights has twice as many rows as it is charged for.",
        plant=partial(edited, samples, "sample_by_value", "math.floor(rate * 2.0**64)", "math.floor(rate * 2.0**65)"),
        check=SAMPLES,
    ),
    Fault(
        name="equal rows sampled together",
        wrong="The coins of a row follow from its values alone: equal rows are all in a sample, or none.",
        plant=partial(edited, samples, "sample_by_value", "_occurrences(rows)", "0 * _occurrences(rows)"),
        check=SAMPLES,
    ),
    Fault(
        name="free places of a sample left empty",
        wrong="Only the lines of sampled rows get noise: how many there are shows.",
        plant=partial(
            edited,
            samples,
            "release_sample",
            "_placed(lines, plan, coins) + _noise(entry, coins)",
            "_placed(lines, plan, coins) + _noise(entry, coins) * (_placed(lines, plan, coins) != 0)",
        ),
        check=RELEASED,
    ),
    Fault(
        name="noise of a sample for one number of a line",
        wrong="Lines of a sample get noise as if only one of their numbers moved.",
        plant=partial(
            edited, samples, "release_sample", "event.noise_multiplier * plan.sensitivity", "event.noise_multiplier"
        ),
        check=MOVES,
    ),
    Fault(
        name="all steps sample the same rows",
        wrong="The random numbers of a descent do not depend on its step.",
        plant=partial(edited, poisson.Draws, "uniform", "/{purpose}/{step}", "/{purpose}"),
        check=SAMPLES,
    ),
    Fault(
        name="samples and noise from the same numbers",
        wrong="The rows that a step samples can be told from its noise.",
        plant=partial(edited, poisson.Draws, "uniform", "/{purpose}/{step}", "/{step}"),
        check=SAMPLES,
    ),
    Fault(
        name="half of the normal numbers twice",
        wrong="Both halves of a vector of noise are the same numbers.",
        plant=partial(edited, poisson.Draws, "normal", "radius * np.sin(angle)", "radius * np.cos(angle)"),
        check=SAMPLES,
    ),
    Fault(
        name="the first gap one too long",
        wrong="Rows are sampled a little too seldom, and never next to each other.",
        plant=partial(edited, poisson, "_sample_one", "astype(np.int64) + 1) - 1", "astype(np.int64) + 2) - 2"),
        check=SAMPLES,
    ),
    Fault(
        name="gradients rounded to the nearest",
        wrong="Clipped gradients are rounded to the grid instead of cut: a row moves their sum beyond the clip norm.",
        plant=partial(edited, factored_gradients.Plain, "total", "np.trunc(", "np.rint("),
        check=MOVES,
    ),
    Fault(
        name="each part of a gradient clipped by itself",
        wrong="The norm that is clipped is the largest of a gradient's parts, not that of all of them.",
        plant=partial(
            edited,
            factored_gradients,
            "factored_sum",
            "np.sqrt(sum((part.squares() for part in parts), np.zeros(len(present))))",
            "np.sqrt(np.max([part.squares() for part in parts], axis=0))",
        ),
        check=MOVES,
    ),
    Fault(
        name="gradients of rows that are no numbers",
        wrong="A gradient that is not finite is clipped like the others.",
        plant=partial(edited, factored_gradients, "factored_sum", "np.isfinite(norms) & present", "present"),
        check=MOVES,
    ),
    Fault(
        name="one step of a descent charged",
        wrong="A descent of many steps is charged as one.",
        plant=partial(edited, gradients, "open_descent", "((event, plan.steps),)", "((event, 1),)"),
        check=PRICE,
        subject=subjects.neural,
        neural=True,
    ),
    Fault(
        name="one row of a unit too many",
        wrong="A unit keeps one row more than planned.",
        plant=partial(edited, unit, "_lowest", "- start < max_rows", "- start <= max_rows"),
        check=UNITS,
    ),
    Fault(
        name="the rows of the first part kept in all parts",
        wrong="Of a table in parts, rows are kept at the places that were chosen in the first part.",
        plant=partial(edited, unit.SelectedParts, "parts", "seen += part.num_rows", "seen += 0"),
        check=UNITS,
    ),
    Fault(
        name="rows of a unit chosen by place",
        wrong="The first rows of a unit are kept, whatever the coins say.",
        plant=partial(edited, unit, "_lowest", "(places, rows, units[:, 1]", "(places, units[:, 1]"),
        check=UNITS,
    ),
    Fault(
        name="two zeros are two units",
        wrong="0.0 and -0.0 are taken for the values of two units.",
        plant=partial(edited, value_hashes, "_numbers", "dtype=np.float64) + 0.0", "dtype=np.float64)"),
        check=UNITS,
    ),
    Fault(
        name="missing owners in parts of a table",
        wrong="Each row whose unit is missing is a unit of its own.",
        plant=partial(
            edited,
            value_hashes,
            "hash_values",
            "words[np.asarray(plain.is_null(), dtype=np.bool_)] = null",
            "words[np.asarray(plain.is_null(), dtype=np.bool_), 1] = np.arange(plain.null_count)",
        ),
        check=UNITS,
    ),
    Fault(
        name="a unit of k rows moves as one of its root",
        wrong="Rows of a unit are said to move a release like independent ones.",
        plant=partial(edited, Sensitivity, "for_rows", "add_remove=max_rows * self", "add_remove=max_rows**0.5 * self"),
        check=MOVES,
    ),
    Fault(
        name="to replace taken for to add, in vectors",
        wrong="A vector is said to move no further where a row is replaced.",
        plant=partial(
            edited, Sensitivity, "__post_init__", '"replace", 2 * self.add_remove)', '"replace", self.add_remove)'
        ),
        check=MOVES,
    ),
    Fault(
        name="to replace charged as to add",
        wrong="A run for replace is charged as if its noise were for a row more or less.",
        plant=partial(
            edited, Sensitivity, "event", "multiplier=sigma / self.replace", "multiplier=sigma / self.add_remove"
        ),
        check=PRICE,
        subject=subjects.replaced,
    ),
    Fault(
        name="rows of a unit not asked for",
        wrong="A release may come before the rows of units are chosen.",
        plant=partial(edited, gate.Gate, "charge", "if not self._rows_selected:", "if False:"),
        check=UNITS,
    ),
)
