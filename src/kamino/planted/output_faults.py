"""Faults in what is drawn in blocks and by other processes, in certificates, and in what verifies them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial

from kamino.audit.probes.written_tables import WRITTEN
from kamino.pipeline.output import block_workers, block_world, certificate, in_blocks, writing
from kamino.pipeline.verifying import checks
from kamino.planted.fault import Fault, all_of, changed, edited, everywhere


def _believing(name: str, old: str, new: str) -> AbstractContextManager[None]:
    """Change one of the checks by which a table is verified."""
    clean, planted = changed(checks, name, old, new)
    listed = tuple(planted if each is clean else each for each in checks.CHECKS)
    return all_of(everywhere(clean, planted), everywhere(checks.CHECKS, listed))


OUTPUT_FAULTS = (
    Fault(
        name="blocks of one stream",
        wrong="All later blocks of a long table are drawn with the same random numbers.",
        plant=partial(edited, block_world.BlockWorld, "draw", "default_rng([root, number])", "default_rng([root, 1])"),
        check=WRITTEN,
    ),
    Fault(
        name="blocks that know nothing of the first",
        wrong="Later blocks are drawn by themselves: rows of two blocks violate constraints.",
        plant=partial(edited, block_world.BlockWorld, "draw", "world=self.world,", "world=None,"),
        check=WRITTEN,
    ),
    Fault(
        name="a world that is not completed",
        wrong="What the first block lacks is chosen anew by each later block.",
        plant=partial(
            edited,
            block_world.BlockWorld,
            "of",
            "references={**plan.references, **world.references}",
            "references=plan.references",
        ),
        check=WRITTEN,
    ),
    Fault(
        name="a last block as long as the others",
        wrong="A long table has more rows than were asked for.",
        plant=partial(edited, in_blocks, "_by_itself", "min(BLOCK_ROWS, num_rows - start)", "BLOCK_ROWS"),
        check=WRITTEN,
    ),
    Fault(
        name="keys that begin again in each block",
        wrong="Made-up keys are the same in all blocks.",
        plant=partial(edited, writing, "_block_parts", "first=start", "first=0"),
        check=WRITTEN,
    ),
    Fault(
        name="workers with random numbers of their own",
        wrong="What other processes draw follows from how many they are.",
        plant=partial(edited, block_workers.BlockJob, "of", "root=root)", "root=root + 1)"),
        check=WRITTEN,
    ),
    Fault(
        name="blocks of workers in another order",
        wrong="Blocks that other processes drew are put one after the other by process.",
        plant=partial(edited, block_workers, "_by_processes", "(place - 1) % number", "(place) % number"),
        check=WRITTEN,
    ),
    Fault(
        name="violations of a part of the rows",
        wrong="A certificate says how often constraints are violated in the first half of a table.",
        plant=partial(
            edited,
            certificate,
            "count_promised",
            "RankedTable(table)",
            "RankedTable(table.slice(0, table.num_rows // 2))",
        ),
        check=WRITTEN,
    ),
    Fault(
        name="violations told as none",
        wrong="A certificate says that no constraint is violated.",
        plant=partial(edited, certificate, "_constraints", "count = violations[constraint]", "count = 0"),
        check=WRITTEN,
    ),
    Fault(
        name="a soft constraint told as hard",
        wrong="A certificate says of all constraints that they are hard.",
        plant=partial(edited, certificate, "_constraints", '"hard": constraint.is_hard,', '"hard": True,'),
        check=WRITTEN,
    ),
    Fault(
        name="the budget told as the price",
        wrong="A certificate says half of what was spent.",
        plant=partial(
            edited,
            certificate,
            "certificate_of",
            '"spent_epsilon": ledger["spent_epsilon"],',
            '"spent_epsilon": {name: spent and spent / 2 for name, spent in ledger["spent_epsilon"].items()},',
        ),
        check=WRITTEN,
    ),
    Fault(
        name="a seed without a mark",
        wrong="What was made with a seed is said to be for release.",
        plant=partial(edited, certificate, "certificate_of", '"mark": mark,', '"mark": "for release",'),
        check=WRITTEN,
    ),
    Fault(
        name="another table's hash",
        wrong="The hash in a certificate is that of its text, not of the bytes of the file.",
        plant=partial(
            edited,
            certificate,
            "certificate_of",
            'document["sha256"] = sha256',
            'document["sha256"] = _digest(sha256.encode())',
        ),
        check=WRITTEN,
    ),
    Fault(
        name="a table that is not compared with its hash",
        wrong="Verifying a table does not look at its bytes.",
        plant=partial(_believing, "check_bytes", "case.digest", 'case.document["sha256"]'),
        check=WRITTEN,
    ),
    Fault(
        name="violations that are not counted again",
        wrong="Verifying a table believes the violations that its certificate says.",
        plant=partial(
            _believing,
            "check_violations",
            "count = count_violations(ranked, constraint)",
            'count = claim["violations"]',
        ),
        check=WRITTEN,
    ),
    Fault(
        name="rows that are not counted again",
        wrong="Verifying a table believes the number of rows that its certificate says.",
        plant=partial(_believing, "check_rows", 'yield _same("rows", case.document["rows"], table.num_rows)', "return"),
        check=WRITTEN,
    ),
    Fault(
        name="a price that is not derived again",
        wrong="Verifying a table believes what its certificate says was spent.",
        plant=partial(
            _believing,
            "check_price",
            "holds = _close(math.inf if claimed is None else claimed, found)\n            if name",
            "holds = True\n            if name",
        ),
        check=WRITTEN,
    ),
    Fault(
        name="noise that is not compared with its charge",
        wrong="Verifying a table does not ask whether releases have the noise that they were charged for.",
        plant=partial(_believing, "check_noise", "short += [number] if needed else []", "pass"),
        check=WRITTEN,
    ),
    Fault(
        name="a mark that is believed",
        wrong="Verifying a table believes its mark.",
        plant=partial(_believing, "check_mark", "holds=stricter or claimed == found", "holds=True"),
        check=WRITTEN,
    ),
    Fault(
        name="a budget that is believed",
        wrong="Verifying a table does not compare the budget with that of the ledger.",
        plant=partial(_believing, "check_privacy", "holds=claimed == budget", "holds=True"),
        check=WRITTEN,
    ),
    Fault(
        name="sources that are believed",
        wrong="Verifying a table does not compute hashes of schema, constraints and ledger.",
        plant=partial(
            _believing,
            "check_sources",
            'yield _same(f"hash of the {name}", document["hashes"][name], found[name])',
            "yield from ()",
        ),
        check=WRITTEN,
    ),
)
