"""The import of a dbt project: read the manifest, write a project, compile it, report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from engine.errors import ProjectError
from engine.project.parse_yaml import load_yaml
from engine.project.yaml_text import yaml_text
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.import_exposures import import_exposures
from engine_import.dbt.import_macros import import_macros
from engine_import.dbt.import_models import add_item, import_models
from engine_import.dbt.import_seeds import import_seeds
from engine_import.dbt.import_snapshots import import_snapshots
from engine_import.dbt.import_sources import import_sources
from engine_import.dbt.import_tests import import_singular_tests, read_generic_tests
from engine_import.dbt.import_unbuilt import import_analyses, import_run_hooks
from engine_import.dbt.import_unit_tests import import_unit_tests
from engine_import.dbt.manifest.new_names import new_names, valid_name
from engine_import.dbt.manifest.read_manifest import NEWEST, DbtManifest, mapping_of, read_manifest
from engine_import.dialects.translate import WAREHOUSES
from engine_import.output.compiled_project import Errors, compile_errors
from engine_import.output.import_report import ImportOutcome, ImportReport, Item, plain
from engine_import.output.input_folder import read_bounded
from engine_import.output.new_project import check_empty

_FILE = "dbt_project.yml"


_MOST_BYTES = 2**20


_WITHOUT = (
    "dbt_project.yml was not found next to target/, so no variables are imported: set them under 'vars:' in project.yml"
)


IGNORED = "/target/\n/.engine/\n"


REPORT = "import-report"
_NOT_CARRIED = {
    "metrics": "metrics are not imported: a model can compute them",
    "semantic_models": "semantic models are not imported: a model can compute the same metrics",
    "saved_queries": "saved queries are not imported: engine show --inline runs a query",
    "functions": "functions are not imported: write them as macros",
}
_OPERATION = "an operation: engine show --inline runs a query"


def import_dbt(target: Path, out: Path, *, incremental: Literal["draft", "table"] = "draft") -> ImportReport:
    """Import a dbt project into a new folder.

    Raises:
        UsageError: the folder is not empty.
        ProjectError: `import-unreadable`, `import-version`; `target-link`, `target-unwritable`.
    """
    check_empty(out)
    manifest = read_manifest(target)
    context = ImportContext(manifest, target.resolve().parent, new_names(manifest), incremental)
    _convert(context)
    if absent := _absent(context):
        context = replace(ImportContext(manifest, context.root, context.names, incremental), absent=absent)
        _convert(context)
    context.files.write(out)
    _judge(context, out)
    report = _report(context)
    context.files.files = {f"{REPORT}.json": report.to_json(), f"{REPORT}.md": report.to_markdown()}
    context.files.write_more(out)
    return report


def _absent(context: ImportContext) -> dict[str, set[str]]:
    """Return described columns that the query lacks, by node: dbt ignores them, here they are errors."""
    with TemporaryDirectory(prefix="import-") as folder:
        context.files.write(Path(folder))
        tables = {name: draft.as_table for name, draft in context.drafts.items()}
        absent = compile_errors(Path(folder), tables).absent
    ids = {name: key for key, name in context.names.models.items()}
    found = {ids[name]: {column.casefold() for column in columns} for name, columns in absent.items()}
    return defaultdict(set, found) if found else {}


def _convert(context: ImportContext) -> None:
    # Tests first: they are written into the headers of what they test.
    read_generic_tests(context)
    import_models(context)
    import_snapshots(context)
    import_seeds(context)
    import_sources(context)
    import_singular_tests(context)
    import_unit_tests(context)
    import_exposures(context)
    import_analyses(context)
    import_run_hooks(context)
    import_macros(context)
    import_settings(context)
    context.files.files[".gitignore"] = IGNORED
    for node in context.manifest.nodes.values():
        if node.kind == "sql_operation" and node.package == context.manifest.project:
            add_item(context, node, ImportOutcome.NOT_IMPORTED, _OPERATION)


def _judge(context: ImportContext, out: Path) -> None:
    """Compile the new project with drafts as tables, and each draft as a stream as well."""
    tables = {name: draft.as_table for name, draft in context.drafts.items()}
    streams = {name: draft.as_stream for name, draft in context.drafts.items() if draft.as_stream}
    errors = compile_errors(out, tables)
    streamed = compile_errors(out, tables | streams) if streams else Errors()
    drafts = {draft.node: name for name, draft in context.drafts.items()}
    for key, item in context.items.items():
        if item.outcome is ImportOutcome.IMPORTED and item.file:
            judged = _judged(context, key, item, errors, drafts)
            context.items[key] = replace(judged, notes=(*judged.notes, *_strings(errors, item.file)))
        elif key in drafts:
            notes = [_verdict("as a table", errors, item.file)]
            if drafts[key] in streams:
                notes.append(_verdict("as a stream, with the keys in its comment,", streamed, item.file))
            context.items[key] = replace(item, notes=(*item.notes, *notes, *_strings(errors, item.file)))
    context.notes += [plain(str(error)) for error in errors.elsewhere(item.file for item in context.items.values())]


def _strings(errors: Errors, file: str) -> tuple[str, ...]:
    return tuple(
        plain(f"line {found.location.line}: {found.message}. {found.hint}" if found.location else found.message)
        for found in errors.strings.get(file, ())
    )


def _judged(context: ImportContext, key: str, item: Item, errors: Errors, drafts: dict[str, str]) -> Item:
    node = context.manifest.nodes.get(key)
    if item.kind in ("model", "seed", "source") or (item.kind == "test" and item.file.endswith(".sql")):
        found = errors.of(item.file)
        if found:
            first = found[0]
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            place = f"line {first.location.line}: " if first.location else ""
            reason = plain(f"{place}{first.message}{more}. {first.hint}")
            return replace(item, outcome=ImportOutcome.FAILS, reason=reason, code=first.code)
    if item.kind == "model" and node is not None:
        waits = [drafts[parent] for parent in node.parents if parent in drafts]
        notes = (f"reads {', '.join(waits)}, still a draft",) if waits else ()
        return replace(item, outcome=ImportOutcome.COMPILES, notes=(*item.notes, *notes))
    return item


def _verdict(how: str, errors: Errors, file: str) -> str:
    found = errors.of(file)
    return f"{how} it compiles" if not found else plain(f"{how} it does not compile: {found[0].message}")


def _report(context: ImportContext) -> ImportReport:
    manifest = context.manifest
    facts = {"dbt_version": manifest.dbt, "manifest_version": f"v{manifest.version}", "adapter": manifest.adapter}
    order = list(ImportOutcome)
    items = sorted(context.items.values(), key=lambda item: (item.kind != "model", order.index(item.outcome)))
    return ImportReport("dbt", manifest.project, facts, items, [*_notes(manifest), *context.notes])


def _notes(manifest: DbtManifest) -> list[str]:
    notes = [f"{number} {_NOT_CARRIED[kind]}" for kind, number in manifest.not_carried.items()]
    notes += map(plain, manifest.rebuilt)
    if manifest.version > NEWEST:
        notes.append(f"the manifest is of schema v{manifest.version}; v{NEWEST} is the newest that is known")
    if manifest.disabled:
        notes.append(f"{len(manifest.disabled)} nodes are disabled in dbt and not imported")
    foreign = sorted(
        {n.package for n in manifest.nodes.values() if n.kind == "model" and n.package != manifest.project}
    )
    if foreign:
        notes.append(f"models of packages are not imported: {plain(', '.join(foreign))}")
    if manifest.adapter in WAREHOUSES:
        notes.append(
            f"the SQL was translated from the dialect of {manifest.adapter}: notes name lines whose rows may differ; "
            "compare results"
        )
    elif manifest.adapter not in ("", "spark", "databricks"):
        notes.append(
            f"the SQL was written for {plain(manifest.adapter)}: functions that Spark lacks are reported, but a "
            "function with the same name may compute something else; compare results"
        )
    return notes


def import_settings(context: ImportContext) -> None:
    project: dict[str, Any] = {"name": valid_name(context.manifest.project or "imported")}
    if values := _variables(context):
        project["vars"] = values
    context.files.add("project.yml", yaml_text(project))


def _variables(context: ImportContext) -> dict[str, Any]:
    try:
        content = read_bounded(context.root, _FILE, _MOST_BYTES)
    except ProjectError as error:
        context.notes.append(plain(error.diagnostic.message))
        return {}
    if content is None:
        context.notes.append(_WITHOUT)
        return {}
    parsed, findings = load_yaml(content.decode("utf-8", "replace"), _FILE)
    if findings or not isinstance(parsed.data, dict):
        context.notes.append(f"{_FILE} cannot be read: {plain(findings[0].message) if findings else 'not a mapping'}")
        return {}
    return _of_project(context, mapping_of(parsed.data, "vars"))


def _of_project(context: ImportContext, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the project's templates: its own win over those of all packages."""
    packages = {macro.package for macro in context.manifest.macros.values()} - {context.manifest.project}
    own = values.get(context.manifest.project)
    general = {
        key: value for key, value in values.items() if key != context.manifest.project or not isinstance(own, dict)
    }
    scoped = sorted(key for key, value in general.items() if key in packages and isinstance(value, dict))
    if scoped:
        context.notes.append(f"variables of packages are not imported: {plain(', '.join(scoped))}")
    kept = {key: value for key, value in general.items() if key not in scoped}
    return {**kept, **(own if isinstance(own, dict) else {})}
