"""What a query reads, by DuckDB's own parser, which takes nothing but queries here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import RunError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What makes the rows of a table others than its first ones.
_MORE = ("where_clause", "group_expressions", "group_sets", "having", "sample", "qualify")


@dataclass(frozen=True, slots=True)
class TableName:
    catalog: str
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """`first_rows`: so many of the first rows of one table as they are; None: it reads all rows."""

    tables: tuple[TableName, ...]
    first_rows: int | None


def read_statement(connection: DuckDBPyConnection, sql: str) -> SelectStatement:
    """Read one query. Raises RunError: `sql-query`: it is none, more than one, or a statement that is not a query."""
    serialized = connection.execute("select json_serialize_sql(?::varchar)", [sql]).fetchone()
    parsed = json.loads(serialized[0]) if serialized else {}
    if parsed["error"]:
        if parsed["error_type"] == "parser":
            raise query_error(parsed["error_message"])
        raise RunError("sql-query", "only queries are run here: SELECT, WITH, VALUES, DESCRIBE or SUMMARIZE", _WRITES)
    if len(parsed["statements"]) != 1:
        raise RunError("sql-query", f"{len(parsed['statements'])} statements where one query is expected", _ONE)
    tree = parsed["statements"][0]["node"]
    nodes = list(_nodes(tree))
    if any(node.get("type") == "SHOW_REF" and node.get("table_name") for node in nodes):
        raise RunError("sql-query", "SHOW would list DuckDB's own tables", "List the stored tables: engine sql '\\d'.")
    tables = [
        TableName(node["catalog_name"], node["schema_name"], node["table_name"])
        for node in nodes
        if node.get("type") == "BASE_TABLE"
    ]
    return SelectStatement(tuple(dict.fromkeys(tables)), _first_rows(tree))


_WRITES = "Tables are written by models alone: engine build."
_ONE = "Run one query at a time."


def query_error(message: str) -> RunError:
    text = " ".join(message.partition("\n\nLINE ")[0].partition("\nDid you mean")[0].split())
    return RunError("sql-query", f"the query fails: {text}", "Correct it; the dialect is DuckDB's.")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)


def _first_rows(tree: dict[str, Any]) -> int | None:
    """The rows that `select columns from table limit n` takes; None for all other queries."""
    source, modifiers = tree.get("from_table") or {}, tree.get("modifiers", [])
    is_plain_select = (
        tree.get("type") == "SELECT_NODE"
        and source.get("type") == "BASE_TABLE"
        and source.get("sample") is None
        and not tree["cte_map"]["map"]
        and not any(tree.get(key) for key in _MORE)
        and tree["aggregate_handling"] == "STANDARD_HANDLING"
        and all(map(_is_columns, tree["select_list"]))
        and [modifier["type"] for modifier in modifiers] == ["LIMIT_MODIFIER"]
    )
    if not is_plain_select:
        return None
    limit, offset = modifiers[0]["limit"], modifiers[0]["offset"]
    counts = [_constant(limit), _constant(offset) if offset else 0]
    return None if None in counts else sum(count or 0 for count in counts)


def _is_columns(item: dict[str, Any]) -> bool:
    return item["class"] == "COLUMN_REF" or (
        item["class"] == "STAR" and not item["replace_list"] and not item["columns"]
    )


def _constant(node: dict[str, Any] | None) -> int | None:
    value = node.get("value", {}).get("value") if node and node.get("class") == "CONSTANT" else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
