"""`kamino report`: how good a synthetic table is, as a page, a summary or JSON."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from kamino.cli.asking import READING, Asked, options
from kamino.cli.console import error_console, json_text, output_console, safe, track
from kamino.cli.options import read_constraints, reading_of, tell
from kamino.cli.outputs import certificates_of, refuse_overwriting
from kamino.constraints import value_types
from kamino.errors import InputError, visible
from kamino.evaluate.as_declared import as_declared
from kamino.evaluate.learn.learning import MAX_ROWS, Learning, train_models
from kamino.evaluate.measure.identifiers import compared_columns, find_identifiers, line_about
from kamino.evaluate.report.document import PUBLIC, internal_report
from kamino.evaluate.report.page import render_page, write
from kamino.evaluate.report.public import public_report
from kamino.evaluate.report.statement import statement_of
from kamino.io import Reading, read_table
from kamino.io.atomic import atomic_file
from kamino.io.databases.credentials import shown_source
from kamino.io.databases.sql import is_url, split_table
from kamino.io.text import parse_json, read_text
from kamino.limits import MAX_CERTIFICATE_BYTES
from kamino.pipeline.output.release_mark import (
    FOR_RELEASE,
    mark_of_certificate,
    schema_of_certificate,
    spent_of_fit,
)
from kamino.schema import Schema

Document = dict[str, Any]
PAGE_ENDINGS = (".html", ".htm")
_COLOURS = {"good": "bold green", "fair": "bold yellow", "poor": "bold red"}


@options(
    *("true", "synthetic", "constraints", "output", "text", "as_json", "model_training", "training_rows"),
    *("certificate", "query", *READING, "public"),
)
def report(
    true: Annotated[
        str | None, typer.Argument(metavar="TRUE", help="The private table; with --public there is none.")
    ] = None,
    synthetic: Annotated[
        str | None, typer.Argument(metavar="SYNTH", help="The synthetic table; with --public the only one.")
    ] = None,
    *,
    asked: Asked,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The page to write: an .html file.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Print a summary; the default without -o.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")] = False,
    model_training: Annotated[
        bool, typer.Option("--model-training", help="Also train nine kinds of model for each column (minutes).")
    ] = False,
    training_rows: Annotated[
        int, typer.Option("--training-rows", min=0, help="Rows each model is trained on at most; 0: all.")
    ] = MAX_ROWS,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="The certificate; by default SYNTH.certificate.json.")
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option("--query", "-q", help="SQL query or table name, for a database; twice for two, TRUE first."),
    ] = None,
    public: Annotated[
        Path | None, typer.Option("--public", help="A model file: compare with released statistics, read no TRUE.")
    ] = None,
) -> None:
    """Compare a synthetic table with the true one, on one page that needs no network.

    The page shows the private table and is for its owner, unless made with --public.
    """
    constraints = asked.constraints
    tables = [name for name in (true, synthetic) if name is not None]
    private, drawn = _named(tables, public, model_training=model_training)
    if output is not None:
        _require_page(output)
        refuse_overwriting(output, *tables, constraints, certificate, public)
    readings = _readings(tables, query or [], reading_of(None, *(asked.given[name] for name in READING)))
    if public is not None:
        document = _public(public, drawn, readings[-1], constraints, certificate)
    else:
        training = (model_training, training_rows or None)
        document = _internal((str(private), readings[0]), (drawn, readings[-1]), constraints, certificate, training)
    document["sources"] = {"true": None if private is None else _shown_name(private), "synthetic": _shown_name(drawn)}
    _deliver(document, output, text=text, as_json=as_json)


def _named(tables: list[str], public: Path | None, *, model_training: bool) -> tuple[str | None, str]:
    """The true and the synthetic table among the arguments; there is no true one beside --public.

    Guarantees: a true table is never taken and then passed over.  [test_true_table_beside_public_is_refused]
    """
    if not tables:
        raise InputError("found no table; expected the true and the synthetic one, or --public MODEL and the synthetic")
    if public is not None and len(tables) == 2:
        raise InputError(
            "found a true table beside --public; a public report compares with the model and reads no true table, "
            "leave it out"
        )
    if public is not None and model_training:
        raise InputError("found --model-training with --public; testing models needs the true table, leave one out")
    if public is None and len(tables) == 1:
        raise InputError("found one table; expected the true and the synthetic one, or --public MODEL instead of TRUE")
    return (tables[0] if len(tables) == 2 else None), tables[-1]


def _readings(tables: list[str], queries: list[str], asked_for: Reading) -> list[Reading]:
    """How each table is read: queries go to the tables of databases that name no table themselves, in turn; columns and
    ways of writing are those of the true table, of two.
    """
    plain = Reading(separator=asked_for.separator, encoding=asked_for.encoding)
    left = list(queries)
    found: list[Reading] = []
    for table in tables:
        asked = is_url(table) and split_table(table)[1] is None and left
        how = asked_for if not found else plain
        found.append(replace(how, query=left.pop(0) if asked else None))
    if left:
        raise InputError(f"found {len(queries)} queries; expected one for each database that has no #table behind it")
    return found


def _shown_name(table: str) -> str:
    return shown_source(table) if is_url(table) else Path(table).name


def _require_page(output: Path) -> None:
    if output.suffix.lower() not in PAGE_ENDINGS:
        raise InputError(
            f"{output}: expected a file that ends in {' or '.join(PAGE_ENDINGS)}, for -o writes a page. "
            "For text or JSON leave out -o and redirect --text or --json"
        )


def _internal(
    true: tuple[str, Reading],
    synthetic: tuple[str, Reading],
    constraints: Path | None,
    certificate: Path | None,
    training: tuple[bool, int | None],
) -> Document:
    """The report beside the private table.

    Guarantees:
        Dates are compared as dates, however the true table writes them.  [test_dates_are_compared_as_dates]
    """
    found = _certificate(synthetic[0], certificate)
    statement = None if found is None else _statement(found, synthetic[0])
    # By the schema, texts of the true table are dates or numbers.
    schema = None if found is None else schema_of_certificate(found)
    rules = read_constraints(constraints)
    one = read_table(true[0], reading=true[1].with_cells(schema))
    two = read_table(synthetic[0], reading=synthetic[1])
    one, two = _compared(one, two, true[1], schema)
    if schema is not None:
        one, two = as_declared(one, schema), as_declared(two, schema)
    # training takes minutes: constraints that do not fit are to be told before, not after
    rules.bind(value_types(one))
    names = compared_columns(one, find_identifiers(one, rules, schema))
    learning = _train(one.select(names), two, training[1]) if training[0] else None
    return internal_report(one, two, rules, learning=learning, certificate=statement, schema=schema, track=track)


def _compared(
    true: pa.Table, synthetic: pa.Table, reading: Reading, schema: Schema | None
) -> tuple[pa.Table, pa.Table]:
    """Both tables without the columns that are left out here, or were when the synthetic table was made.

    Guarantees:
        What a run left out is not missed, and is told.  [test_columns_that_a_run_left_out_are_not_missed]
    """
    known = {*synthetic.column_names, *(true.column_names if schema is None else schema)}
    left = [name for name in true.column_names if name not in known]
    if left and len(left) < true.num_columns:
        tell(f"Left out, since the certificate says that the run did not read them: {', '.join(left)}.")
        true = true.drop_columns(left)
    return true, synthetic.select([name for name in synthetic.column_names if reading.reads(name)])


def _train(true: pa.Table, synthetic: pa.Table, max_rows: int | None) -> Learning:
    return train_models(true, synthetic, max_rows=max_rows, progress=track("Training models"))


def _public(
    model: Path, synthetic: str, reading: Reading, constraints: Path | None, certificate: Path | None
) -> Document:
    """The report beside a model; it is called public only if what the model spent may be released.

    Guarantees:
        The true table is not opened.  [test_public_report_needs_no_table]
        It is marked as the certificate is.  [test_every_face_tells_the_same_mark]
    """
    from kamino.pipeline import Synthesizer

    synthesizer = Synthesizer.load(model)
    fitted = synthesizer.fitted
    table = read_table(synthetic, reading=reading)
    found = _certificate(synthetic, certificate)
    if found is None:
        statement = statement_of(synthesizer.certificate(table), ledger=fitted.ledger)
    else:
        statement = _statement(found, synthetic, ledger=fitted.ledger)
    # The strictest word counts: the model's own facts, or those of whoever made the table.
    spent = spent_of_fit(fitted)
    if not spent.is_for_release:
        mark, statement = spent.told, {**statement, "mark": spent.mark}
    else:
        mark = PUBLIC if statement["mark"] == FOR_RELEASE else f"{statement['mark']}, says the certificate"
    rules = read_constraints(constraints) if constraints is not None else fitted.promised
    return public_report(
        fitted.model, fitted.codec, table, rules, mark=mark, certificate=statement, ledger=fitted.ledger, track=track
    )


def _certificate(synthetic: str, certificate: Path | None) -> Document | None:
    """The certificate that was named, or that lies beside the synthetic table; None where there is none."""
    beside = certificates_of(synthetic)[0] if not is_url(synthetic) or split_table(synthetic)[1] else Path()
    path = certificate if certificate is not None else beside if beside.is_file() else None
    if path is None:
        return None
    found = parse_json(read_text(path, what="certificate", most=MAX_CERTIFICATE_BYTES), source=str(path))
    if not isinstance(found, dict):
        raise InputError(f"{path}: found a JSON {type(found).__name__}, expected a certificate")
    return found


def _statement(certificate: Document, synthetic: str, *, ledger: Document | None = None) -> Document:
    """The privacy statement of a certificate, which says whether it is of this file."""
    file = None if is_url(synthetic) else Path(synthetic)
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file is not None and file.is_file() else None
    return statement_of({**certificate, "mark": mark_of_certificate(certificate)}, sha256=digest, ledger=ledger)


def _deliver(document: Document, output: Path | None, *, text: bool, as_json: bool) -> None:
    if output is not None:
        with atomic_file(output) as handle:
            handle.write(render_page(document).encode("utf-8"))
        error_console().print(f"Wrote {output} ({document['mark']}).", markup=False, soft_wrap=True)
    if as_json:
        typer.echo(json_text(document, allow_nan=False))
    if text or (output is None and not as_json):
        print_report(output_console(), document)


def print_report(console: Console, document: Document) -> None:
    """The report in a screen: verdict, constraints, distances, the columns that are furthest off."""
    verdict = document["verdict"]
    if document["internal"]:
        console.print(safe(f"{verdict['level'].capitalize()}.", style=_COLOURS[verdict["level"]]), end=" ")
    else:
        console.print(safe(f"{verdict['statement'].capitalize()}; how good it is, this does not tell."), end=" ")
    console.print(f"{_headline(verdict)}, {verdict['columns']} columns")
    for reason in verdict["reasons"]:
        level = reason.get("level")
        text = f"  {reason['text']}: {level}" if level else f"  differs in {reason['text']}"
        console.print(safe(text, style=_COLOURS.get(level, "")))
    if document["identifiers"]:
        console.print(safe(f"  {line_about(document['identifiers'])}"), soft_wrap=True)
    if document["extra_columns"]:
        console.print(
            safe(f"  only in the synthetic table: {visible(', '.join(document['extra_columns']))}"), soft_wrap=True
        )
    _print_constraints(console, document)
    _print_distances(console, document)
    worst = sorted(document["columns"], key=lambda c: -c["distance"])[:8]
    columns = [[c["name"], _distance(c["distance"]), f"{c['outside']:,}"] for c in worst]
    console.print(_table(["furthest columns", "distance", "values outside"], columns))
    if document["learning"]:
        means = [
            [m, *(_distance(document["learning"][m][s]) for s in ("true", "synthetic"))] for m in ("accuracy", "f1")
        ]
        console.print(_table(["models trained on", "true", "synthetic"], means))
    console.print(safe(document["mark"], style="dim"))


def _headline(verdict: Document) -> str:
    uncounted = f"{verdict['uncounted']} of {verdict['hard']} hard constraints could not be counted"
    broken = f"{verdict['broken']} of {verdict['hard']} hard constraints broken"
    if not verdict["uncounted"]:
        return broken
    return f"{broken}, {verdict['uncounted']} could not be counted" if verdict["broken"] else uncounted


def _print_constraints(console: Console, document: Document) -> None:
    """Violations in percent; the reason of each constraint that was not counted stands below."""
    if not document["constraints"]:
        return
    sides = ("true", "synthetic") if document["internal"] else ("synthetic",)
    rows = [[c["text"], *(_percent(c[side]) for side in sides)] for c in document["constraints"]]
    console.print(_table(["violations of", *sides], rows))
    for c in (each for each in document["constraints"] if each["not_counted"]):
        console.print(safe(f"  {c['text']}: not counted: {c['not_counted']}", style=_COLOURS["fair"]), soft_wrap=True)


def _print_distances(console: Console, document: Document) -> None:
    """Distances of marginals; those of two halves only where there is a true table to halve."""
    titles = {"mean": "mean", "max": "largest", "halves": "halves of true", "max_cell": "largest cell"}
    keys = [key for key in titles if key != "halves" or document["internal"]]
    parts = (("marginals", "-way"), ("equal_mass", "-way, bins of equal mass"))
    rows = [
        [f"{m['order']}{label}", *(_distance(m[key]) for key in keys)] for part, label in parts for m in document[part]
    ]
    if document["ranks"]:
        ranks = (document["ranks"].get(key) for key in ("mean_difference", "max_difference", "halves", "max_cell"))
        rows.append(["rank correlations", *(_distance(value) for value in ranks)])
    console.print(_table(["distance of marginals", *(titles[key] for key in keys)], rows))


def _table(header: list[str], rows: list[list[str]]) -> Table:
    grid = Table()
    for i, name in enumerate(header):
        grid.add_column(name, justify="right" if i else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(safe(cell) for cell in row))
    return grid


def _percent(violations: Document | None) -> str:
    return "not counted" if violations is None else write(violations["percent"], "percent")


def _distance(value: float | None) -> str:
    return "–" if value is None else write(value, "distance")
