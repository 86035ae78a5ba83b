"""Columns in the SQL of data tests: how it names a declared column, and names that no tested table has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.compile.columns.find_columns import columns_of
from engine.compile.nodes.column_facts import InputColumns, Unresolved
from engine.compile.nodes.manifest import DataTest, Model, Node, Source
from engine.compile.output.infer_columns import source_columns
from engine.compile.sql.dialect import UNFORESEEN, parse_text
from engine.errors import Diagnostic, near

_WORD = re.compile(r"[A-Za-z_]\w*")


def column_in_sql(column: str, columns: Iterable[str]) -> str:
    """Return a name as SQL reads it (backquoted: as it is); with a dot it is a column, else a field of a struct."""
    if "`" in column:
        return column
    if column.lower() in {name.lower() for name in columns}:
        return _quote_name(column)
    parts = column.split(".")
    return ".".join(map(_quote_name, parts)) if all(map(_WORD.fullmatch, parts)) else f"`{column}`"


@lru_cache(maxsize=1024)
def _quote_name(name: str) -> str:
    if _WORD.fullmatch(name):
        try:
            tree = parse_text(f"select {name} from t where {name} = {name} group by {name}")  # noqa: S608
            item = tree.expressions[0]
        except (SqlglotError, *UNFORESEEN):
            item = None
        if isinstance(item, exp.Column) and item.name == name:
            return name
    return f"`{name}`"


def missing_columns(test: DataTest, tree: exp.Expr, text: str, tables: Mapping[str, InputColumns]) -> list[Diagnostic]:
    aliases = {
        table.alias: tables[name]
        for table in tree.find_all(exp.Table)
        if table.alias and (name := ".".join(part.name for part in table.parts)) in tables
    }
    unresolved = columns_of(tree, tables, {}, text).unresolved
    return [_missing(test, name, aliases, list(tables.values())) for name in unresolved]


def _missing(
    test: DataTest, unresolved: Unresolved, aliases: Mapping[str, InputColumns], tables: list[InputColumns]
) -> Diagnostic:
    qualifier, _, column = unresolved.name.rpartition(".")
    if qualifier in aliases:
        tables = [aliases[qualifier]]
    nodes = list(dict.fromkeys(table.node.partition(".")[2] for table in tables))
    reason = f"which '{nodes[0]}' does not have" if len(nodes) == 1 else "which none of its tables has"
    # A test that is a file of SQL.
    own_file = bool(test.positions.runs)
    message = f"the test '{test.name if own_file else test.kind}' names the column '{column}', {reason}"
    hint = near(column, [name for table in tables for name, _ in table.columns or ()])
    place = test.positions.locate(test.file, unresolved.offset) if own_file else test.location
    return Diagnostic("unknown-column", message, hint, node=test.model.partition(".")[2], location=place)


def missing_in_tests(tests: Iterable[Node], nodes: Mapping[str, Node]) -> Iterator[Diagnostic]:
    """Check tests that read several nodes, or are files of SQL, once all nodes are known."""
    for test in tests:
        if isinstance(test, DataTest):
            yield from _missing_in(test, nodes)


def _missing_in(test: DataTest, nodes: Mapping[str, Node]) -> list[Diagnostic]:
    tables: dict[str, InputColumns] = {}
    for parent in test.depends_on:
        node = nodes.get(parent)
        if isinstance(node, Source):
            tables[node.name] = source_columns(node)
        elif isinstance(node, Model):
            tables[str(node.relation)] = _model_columns(node)
    try:
        return missing_columns(test, parse_text(test.sql), test.sql, tables)
    except (SqlglotError, RecursionError):
        # The query was parsed when the test was made: a fault of it was reported there.
        return []


def _model_columns(model: Model) -> InputColumns:
    certain = not model.broken and any(column.sql or column.origins for column in model.columns)
    columns = tuple((column.name, column.type) for column in model.columns)
    return InputColumns(model.id, columns if certain else None, complete=certain)
