"""Faults planted in the code, one at a time, each of which a check of the audit must notice.

A fault is a patch of the real code (`patches.py`), of the kind that a change could bring in by mistake. It names the
check that must see it and a subject in which it shows, or a probe of one part (`kamino.audit.probes`). Neither checks
nor probes know of any fault.
"""

from __future__ import annotations

from functools import partial

from kamino.audit import subjects
from kamino.audit.auditing import GAME, MECHANISMS, NEIGHBOURS, NOISE, PRICE, STRANGERS
from kamino.planted import patches
from kamino.planted.engine_faults import ENGINE_FAULTS
from kamino.planted.fault import Fault
from kamino.planted.ledger_faults import LEDGER_FAULTS
from kamino.planted.mechanism_faults import MECHANISM_FAULTS
from kamino.planted.noise_faults import NOISE_FAULTS
from kamino.planted.output_faults import OUTPUT_FAULTS
from kamino.planted.part_faults import PART_FAULTS
from kamino.planted.reader_faults import READER_FAULTS
from kamino.planted.row_count_faults import ROW_COUNT_FAULTS

FAULTS: tuple[Fault, ...] = (
    Fault(
        name="exact selection scores",
        wrong="Which marginals are measured follows from distances without noise.",
        plant=patches.exact_scores,
        check=STRANGERS,
        # With little noise: otherwise the model may measure the same few marginals on any table.
        subject=lambda: subjects.declared(epsilon=20.0),
    ),
    Fault(
        name="groups of a rate not scaled",
        wrong="The violations of large groups count in full.",
        plant=patches.unscaled_groups,
        check=NEIGHBOURS,
        # With little noise: a model that takes the table for nearly empty scales by 1.
        subject=lambda: subjects.declared(epsilon=20.0),
    ),
    Fault(
        name="noise reseeded at every call",
        wrong="Every release starts the same stream of noise.",
        plant=patches.reseeded,
        check=NOISE,
        subject=subjects.declared,
    ),
    Fault(
        name="one draw for a whole vector",
        wrong="All coordinates of a release get the same noise.",
        plant=patches.one_draw,
        check=NOISE,
        subject=subjects.declared,
    ),
    Fault(
        name="noise without its sign",
        wrong="Noise only adds.",
        plant=patches.without_sign,
        check=NOISE,
        subject=subjects.declared,
    ),
    Fault(
        name="constant coins",
        wrong="The same rows of a unit are kept, or sampled, in every run.",
        plant=patches.constant_coins,
        check=NOISE,
        subject=subjects.with_unit,
    ),
    Fault(
        name="half of the noise",
        wrong="Noise is drawn at half of its scale.",
        plant=patches.half_of_noise,
        check=GAME,
        subject=subjects.found,
    ),
    Fault(
        name="the row count peeked at",
        wrong="A part of the true number of rows is added to counts.",
        plant=patches.peeked_count,
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="the true count told as something else",
        wrong="The certificate has the number of rows as seconds.",
        plant=patches.count_as_seconds,
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="an error for some tables",
        wrong="A column without values stops the run.",
        plant=patches.error_for_nulls,
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="nullable read from the table",
        wrong="Whether a column may be null follows from its cells.",
        plant=patches.nullable_from_the_table,
        check=NEIGHBOURS,
        subject=subjects.declared,
    ),
    Fault(
        name="the true maximum as a bound",
        wrong="A range that was found ends at the largest value of the table.",
        plant=patches.true_maximum,
        check=STRANGERS,
        subject=subjects.found,
    ),
    Fault(
        name="categories in the order of their true counts",
        wrong="The mechanism publishes categories by frequency.",
        plant=patches.ordered_categories,
        check=MECHANISMS,
        subject=subjects.found,
    ),
    Fault(
        name="no noise on empty cells",
        wrong="A cell that no row is in stays 0.",
        plant=patches.occupied_cells,
        check=MECHANISMS,
        subject=subjects.declared,
    ),
    Fault(
        name="a unit not scaled for vectors",
        wrong="Real vectors get the noise of one row where a unit has three.",
        plant=patches.unscaled_unit,
        check=NEIGHBOURS,
        subject=subjects.with_unit,
    ),
    Fault(
        name="rows of a unit not limited",
        wrong="A unit keeps all of its rows.",
        plant=patches.all_rows_of_a_unit,
        check=NEIGHBOURS,
        subject=subjects.with_unit,
    ),
    Fault(
        name="replace taken for add",
        wrong="A replaced row is said to move a histogram by 1.",
        plant=patches.replace_as_add,
        check=NEIGHBOURS,
        subject=subjects.replaced,
    ),
    Fault(
        name="half of delta charged",
        wrong="Categories cost half of the delta that their threshold needs.",
        plant=patches.half_of_delta,
        check=PRICE,
        # With little noise a threshold, which is a whole number, may by chance cost less than half of its delta.
        subject=partial(subjects.found, epsilon=1.0),
    ),
    Fault(
        name="a threshold one too low",
        wrong="A category passes with one row less than its delta allows.",
        plant=patches.low_threshold,
        check=PRICE,
        subject=subjects.found,
    ),
    Fault(
        name="a release without a charge",
        wrong="Histograms that find bounds are not in the ledger.",
        plant=patches.uncharged,
        check=PRICE,
        subject=subjects.found,
    ),
    Fault(
        name="charged for more noise than drawn",
        wrong="The scale of noise on counts is a tenth too small.",
        plant=patches.charged_for_more_noise,
        check=PRICE,
        subject=subjects.declared,
    ),
    Fault(
        name="sampled releases priced under the other relation",
        wrong="A run for replace is priced as if rows were added.",
        plant=patches.other_relation,
        check=PRICE,
        subject=subjects.paper,
        neural=True,
    ),
    Fault(
        name="gradients of twice the clip norm",
        wrong="A row moves a sum of gradients twice as far as declared.",
        plant=patches.twice_the_clip_norm,
        check=NEIGHBOURS,
        subject=subjects.neural,
        neural=True,
    ),
    Fault(
        name="rows sampled at twice the rate",
        wrong="Training samples twice as many rows as it is charged for.",
        plant=patches.twice_the_rate,
        check=NOISE,
        subject=subjects.neural,
        neural=True,
    ),
    Fault(
        name="half of the noise on gradients",
        wrong="Gradients get noise at half of its scale.",
        plant=patches.half_of_gradient_noise,
        check=NOISE,
        subject=subjects.neural,
        neural=True,
    ),
    *NOISE_FAULTS,
    *MECHANISM_FAULTS,
    *LEDGER_FAULTS,
    *ROW_COUNT_FAULTS,
    *READER_FAULTS,
    *ENGINE_FAULTS,
    *PART_FAULTS,
    *OUTPUT_FAULTS,
)
