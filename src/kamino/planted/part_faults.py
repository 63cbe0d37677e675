"""Faults in what is counted of a table in parts, part by part."""

from __future__ import annotations

from functools import partial

from kamino.audit.probes.same_in_parts import PARTS
from kamino.engine import discovery, group_sizes, lost_cells, rates, streamed
from kamino.planted.fault import Fault, edited
from kamino.privacy.mechanisms import bounds

PART_FAULTS = (
    Fault(
        name="the last part of a table counted",
        wrong="Counts of a table in parts are those of its last part.",
        plant=partial(
            edited, streamed.StreamedMeasurer, "_count_parts", "add_up(total,", "add_up(total.clear() or total,"
        ),
        check=PARTS,
    ),
    Fault(
        name="counts taken for those of another view",
        wrong="All that is counted of an attribute in one pass is counted by its first view.",
        plant=partial(edited, streamed, "_shared_views", "(n, _view_key(each.binning[n]))", "n"),
        check=PARTS,
    ),
    Fault(
        name="kept codes of the wrong part",
        wrong="Codes that were kept of a part are joined to those of the first part.",
        plant=partial(edited, streamed.EncodedParts, "parts", "held[number].unpack()", "held[0].unpack()"),
        check=PARTS,
    ),
    Fault(
        name="categories of the last part",
        wrong="The categories of a table in parts are those of its last part.",
        plant=partial(edited, discovery, "_count_texts", "counts[name].update(", "counts[name] = Counter("),
        check=PARTS,
    ),
    Fault(
        name="ranges of the last part",
        wrong="The histograms that find ranges are those of the last part.",
        plant=partial(edited, bounds, "_count_parts", "found += np", "found = np"),
        check=PARTS,
    ),
    Fault(
        name="lost cells of the last part",
        wrong="Cells that domains do not hold are counted in the last part.",
        plant=partial(edited, lost_cells, "release_lost", "counts += np", "counts = np"),
        check=PARTS,
    ),
    Fault(
        name="rates of each part by itself",
        wrong="Violations are counted within parts, not between them.",
        plant=partial(
            edited,
            rates,
            "_by_groups",
            "yield joined_parts((_rows_of_turn(part, codec, keys, turn, passes) for part in parts), names)",
            "yield from (_rows_of_turn(part, codec, keys, turn, passes) for part in parts)",
        ),
        check=PARTS,
    ),
    Fault(
        name="groups cut at the ends of parts",
        wrong="A group whose rows lie in two parts is counted as two.",
        plant=partial(
            edited,
            group_sizes,
            "count_group_sizes",
            "groups, rows = _added_up(every, weights)",
            "own = _added_up(words, weights[len(rows) :])\n"
            "        groups, rows = np.concatenate([groups, own[0]]), np.concatenate([rows, own[1]])",
        ),
        check=PARTS,
    ),
)
