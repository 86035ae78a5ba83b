"""dbt's data tests: generic ones at their column or model, singular ones as files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from engine.project.yaml_text import Raw
from engine_import.dbt.compatible_macros import PACKAGES, provided
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.import_models import add_item
from engine_import.dbt.manifest.new_names import valid_name
from engine_import.dbt.manifest.read_manifest import DbtNode, mapping_of, text_of, texts_of
from engine_import.dbt.model_text import line_notes, query_text
from engine_import.dialects.syntax.warehouse_types import spark_type
from engine_import.output.import_report import ImportOutcome, plain
from engine_import.output.new_project import safe_folders

_BUILT_IN = frozenset(("not_null", "unique", "accepted_values", "relationships"))
_TEMPLATE = re.compile(r"\{[{%]")
# These set it themselves; the tests here give one row for each row that it counts.
_OWN_FAIL_CALC = frozenset(("dbt_utils.equality", "dbt_utils.equal_rowcount", "dbt_utils.fewer_rows_than"))
# Where a backslash in a string literal is an escape, dbt_expectations' regular expressions are written with two.
_ESCAPING = frozenset(("spark", "databricks", "snowflake", "bigquery"))


def read_generic_tests(context: ImportContext) -> None:
    own = {macro.name for macro in context.manifest.macros.values() if macro.package == context.manifest.project}
    for node in _tests(context):
        metadata = mapping_of(node.data, "test_metadata")
        if metadata:
            _read_generic(context, node, metadata, own)


def import_singular_tests(context: ImportContext) -> None:
    for node in _tests(context):
        if mapping_of(node.data, "test_metadata") or not node.code.strip():
            continue
        if (reason := _unsupported(node)) != "":
            add_item(context, node, ImportOutcome.NOT_IMPORTED, reason, kind="test")
            continue
        options = json.dumps(_options(node), ensure_ascii=False, default=str)
        config = f"{{{{ config({options.replace('null', 'none')}) }}}}\n" if _options(node) else ""
        path = "/".join(("tests", *safe_folders(node.path), f"{valid_name(node.name)}.sql"))
        query = query_text(context, node.code)
        text = f"{config}{query.text}\n"
        file = context.files.add(path, text)
        add_item(context, node, ImportOutcome.IMPORTED, kind="test", file=file, notes=tuple(line_notes(text, query)))


def _tests(context: ImportContext) -> Iterable[DbtNode]:
    project = context.manifest.project
    return (node for node in context.manifest.nodes.values() if node.kind == "test" and node.package == project)


def _read_generic(context: ImportContext, node: DbtNode, metadata: Mapping[str, Any], own: set[str]) -> None:
    tested = _tested(context, node, metadata)
    kind = _kind(context, metadata, own)
    reason = _unsupported(node) if kind not in _OWN_FAIL_CALC else ""
    if tested is None:
        reason = "the tested node is not imported"
    elif kind is None:
        package = text_of(metadata, "namespace")
        name = f"{package}.{text_of(metadata, 'name')}" if package else text_of(metadata, "name")
        reason = f"there is no test {plain(name)} here: write a macro test_{plain(text_of(metadata, 'name'))}"
    if reason or tested is None or kind is None:
        add_item(context, node, ImportOutcome.NOT_IMPORTED, reason, kind="test")
        return
    arguments = {
        key: _argument(context, value)
        for key, value in mapping_of(metadata, "kwargs").items()
        if key not in ("model", "column_name")
    }
    if kind.startswith("dbt_expectations."):
        arguments = _expected(context, arguments)
    options = {key: Raw(value) if key == "where" else value for key, value in _options(node).items()}
    test: Any = kind
    if arguments or options:
        test = {kind: {**({"arguments": arguments} if arguments else {}), **options}}
    column = text_of(node.data, "column_name") or text_of(mapping_of(metadata, "kwargs"), "column_name")
    context.column_tests[tested, column.strip('`"').casefold()].append(test)
    add_item(context, node, ImportOutcome.IMPORTED, kind="test")


def _tested(context: ImportContext, node: DbtNode, metadata: Mapping[str, Any]) -> str | None:
    """Return the id of what a generic test tests; None if that is not imported."""
    attached = text_of(node.data, "attached_node")
    if attached in context.names.models or attached in context.manifest.sources:
        return attached
    sources = [parent for parent in node.parents if parent in context.manifest.sources]
    asked = text_of(mapping_of(metadata, "kwargs"), "model")
    if "source(" in asked and sources:
        # The tested table comes last: what an argument names is read first.
        named = [i for i in sources if f"'{context.manifest.sources[i].name}'" in asked.replace('"', "'")]
        return named[0] if named else None
    models = [parent for parent in node.parents if parent in context.names.models]
    return models[-1] if models and "ref(" in asked else None


def _kind(context: ImportContext, metadata: Mapping[str, Any], own: set[str]) -> str | None:
    """The kind of a test as it is written here; None: there is no such macro."""
    name, package = text_of(metadata, "name"), text_of(metadata, "namespace")
    if package in PACKAGES and f"test_{name}" in provided(package):
        context.needed[package].add(f"test_{name}")
        return f"{package}.{name}"
    if package and package != context.manifest.project:
        return None
    if f"test_{name}" in own:
        return name
    return name if name in _BUILT_IN else None


def _argument(context: ImportContext, value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _argument(context, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_argument(context, inner) for inner in value]
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"\s*(ref|source)\(.*\)\s*", value, re.DOTALL):
        return context.names.in_code(value.strip())
    return Raw(context.names.in_template(value)) if _TEMPLATE.search(value) else value


def _expected(context: ImportContext, arguments: dict[str, Any]) -> dict[str, Any]:
    """Translate arguments of dbt_expectations: types of Spark, regular expressions without literal escapes."""

    def changed(key: str, value: Any) -> Any:
        if isinstance(value, list):
            return [changed(key, each) for each in value]
        if key in ("column_type", "column_type_list") and isinstance(value, str):
            return spark_type(value)
        literal = context.manifest.adapter in _ESCAPING and arguments.get("is_raw") is not True
        if key in ("regex", "regex_list") and isinstance(value, str) and literal:
            return re.sub(r"\\(.)", r"\1", value)
        return value

    return {key: changed(key, value) for key, value in arguments.items()}


def _options(node: DbtNode) -> dict[str, Any]:
    config, options = node.config, dict[str, Any]()
    if text_of(config, "severity").casefold() == "warn":
        options["severity"] = "warn"
    for key in ("where", "warn_if", "error_if"):
        if (value := text_of(config, key)) and value != "!= 0":
            options[key] = value
    limit = config.get("limit")
    if isinstance(limit, int) and not isinstance(limit, bool):
        options["limit"] = limit
    if config.get("store_failures") is True:
        options["store_failures"] = True
    if tags := texts_of(config, "tags"):
        options["tags"] = tags
    if meta := mapping_of(config, "meta"):
        options["meta"] = dict(meta)
    if description := node.text("description").strip():
        options["description"] = description
    return options


def _unsupported(node: DbtNode) -> str:
    calculation = text_of(node.config, "fail_calc")
    if calculation and calculation.replace(" ", "") != "count(*)":
        return f"fail_calc {plain(calculation)!r} is not supported: count the failing rows"
    return ""
