"""dbt's unit tests: given and expect have the same form here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from engine.project.yaml_text import yaml_text
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.import_models import add_item
from engine_import.dbt.manifest.new_names import valid_name
from engine_import.dbt.manifest.read_manifest import DbtNode, mapping_of, sequence_of, text_of, texts_of
from engine_import.output.import_report import ImportOutcome, plain

_THIS = "it gives rows of 'this': a model here reads each input once, and a step is a micro-batch"
_INCREMENTAL = "it replaces is_incremental(): there is one query, and its steps are micro-batches"
_ENVIRONMENT = "'env_vars' are not supported in unit tests"
_FIXTURE = "its fixture was not found in the manifest"
_GIVEN = "an input that it gives is not imported"


def import_unit_tests(context: ImportContext) -> None:
    by_model: dict[str, list[tuple[DbtNode, dict[str, Any]]]] = defaultdict(list)
    for node in context.manifest.unit_tests.values():
        if node.package != context.manifest.project:
            continue
        model = _model(context, node)
        test, reason = (None, "its model is not imported") if model is None else _test(context, node, model)
        if test is None or model is None:
            add_item(context, node, ImportOutcome.NOT_IMPORTED, reason, kind="unit test")
        else:
            by_model[model].append((node, test))
    for model, tests in sorted(by_model.items()):
        file = context.files.add(f"tests/unit/{model}.yml", yaml_text({"unit_tests": [test for _, test in tests]}))
        for node, test in tests:
            notes = ("left out until its model is decided",) if test.get("enabled") is False else ()
            add_item(context, node, ImportOutcome.IMPORTED, kind="unit test", file=file, notes=notes)


def _model(context: ImportContext, node: DbtNode) -> str | None:
    version = str(node.data.get("version") or "")
    return context.names.ref(node.text("model"), version=version)


def _test(context: ImportContext, node: DbtNode, model: str) -> tuple[dict[str, Any] | None, str]:
    overrides = mapping_of(node.data, "overrides")
    macros = mapping_of(overrides, "macros")
    if any(_is_incremental(name) and value is not False for name, value in macros.items()):
        return None, _INCREMENTAL
    if mapping_of(overrides, "env_vars"):
        return None, _ENVIRONMENT
    given, reason = _given(context, node)
    expected = _rows(mapping_of(node.data, "expect"))
    if given is None or expected is None:
        return None, reason or _FIXTURE
    test: dict[str, Any] = {"name": valid_name(node.name), "model": model}
    if description := node.text("description").strip():
        test["description"] = description
    if tags := texts_of(node.config, "tags"):
        test["tags"] = tags
    if meta := mapping_of(node.config, "meta"):
        test["meta"] = dict(meta)
    if model in context.drafts:
        test["enabled"] = False
    macros = {name: value for name, value in macros.items() if not _is_incremental(name)}
    replaced = {"vars": dict(mapping_of(overrides, "vars")), "macros": macros}
    if any(replaced.values()):
        test["overrides"] = {key: value for key, value in replaced.items() if value}
    return {**test, "given": given, "expect": expected}, ""


def _is_incremental(macro: str) -> bool:
    return macro.rpartition(".")[2] == "is_incremental"


def _given(context: ImportContext, node: DbtNode) -> tuple[list[dict[str, Any]] | None, str]:
    given = []
    for part in sequence_of(node.data, "given"):
        if not isinstance(part, dict):
            continue
        name = text_of(part, "input").strip()
        if name == "this":
            return None, _THIS
        rows = _rows(part)
        if rows is None:
            return None, f"{_FIXTURE}: {plain(text_of(part, 'fixture'))}"
        written = context.names.in_code(name)
        if written == name and not _is_known(context, name):
            return None, f"{_GIVEN}: {plain(name)}"
        given.append({"input": written, **rows})
    return given, ""


def _is_known(context: ImportContext, name: str) -> bool:
    known = {f"ref('{new}')" for new in context.names.models.values()}
    known |= {f"source('{group}', '{table}')" for group, table in context.names.sources.values()}
    return name.replace('"', "'") in known


def _rows(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the rows of a part; None if only the name of a fixture is known."""
    rows, form = part.get("rows"), text_of(part, "format") or "dict"
    if isinstance(rows, str):
        return {form if form in ("csv", "sql") else "csv": rows}
    if rows is None:
        return None if text_of(part, "fixture") else {"rows": []}
    return {"rows": list(rows)} if isinstance(rows, list) else None
