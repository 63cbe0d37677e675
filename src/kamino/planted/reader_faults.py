"""Faults in readers: one row decides on names, types, errors or other rows, or is read otherwise than it stands."""

from __future__ import annotations

from functools import partial

from kamino.audit.probes.read_rows import READING
from kamino.io import frames, normalise, odd_cells, parquet, private_csv
from kamino.io.databases import duckdb_file
from kamino.io.formats import dialect, excel, feather, json_lines
from kamino.io.streams import cutting, duckdb_parts, parquet_parts
from kamino.planted.fault import Fault, edited

READER_FAULTS = (
    Fault(
        name="types of CSV from its cells",
        wrong="The columns of a private CSV file are numbers, if all of their cells are.",
        plant=partial(
            edited,
            private_csv.PrivateCsv,
            "read",
            "return pa.Table.from_arrays(columns, names=self.names)",
            "from kamino.io.csv import with_types\n"
            "    return with_types(pa.Table.from_arrays(columns, names=self.names), None, where='')",
        ),
        check=READING,
    ),
    Fault(
        name="a line of a private CSV file refused",
        wrong="A line with more or fewer cells than there are columns stops the run.",
        plant=partial(
            edited,
            private_csv.PrivateCsv,
            "_fitted",
            "if mended or not lost:",
            "if lost:\n            raise _too_long(self.path)\n        if mended or not lost:",
        ),
        check=READING,
    ),
    Fault(
        name="lines of a private CSV file skipped",
        wrong="A line that cannot be read is left out: which rows are next to each other follows from it.",
        plant=partial(edited, private_csv.PrivateCsv, "_fitted", "if mended or not lost:", "if True:"),
        check=READING,
    ),
    Fault(
        name="a quote that is never closed",
        wrong="An open quote takes the rest of a private CSV file for one cell.",
        plant=partial(edited, private_csv.PrivateCsv, "of", "if not has_sound_quotes(path, how):", "if False:"),
        check=READING,
    ),
    Fault(
        name="bytes that are no text refused",
        wrong="A cell of a private CSV file that is not UTF-8 stops the run.",
        plant=partial(
            edited,
            private_csv.PrivateCsv,
            "_readable",
            "if found is None else",
            "if found is None or found.validate(full=True) or column.validate(full=True) else",
        ),
        check=READING,
    ),
    Fault(
        name="a separator from the cells",
        wrong="Which character separates cells follows from all of a file, not from its header.",
        plant=partial(
            edited,
            dialect,
            "settle",
            '_separator_of(_header(start.decode(encoding, "replace")))',
            '_separator_of(start.decode(encoding, "replace"))',
        ),
        check=READING,
    ),
    Fault(
        name="an encoding from the cells",
        wrong="Which encoding a file has follows from all of it, not from its header.",
        plant=partial(
            edited,
            dialect,
            "_encoding_of",
            'line = start.lstrip(b"\\r\\n").partition(b"\\n")[0].partition(b"\\r")[0]',
            "line = start",
        ),
        check=READING,
    ),
    Fault(
        name="a cell of JSON that is no text",
        wrong="Half of a pair of surrogates in JSON lines stops the run.",
        plant=partial(edited, json_lines, "_cell", "text is not None and is_text(text)", "True"),
        check=READING,
    ),
    Fault(
        name="a line of JSON refused",
        wrong="A line that is no JSON stops the run.",
        plant=partial(
            edited,
            json_lines,
            "_object_or_nothing",
            "    except (ValueError, RecursionError):\n        return {}",
            "    finally:\n        pass",
        ),
        check=READING,
    ),
    Fault(
        name="names of JSON lines from the first line",
        wrong="The columns of JSON lines are the keys of the first object.",
        plant=partial(
            edited,
            json_lines,
            "read_private_json_lines",
            "if not names:",
            "if names:\n        return read_json_lines(path, encoding=encoding)\n    if not names:",
        ),
        check=READING,
    ),
    Fault(
        name="a cell of a workbook refused",
        wrong="A cell of a private workbook that cannot be read stops the run.",
        plant=partial(edited, excel, "_parsed", "if private:", "if False:"),
        check=READING,
    ),
    Fault(
        name="types of a workbook from its cells",
        wrong="The columns of a private workbook are numbers, if all of their cells are.",
        plant=partial(edited, excel, "read_excel", "return text if private else", "return"),
        check=READING,
    ),
    Fault(
        name="types of a Parquet file's dictionaries",
        wrong="What is in a dictionary keeps the type of its values, which follows from all of them.",
        plant=partial(edited, normalise, "_outermost_decoded", "if private else", "if False else"),
        check=READING,
    ),
    Fault(
        name="dictionaries of one part",
        wrong="A Parquet file that is read in parts has other types than one that is read whole.",
        plant=partial(edited, parquet_parts.ParquetParts, "_plain", "private=self._private", "private=False"),
        check=READING,
    ),
    Fault(
        name="text that is none refused",
        wrong="A text of a typed file that is not UTF-8 stops the run.",
        plant=partial(edited, normalise, "_text", "if private:", "if False:"),
        check=READING,
    ),
    Fault(
        name="a day outside of the calendar refused",
        wrong="A date before the year 1 or after 9999 stops the run.",
        plant=partial(
            edited,
            normalise,
            "_plain_column",
            "if private:\n            return _without",
            "if False:\n            return _without",
        ),
        check=READING,
    ),
    Fault(
        name="a column of strange days lost",
        wrong="Where one date lies outside of the calendar, all of its column become null.",
        plant=partial(
            edited,
            normalise,
            "_without_strange_days",
            "pc.less_equal(ticks, last))",
            "pc.all(pc.less_equal(ticks, last)))",
        ),
        check=READING,
    ),
    Fault(
        name="nullable where a cell is null",
        wrong="Whether a column of a file may be null follows from its cells.",
        plant=partial(edited, normalise, "normalise_table", "nullable=field.nullable", "nullable=plain.null_count > 0"),
        check=READING,
    ),
    Fault(
        name="a cell that is no text spoils its column",
        wrong="Where one text is not UTF-8 all are taken for null.",
        plant=partial(
            edited,
            odd_cells,
            "_text_of_bytes",
            "    return None",
            "    raise UnicodeDecodeError('utf-8', b'', 0, 0, '')",
        ),
        check=READING,
    ),
    Fault(
        name="Feather read as the owner's",
        wrong="A private Feather file is read like a public one: what its columns cannot hold stops the run.",
        plant=partial(edited, feather, "read_feather", "private=private)", "private=False)"),
        check=READING,
    ),
    Fault(
        name="Parquet read as the owner's",
        wrong="A private Parquet file is read like a public one: what its columns cannot hold stops the run.",
        plant=partial(edited, parquet, "read_parquet", "private=private)", "private=False)"),
        check=READING,
    ),
    Fault(
        name="a data frame's objects by their kind",
        wrong="The type of a pandas column of objects or of categories follows from what is in it.",
        plant=partial(edited, frames, "_read_pandas", "if private or has_spans", "if has_spans"),
        check=READING,
    ),
    Fault(
        name="an Arrow table read as the owner's",
        wrong="A private Arrow table is read like a public one: what its columns cannot hold stops the run.",
        plant=partial(edited, frames, "_read_arrow", "private=private", "private=False"),
        check=READING,
    ),
    Fault(
        name="a polars frame read as the owner's",
        wrong="A private polars frame is read like a public one: a strange day stops the run.",
        plant=partial(
            edited, frames, "_read_narwhal", "whole, where=WHERE, private=private", "whole, where=WHERE, private=False"
        ),
        check=READING,
    ),
    Fault(
        name="a database read as the owner's",
        wrong="A private table of DuckDB is read like a public one: a strange day stops the run.",
        plant=partial(edited, duckdb_file, "read_duckdb", "private=private)", "private=False)"),
        check=READING,
    ),
    Fault(
        name="a database in parts read as the owner's",
        wrong="A private table of DuckDB that is read in parts is read like a public one.",
        plant=partial(edited, duckdb_parts.DuckdbParts, "_plain", "private=self._private", "private=False"),
        check=READING,
    ),
    Fault(
        name="rows lost where parts are cut",
        wrong="The last rows of a table that is read in parts are left out.",
        plant=partial(edited, cutting, "cut_evenly", "if held or not given:", "if not given:"),
        check=READING,
    ),
    Fault(
        name="lines of a CSV file in parts refused",
        wrong="A line with more or fewer cells than there are columns stops a run that reads in parts.",
        plant=partial(edited, private_csv.PrivateCsv, "_batches", "block=self.block, lose=lose)", "block=self.block)"),
        check=READING,
    ),
    Fault(
        name="numbers through floats",
        wrong="Whole numbers beyond 2^53 are read as the nearest float.",
        plant=partial(
            edited,
            normalise,
            "_plain_column",
            "elif target != kind:",
            "elif pa.types.is_int64(kind):\n"
            "        column = pc.cast(column.cast(pa.float64(), safe=False), kind, safe=False)\n"
            "    elif target != kind:",
        ),
        check=READING,
    ),
)
