"""dbt's seeds as sources of CSV files, and a table of each that ref() finds."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from engine.errors import ProjectError
from engine.project.yaml_section import is_name
from engine.project.yaml_text import yaml_text
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.import_models import add_item
from engine_import.dbt.manifest.new_names import SEEDS
from engine_import.dbt.manifest.read_manifest import DbtNode, mapping_of, text_of
from engine_import.dbt.model_text import common_header, model_text, table_header
from engine_import.dialects.syntax.warehouse_types import spark_type
from engine_import.output.import_report import ImportOutcome, plain
from engine_import.output.input_folder import read_bounded

MOST_BYTES = 64 * 2**20
_ROWS = 10_000
_COLUMNS = 1_000
# By what all values of a column look like; the first that fits, in the forms that dbt takes. 0042 stays a string.
_LOOKS = (
    ("bigint", re.compile(r"-?(0|[1-9]\d{0,17})")),
    ("double", re.compile(r"-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?")),
    ("date", re.compile(r"\d{4}-\d\d?-\d\d?")),
    (
        "timestamp",
        re.compile(
            r"\d{4}-\d\d?-\d\d? \d\d?:\d\d?:\d\d?|\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[-+]\d\d:\d\d)?"
        ),
    ),
    ("boolean", re.compile(r"true|false", re.IGNORECASE)),
)
_NUMBERS = re.compile(r"-?\d+(\.\d*)?")
# dbt reads it as no value.
_NULL = "null"
_MISSING = "its CSV file was not found next to the manifest: put it at {} and declare its columns in sources/seeds.yml"


def import_seeds(context: ImportContext) -> None:
    project = context.manifest.project
    seeds = [node for node in context.manifest.nodes.values() if node.kind == "seed" and node.package == project]
    if seeds:
        tables = [_import(context, node) for node in seeds]
        source = {"name": SEEDS, "description": "The seeds of dbt: CSV files.", "tables": tables}
        context.files.add(f"sources/{SEEDS}.yml", yaml_text({"sources": [source]}))


def _import(context: ImportContext, node: DbtNode) -> dict[str, Any]:
    name, notes = context.names.models[node.id], list[str]()
    path = f"seeds/{name}.csv"
    content = _content(context, node, notes)
    separator = text_of(node.config, "delimiter") or ","
    table: dict[str, Any] = {"name": name, "format": "csv", "path": path, "stream": False}
    options = {"header": True, **({"sep": separator} if separator != "," else {})}
    table["options"] = options
    if content is None:
        notes.append(_MISSING.format(path))
        table["schema"] = _described(node)
    else:
        context.files.add(path, _filled(content, separator, notes))
        rows = _rows(content, separator)
        table["schema"] = _schema(node, rows, notes)
        if any("\n" in value for row in rows for value in row):
            options["multiLine"] = True
        if nulls := sorted({value for row in rows for value in row if value.casefold() == _NULL}):
            options["nullValue"] = nulls[0]
            if nulls[1:]:
                notes.append(
                    f"dbt reads {plain(', '.join(nulls[1:]))} as NULL, too; here it is a string: write {nulls[0]}"
                )
    header = {**common_header(context, node), "materialized": "table"}
    header |= table_header(context, node, notes, stored=True)
    query = f"select * from {{{{ source('{SEEDS}', '{name}') }}}}"  # noqa: S608 - text of a file
    file = context.files.add(f"models/{SEEDS}/{name}.sql", model_text(header, query))
    outcome = ImportOutcome.IMPORTED if content is not None else ImportOutcome.DRAFT
    add_item(context, node, outcome, notes[-1] if content is None else "", file=file, notes=tuple(notes))
    return table


def _content(context: ImportContext, node: DbtNode, notes: list[str]) -> bytes | None:
    if PurePosixPath(node.file).suffix != ".csv":
        return None
    try:
        return read_bounded(context.root, node.file, MOST_BYTES)
    except ProjectError as error:
        notes.append(plain(error.diagnostic.message))
        return None


def _filled(content: bytes, separator: str, notes: list[str]) -> bytes:
    """Fill up rows that lack their last values with empty ones, as dbt reads them."""
    try:
        text = content.decode("utf-8-sig")
        width = len(next(_records(text, separator), ()))
        short = sum(0 < len(row) < width for row in _records(text, separator))
    except (UnicodeDecodeError, csv.Error):
        return content
    if not short:
        return content
    notes.append(
        f"{short} row{'' if short == 1 else 's'} had fewer values than columns: filled up in the file, as dbt does"
    )
    written = io.StringIO(newline="")
    rows = (row + [""] * (width - len(row)) for row in _records(text, separator) if row)
    csv.writer(written, delimiter=separator[:1], lineterminator="\n").writerows(rows)
    return written.getvalue().encode()


def _records(text: str, separator: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator[:1])


def _rows(content: bytes, separator: str) -> list[list[str]]:
    try:
        return list(islice(_records(content.decode("utf-8-sig", "replace"), separator), _ROWS + 1))
    except csv.Error:
        return []


def _schema(node: DbtNode, rows: list[list[str]], notes: list[str]) -> str:
    """Return the columns with their types: as dbt declares them, else guessed from the values."""
    declared = {key.casefold(): value for key, value in mapping_of(node.config, "column_types").items()}
    names = rows[0][:_COLUMNS] if rows else ["value"]
    columns = []
    for number, name in enumerate(names):
        kind = declared.get(name.casefold())
        values = [row[number] for row in rows[1:] if number < len(row) and row[number].casefold() not in ("", _NULL)]
        written = spark_type(kind) if isinstance(kind, str) else _type(values)
        columns.append(f"{_quoted(name, number)} {written}")
        if kind is None and written == "string" and values and all(map(_NUMBERS.fullmatch, values)):
            shown = next(value for value in values if _type([value]) == "string")
            notes.append(plain(f"{name} stays a string, so that {shown} keeps its zeros; dbt makes a number of it"))
    return ", ".join(columns)


def _described(node: DbtNode) -> str:
    kinds = {key: value for key, value in mapping_of(node.config, "column_types").items() if isinstance(value, str)}
    kinds |= {name: kinds.get(name, "string") for name in mapping_of(node.data, "columns")}
    columns = [f"{_quoted(name, number)} {spark_type(kind)}" for number, (name, kind) in enumerate(kinds.items())]
    return ", ".join(columns[:_COLUMNS]) or "value string"


def _quoted(name: str, number: int) -> str:
    plain_name = re.sub(r"[`\x00-\x1f]", "_", name.strip()) or f"column_{number + 1}"
    return plain_name if is_name(plain_name) else f"`{plain_name}`"


def _type(values: Sequence[str]) -> str:
    return next((kind for kind, look in _LOOKS if values and all(map(look.fullmatch, values))), "string")
