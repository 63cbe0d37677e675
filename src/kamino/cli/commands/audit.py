"""`kamino audit`: does a run keep its promise on this table, and would the audit notice if it did not?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from kamino.cli.asking import READING, Asked, options
from kamino.cli.console import output_console, track
from kamino.cli.options import DATA_HELP
from kamino.cli.render_audit import print_audit, print_self_test
from kamino.errors import InputError
from kamino.io import Reading
from kamino.pipeline import Synthesizer

# Also printed with `--json`, so that no file of an audit is without it.
FOR_THE_OWNER = "for the owner, not for release"


@options(
    *("data", "schema", "constraints", "epsilon", "delta", "trust_domain", "anyway", "value_lists", "unit", "max_rows"),
    *("preset", "backend", "sequence", "sampling", "weights", "training", "sweeps", "neighbours", "query"),
    *(*READING, "runs", "self_test", "as_json"),
)
def audit(
    data: Annotated[str | None, typer.Argument(help=DATA_HELP)] = None,
    *,
    asked: Asked,
    runs: Annotated[
        int | None,
        typer.Option("--runs", min=100, help="Games to play; by default as many as take less than a minute."),
    ] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Plant faults in the code and look whether each is caught.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Test the promise of a run: replay, prices, and games against the claim. For the owner, not for release.

    Give the options that you give to kamino synth. The table is fitted several times in memory; nothing is written, and
    no release leaves, so that no budget is spent as long as you keep the output to yourself.
    """
    if self_test:
        _self_test(runs, as_json=as_json)
        return
    if data is None:
        raise InputError("found no table; expected one, or --self-test")
    synthesizer = asked.synthesizer()
    if not synthesizer.settings.budget.is_private:
        raise InputError("found epsilon inf, which promises nothing; expected a number to audit")
    _audit_table(synthesizer, data, asked.reading, runs, as_json=as_json)


def _audit_table(synthesizer: Synthesizer, data: str, reading: Reading, runs: int | None, *, as_json: bool) -> None:
    from kamino.audit.auditing import CHECKS, audit
    from kamino.audit.subjects import subject_of_run

    request = synthesizer.job(data, reading=reading).request
    subject = subject_of_run("this table", data, request)
    result = audit(subject, runs=runs, track=track)
    if as_json:
        planned = None if subject.plan is None else subject.plan.to_json()
        typer.echo(json.dumps({"note": FOR_THE_OWNER, **result.to_json(), "plan": planned}, indent=2))
    else:
        print_audit(output_console(), result, CHECKS)
    if not result.passed:
        raise typer.Exit(1)


def _self_test(runs: int | None, *, as_json: bool) -> None:
    from kamino.audit.auditing import CHECKS
    from kamino.audit.probes import PROBES
    from kamino.planted.self_test import FEW_RUNS
    from kamino.planted.self_test import self_test as test_itself

    result = test_itself(runs=runs or FEW_RUNS, track=track)
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2))
    else:
        print_self_test(output_console(), result, CHECKS, PROBES)
    if not result.passed:
        raise typer.Exit(1)
