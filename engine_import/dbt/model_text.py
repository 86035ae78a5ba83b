"""The text of a model's file: a header made from dbt's settings, and its query in the names of the new project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from engine.project.yaml_section import is_name
from engine.project.yaml_text import Raw, yaml_text
from engine_import.dbt.compatible_macros import qualified
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.manifest.read_manifest import DbtNode, mapping_of, sequence_of, text_of, texts_of
from engine_import.dialects.syntax.warehouse_types import spark_type
from engine_import.dialects.translate import Translation, translated
from engine_import.output.import_report import plain
from engine_import.templates.template_parts import Piece, PieceKind, called, joined, pieces

# Settings of dbt that say nothing about a table here, or are carried over elsewhere.
_SILENT = frozenset(
    (
        "materialized", "tags", "meta", "description", "enabled", "schema", "alias", "pre-hook", "post-hook",
        "pre_hook", "post_hook", "full_refresh", "unique_key", "contract", "group", "access", "docs", "persist_docs",
        "columns",
        "incremental_strategy", "on_schema_change", "column_types", "quote_columns", "delimiter", "strategy",
        "updated_at", "check_cols", "target_schema", "target_database", "snapshot_meta_column_names", "file_format",
        "event_time", "packages", "latest_version", "versions", "partition_by", "static_analysis",
    )
)  # fmt: skip
_CONSTRAINTS = {"not_null": ["not_null"], "unique": ["unique"], "primary_key": ["not_null", "unique"]}
_CALL = re.compile(r"([A-Za-z_][\w.]*+)\s*+(\(?)")
_OF_VALUES = {"var", "env_var"}
_SPARK = ("spark", "databricks", "glue")


def model_text(header: Mapping[str, Any], query: str, comments: Iterable[str] = ()) -> str:
    said = "".join(f"# {line}\n".replace("*/", "* /") for line in comments)
    keys = yaml_text(header) if header else ""
    return f"/*---\n{said}{keys}---*/\n{query.strip()}\n" if said or keys else f"{query.strip()}\n"


def query_text(context: ImportContext, template: str, *, adapter: str | None = None) -> Translation:
    """Return a template of dbt without config(), with the new names and macros that exist here, in Spark's dialect.

    Args:
        context: the import.
        template: SQL with Jinja.
        adapter: the warehouse it was written for, if it is not that of the manifest.
    """
    kept: list[Piece] = []
    for piece in pieces(template):
        is_config = piece.part is PieceKind.EXPRESSION and called(piece.inner) == "config"
        if not is_config:
            kept.append(piece)
    text = context.names.in_template(qualified(joined(kept), context.needed, context.manifest))
    return translated(text.strip(), context.manifest.adapter if adapter is None else adapter)


def line_notes(file_text: str, query: Translation) -> list[str]:
    before = file_text[: max(file_text.find(query.text), 0)].count("\n")
    return [plain(f"line {before + note.line}: {note.message}") for note in query.notes]


def common_header(context: ImportContext, node: DbtNode) -> dict[str, Any]:
    header: dict[str, Any] = {}
    if description := node.text("description").strip():
        header["description"] = description
    if tags := texts_of(node.config, "tags") or texts_of(node.data, "tags"):
        header["tags"] = list(dict.fromkeys(tags))
    if meta := _meta(context, node):
        header["meta"] = meta
    return header


def table_header(context: ImportContext, node: DbtNode, notes: list[str], *, stored: bool) -> dict[str, Any]:
    """Return the keys of place, hooks, columns and tests; appends to `notes` what is different now."""
    header: dict[str, Any] = {}
    _place(context, node, header, notes)
    for key in ("pre", "post"):
        hooks = [Raw(sql) for sql in hook_texts(context, node, f"{key}-hook")]
        if calls := sorted({call for sql in hooks for call in _calls(sql)}):
            notes.append(
                plain(f"{key}-hook is left out: a hook here can use this, var() and env_var(), not {calls[0]}")
            )
        elif hooks:
            header[f"{key}_hook"] = hooks
    if stored and node.config.get("full_refresh") is False:
        header["full_refresh"] = False
    if stored and context.manifest.adapter in _SPARK and (parts := _columns_of(node, "partition_by")):
        header["partition_by"] = parts
    elif node.config.get("partition_by"):
        notes.append("partition_by is not carried over: write it in the header's form")
    contract = mapping_of(node.config, "contract").get("enforced") is True
    if columns := columns_of(context, node, notes, contract=contract):
        header["columns"] = columns
    if contract:
        header["contract"] = True
    if tests := context.column_tests.get((node.id, "")):
        header["data_tests"] = tests
    _note_settings(node, notes)
    return header


def columns_of(context: ImportContext, node: DbtNode, notes: list[str], *, contract: bool = False) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    absent = context.absent[node.id]
    if absent:
        lost = sum(len(context.column_tests.get((node.id, name), ())) for name in absent)
        tests = f", with {lost} test{'' if lost == 1 else 's'}" if lost else ""
        notes.append(plain(f"the query does not return {', '.join(sorted(absent))}: left out of the columns{tests}"))
    for name, column in mapping_of(node.data, "columns").items():
        if isinstance(column, dict) and name.casefold() not in absent:
            columns[name] = _column(context, node, (name, column), notes, contract=contract)
    # dbt tests columns that it has no entry for, as well.
    described = {name.casefold() for name in columns} | absent
    for (tested, folded), listed in context.column_tests.items():
        if tested == node.id and folded and folded not in described:
            columns[folded] = {"tests": listed}
    return {name: entry for name, entry in columns.items() if entry or contract}


def _column(
    context: ImportContext, node: DbtNode, named: tuple[str, Mapping[str, Any]], notes: list[str], *, contract: bool
) -> dict[str, Any]:
    name, column = named
    tests = list(context.column_tests.get((node.id, name.casefold()), ()))
    entry: dict[str, Any] = {}
    if description := text_of(column, "description").strip():
        entry["description"] = description
    if contract and (kind := text_of(column, "data_type")):
        entry["type"] = spark_type(kind)
        tests += _constraint_tests(name, column, tests, notes)
    meta = {**mapping_of(mapping_of(column, "config"), "meta"), **mapping_of(column, "meta")}
    if tags := texts_of(column, "tags"):
        meta.setdefault("tags", tags)
    if meta:
        entry["meta"] = meta
    if tests:
        entry["tests"] = tests
    return entry


def hook_texts(context: ImportContext, node: DbtNode, key: str) -> list[str]:
    hooks = []
    for hook in sequence_of(node.config, key):
        sql = text_of(hook, "sql") if isinstance(hook, dict) else hook
        if isinstance(sql, str) and sql.strip():
            hooks.append(query_text(context, sql).text)
    return hooks


def _calls(template: str) -> set[str]:
    """Return what a template uses that values of a header cannot: other functions, and blocks."""
    code = [piece for piece in pieces(template) if piece.part in (PieceKind.EXPRESSION, PieceKind.BLOCK)]
    names = {name for piece in code for name, called in _CALL.findall(piece.inner) if called}
    return {f"{name}()" for name in names - _OF_VALUES} | {
        piece.text for piece in code if piece.part is PieceKind.BLOCK
    }


def _meta(context: ImportContext, node: DbtNode) -> dict[str, Any]:
    meta = {**mapping_of(node.data, "meta"), **mapping_of(node.config, "meta")}
    group = node.text("group") or text_of(node.config, "group")
    if group:
        meta.setdefault("group", group)
        if owner := context.manifest.groups.get(group):
            meta.setdefault("owner", owner)
    return meta


def _place(context: ImportContext, node: DbtNode, header: dict[str, Any], notes: list[str]) -> None:
    schema, alias = text_of(node.config, "schema"), text_of(node.config, "alias") or node.text("alias")
    if schema and is_name(schema):
        header["schema"] = schema
    elif schema:
        notes.append(
            f"the schema {plain(schema)!r} is not carried over: a name here is lower-case letters, digits and _"
        )
    if alias and alias != context.names.models.get(node.id) and is_name(alias):
        header["alias"] = alias
    if text_of(node.config, "database"):
        notes.append("the database is not carried over: the catalog is set in the target")


def _columns_of(node: DbtNode, key: str) -> list[str]:
    value = node.config.get(key)
    columns = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return columns if all(isinstance(column, str) and re.fullmatch(r"\w+", column) for column in columns) else []


def _constraint_tests(name: str, column: Mapping[str, Any], tests: list[Any], notes: list[str]) -> list[Any]:
    kinds = [
        text_of(constraint, "type") for constraint in sequence_of(column, "constraints") if isinstance(constraint, dict)
    ]
    wanted = [test for kind in kinds for test in _CONSTRAINTS.get(kind, ())]
    lost = sorted({kind for kind in kinds if kind not in _CONSTRAINTS})
    if lost:
        notes.append(f"constraints of {plain(name)} are not carried over: {plain(', '.join(lost))}")
    return [test for test in dict.fromkeys(wanted) if test not in tests]


def _note_settings(node: DbtNode, notes: list[str]) -> None:
    given = mapping_of(node.data, "unrendered_config")
    lost = sorted(key.lstrip("+") for key, value in given.items() if key.lstrip("+") not in _SILENT and value)
    if lost:
        notes.append(plain(f"settings without a counterpart: {', '.join(lost)}"))
