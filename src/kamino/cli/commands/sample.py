"""`kamino sample`: more rows from a fitted model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from kamino.cli.asking import Asked, options
from kamino.cli.console import output_console
from kamino.cli.options import OutputOption, RowsOption, SpreadsheetOption, WorkersOption, tell_if_whole
from kamino.cli.outputs import refuse_table
from kamino.cli.render_run import print_run
from kamino.cli.stage_bar import show_stages
from kamino.errors import InputError
from kamino.pipeline import Stage, Synthesizer
from kamino.schema import Categorical, Key, Schema


@options("model", "output", "rows", "given", "sweeps", "spreadsheet_safe", "workers", "seed")
def sample(
    model: Annotated[Path, typer.Argument(help="A model file made by kamino synth --save-model.")],
    output: OutputOption,
    *,
    asked: Asked,
    rows: RowsOption = None,
    given: Annotated[
        list[str] | None, typer.Option("--given", "-g", help="Fix an attribute: state=CA, age=30..40; may be repeated.")
    ] = None,
    spreadsheet_safe: SpreadsheetOption = False,
    workers: WorkersOption = None,
) -> None:
    """Draw a table from a fitted model. Costs no privacy, however often.

    Several --given of one attribute allow any of the values.
    """
    begin = time.perf_counter()
    refuse_table(output, model)
    synthesizer = Synthesizer.load(model)
    conditions = read_conditions(given or [], synthesizer.fitted.schema)
    tell_if_whole(synthesizer, output, rows, conditions)
    with show_stages(Stage.SAMPLE, Stage.CHECK, Stage.WRITE) as progress:
        written = synthesizer.write(
            output,
            rows,
            given=conditions or None,
            **asked.settings,
            spreadsheet_safe=spreadsheet_safe,
            workers=workers,
            progress=progress,
        )
    print_run(output_console(), written.certificate, output=written.place, seconds=time.perf_counter() - begin)


def read_conditions(texts: list[str], schema: Schema) -> dict[str, Any]:
    """Read `name=value` and `name=low..high` texts as values of the attributes they name."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"found --given {text!r}; expected name=value, such as state=CA")
        is_interval = ".." in value and not isinstance(schema[name], Categorical | Key)
        if name in found and (is_interval or isinstance(found[name], tuple)):
            raise InputError(
                f"found --given {text!r} beside another of {name!r}; expected one interval, or some values"
            )
        if is_interval:
            low, _, high = value.partition("..")
            found[name] = (_value(schema, name, low), _value(schema, name, high))
        else:
            found.setdefault(name, []).append(_value(schema, name, value))
    return found


def _value(schema: Schema, name: str, text: str) -> Any:
    """The value a text stands for, as the attribute holds it; a text that is none is left to the domain's check."""
    import pyarrow as pa

    kind = schema[name].arrow_type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if text == "":
        return None
    try:
        return pa.array([text]).cast(kind)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"found --given {name}={text}; expected a value of type {kind}") from None
