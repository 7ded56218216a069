"""``privspan columns``: a first schema file for a table, to look at and to edit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from privspan._lib.whole_file import whole_file
from privspan.cli import _console
from privspan.cli._groups import TextForm
from privspan.cli._options import Overwrite, check_target, grouped, output_to
from privspan.cli._place import Database, TableFile, table_place
from privspan.cli._progress import activity
from privspan.cli._table import given_table, leftovers_noted


@grouped
def columns(
    form: TextForm,
    database: Database,
    file: TableFile = None,
    output: Annotated[Path | None, output_to("The .toml file to write; by default standard output.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a schema of a table: the type of each column, to look at and to edit.

    Then say with --schema that it holds. For a CSV file the draft is made by
    looking at the data: it is for the eyes of whoever keeps the data, and
    NOT private.

    Example:

    privspan columns people.csv -o people.toml
    """
    from privspan.rows import Schema, draft_schema

    place = table_place(file, database)
    check_target(output, "-o", (".toml",), spare={"the table": place.path}, overwrite=overwrite)
    declared = Schema().but(**vars(form))
    with activity(f"Looking at {place.name}"), given_table(place) as given, leftovers_noted():
        text = draft_schema(given, declared, query=place.query, table=place.table)
    if output is None:
        sys.stdout.write(text)
    else:
        with whole_file(output, overwrite=overwrite) as handle:
            handle.write(text.encode())
        _console.note(f"Wrote {output}. Look at it, and say with --schema {output} that it holds.")
