"""Rows as unit tests have them: mappings, CSV text, or a query."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.compile.nodes.unit_test_steps import Rows
from engine.compile.sql.determinism import deterministic
from engine.compile.sql.dialect import parse_text
from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.test_nodes.coerce_values import fit_row, natural_type
from engine.compile.types import spark_types
from engine.errors import Location, near
from engine.project import LoadedProject
from engine.project.parse_yaml import Yaml
from engine.project.yaml_section import UNKNOWN, Section
from engine.schema.unit_test_keys import ROWS

# Each gives all rows.
_WHOLE = ("rows", "csv", "sql", "fixture")
Known = Mapping[str, tuple[str, str | None]]

_QUERY = re.compile(r"\s*(select|with|values|from)\b", re.IGNORECASE)


def columns_known(columns: Mapping[str, str | None] | None) -> Known | None:
    if not columns:
        return None
    return {name.lower(): (name, spark_types.normal(kind) if kind else None) for name, kind in columns.items()}


def read_rows(part: Section, columns: Known | None, owner: str, project: LoadedProject) -> Rows:
    """The rows of a mapping list, CSV text, a query, `{sql: ..}` or dbt's `{rows, format}`."""
    if not isinstance(part.value, dict):
        return _rows(part, columns, owner, "")
    part.check_keys(ROWS, more=("input",))
    _check_one_form(part)
    form = part.child("format")
    if (fixture := part.child("fixture")) is not None:
        if form is not None:
            form.choice("csv")
        inner = _fixture(fixture, project)
        return _rows(inner, columns, owner, "csv") if inner else Rows()
    row_format = form.choice("dict", "csv", "sql") if form else ""
    for key in ("sql", "csv"):
        if (inner := part.child(key)) is not None:
            return _rows(inner, columns, owner, key)
    body = part.child("rows")
    return _rows(body, columns, owner, row_format) if body else Rows()


def _check_one_form(part: Section) -> None:
    """Report a second set of rows: only one of them would count."""
    first, *other_forms = [inner for key in _WHOLE if (inner := part.child(key)) is not None] or [part]
    for other in other_forms:
        message = f"'{first.name}' and '{other.name}' exclude each other"
        other.report("setting-conflict", message, "Keep one of them.", at_key=True)


def _fixture(part: Section, project: LoadedProject) -> Section | None:
    name = part.text()
    files = {file: PurePosixPath(file).stem for file in project.fixtures}
    matching = [file for file in files if files[file] == name]
    if len(matching) == 1:
        # YAML puts the text of a block one line below its `|`, so line 0 makes the header of the CSV file line 1.
        place = Location(matching[0], 0, 1)
        return Section(
            Yaml(None, place.file, origin=place), (), project.texts[matching[0]], part.diagnostics, part.node
        )
    if matching:
        part.report("bad-value", f"there are several fixtures '{name}'", f"Rename one of {', '.join(matching)}.")
    elif name:
        hint = near(name, files.values()) or f"Write the rows to {project.paths['tests']}/fixtures/{name}.csv."
        part.report("bad-value", f"fixture '{name}' not found", hint)
    return None


def _rows(part: Section, columns: Known | None, owner: str, form: str) -> Rows:
    if part.value is None or part.value is UNKNOWN:
        return Rows()
    if isinstance(part.value, str):
        if form == "sql" or (not form and _QUERY.match(part.value)):
            return _query(part, columns, owner)
        part = _csv(part)
    elif form in {"csv", "sql"}:
        part.expected("text")
        return Rows()
    rows = []
    for item in part.items():
        if isinstance(item.value, dict):
            rows.append(fit_row(item, columns, owner))
        else:
            item.expected("a row such as {id: 1, name: x}")
    return Rows(_typed_columns(rows, columns), tuple(rows))


def _typed_columns(rows: list[dict[str, Any]], columns: Known | None) -> tuple[tuple[str, str | None], ...]:
    names = dict.fromkeys(name for row in rows for name in row)
    if columns is not None:
        return tuple((name, columns[name.lower()][1]) for name in names)
    return tuple((n, next((k for r in rows if (k := natural_type(r.get(n)))), "string")) for n in names)


def _csv(part: Section) -> Section:
    """CSV text as a list of mappings, each row with its line; an empty cell is NULL."""
    lines = part.value.strip("\n").splitlines()
    table = list(csv.reader(io.StringIO("\n".join(line.strip() for line in lines)), skipinitialspace=True))
    header = [name.strip() for name in table[0]] if table else []
    # The text of a block begins on the line below its sign.
    first = part.place.line + (1 if "\n" in part.value.rstrip("\n") or part.value.endswith("\n") else 0)
    places: dict[tuple[str | int, ...], Location] = {}
    rows: list[dict[str, Any]] = []
    for number, cells in enumerate(table[1:], 1):
        if not cells:
            continue
        places[(len(rows),)] = Location(part.place.file, first + number, part.place.column)
        rows.append({name: cell.strip() or None for name, cell in zip(header, cells, strict=False)})
        if len(cells) != len(header):
            place = Section(Yaml(rows, part.doc.file, places), (len(rows) - 1,), rows[-1], part.diagnostics, part.node)
            place.report("unit-test-value", f"the row has {len(cells)} values for {len(header)} columns")
    return Section(Yaml(rows, part.doc.file, places, origin=part.place), (), rows, part.diagnostics, part.node)


def _query(part: Section, declared: Known | None, owner: str) -> Rows:
    text = part.value.strip().rstrip(";")
    try:
        tree = parse_text(text)
    except SqlglotError as error:
        part.report(
            "sql-syntax",
            f"the rows are not valid SQL: {str(error).splitlines()[0]}",
            "Write exactly one SELECT statement.",
        )
        return Rows()
    if not isinstance(tree, exp.Query):
        part.report("not-a-query", "the text under 'sql:' is not a query", "Write exactly one SELECT statement.")
        return Rows()
    names = [name for name in tree.named_selects if name and name != "*"]
    columns: tuple[tuple[str, str | None], ...] = tuple((name, None) for name in names)
    if declared is not None:
        columns = tuple(declared.values())
    for name in names:
        if declared is not None and name.lower() not in declared:
            hint = near(name, [column for column, _ in columns])
            part.report("unknown-column", f"{owner} has no column '{name}'", hint)
    lower_names = {name.lower() for name in names}
    row_columns = tuple(c for c in columns if c[0].lower() in lower_names) if lower_names else columns
    return Rows(row_columns, sql=text, deterministic=_reads_nothing(tree))


def _reads_nothing(tree: exp.Query) -> bool:
    """Whether a query of rows reads no table, no clock and no random number."""
    nodes = QueryNodes.of_tree(tree)
    ctes = {cte.alias.lower() for cte in nodes.every(exp.CTE)}
    tables = (table for table in nodes.every(exp.Table) if isinstance(table.this, exp.Identifier))
    return deterministic(nodes) and all(len(t.parts) == 1 and t.name.lower() in ctes for t in tables)
