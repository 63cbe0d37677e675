"""`kamino synth` of a database: a folder of files in, a folder of files out."""

from __future__ import annotations

from collections.abc import Mapping

from kamino.cli.asking import Asked
from kamino.cli.console import output_console, safe
from kamino.cli.stage_bar import show_stages
from kamino.databases.synthesizer_of_databases import DatabaseSynthesizer
from kamino.errors import InputError
from kamino.pipeline import Preset, Stage

_TAKEN = ("schema", "constraints", "epsilon", "delta", "neighbours", "accept", "seed")


def synth_database(
    data: str, output: str, asked: Asked, rows: int | None, dry_run: bool, unused: Mapping[str, object]
) -> None:
    """Make a private synthetic database; `rows` are those of the root table.

    Guarantees:
        An option that is for one table is refused.  [test_options_of_one_table_are_refused_for_a_database]
    """
    from kamino.databases.table_sets import FolderTables, check_folder

    others = {name: value for name, value in {**asked.given, **unused}.items() if name not in _TAKEN}
    given = [name for name, value in others.items() if value and value != Preset.DEFAULT]
    if given:
        raise InputError(f"found --{given[0].replace('_', '-')} for a database; it is for one table, leave it out")
    chosen = {name: asked.given[name] for name in _TAKEN[2:] if name in asked.given}
    synthesizer = DatabaseSynthesizer(asked.given["schema"], asked.constraints, **chosen)
    root = FolderTables(data).file(synthesizer.database.root)
    check_folder(output, root.suffix.lower())
    console = output_console()
    if dry_run:
        from kamino.databases.plan_of_databases import plan_lines

        for line in plan_lines(synthesizer.layout(data)):
            console.print(safe(line), soft_wrap=True)
        console.print(safe("Dry run: nothing was released, spent or written.", style="bold"))
        return
    with show_stages(Stage.READ, Stage.FIT, Stage.SAMPLE, Stage.WRITE, Stage.CHECK) as progress:
        synthesizer.fit(data, progress=progress)
        written = synthesizer.write(output, rows, progress=progress)
    privacy = written.certificate["privacy"]
    kept = len(written.certificate["rules"])
    lines = (
        str(written),
        f"Privacy: {privacy['unit']}; epsilon {privacy['epsilon']}, delta {privacy['delta']:g}, for all tables.",
        f"Rules kept: {kept}. Keys that name no row: 0. Keys twice: 0.",
        f"Mark: {written.certificate['mark']}.",
    )
    for line in lines:
        console.print(safe(line), soft_wrap=True)
