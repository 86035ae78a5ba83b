"""The macros of the project, in the files they are in; macros of packages are named, or come with the import."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from engine.compile.templates.dbt_functions import package_answer
from engine_import.dbt.compatible_macros import PACKAGES, package_text, provided
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.manifest.read_manifest import DbtMacro
from engine_import.dbt.model_text import line_notes, query_text
from engine_import.dialects.translate import WAREHOUSES
from engine_import.output.import_report import ImportOutcome, Item, plain
from engine_import.output.new_project import is_safe, safe_folders

_HOOKED = {
    "generate_schema_name": "'schema: marts' makes <target schema>_marts; the macro would be ignored",
    "generate_alias_name": "'alias' in the header names the table; the macro would be ignored",
    "generate_database_name": "the catalog is set in the target; the macro would be ignored",
}
_MATERIALIZATION = "a materialization: Headrace writes tables and views"
# Warehouses on which dbt_date's weeks begin on Monday, and those on which week_of_year is that of ISO 8601.
_MONDAYS = frozenset(("spark", "databricks", "redshift", "trino"))
_ISO_WEEKS = frozenset(("spark", "databricks", "redshift", "trino", "snowflake"))
# What dbt calls itself, or what templates here answer by name.
_INTERNAL = frozenset(
    ("dbt", "dbt_duckdb", "dbt_spark", "dbt_snowflake", "dbt_bigquery", "dbt_postgres", "dbt_redshift")
)


def import_macros(context: ImportContext) -> None:
    files: dict[str, list[DbtMacro]] = defaultdict(list)
    for macro in context.manifest.macros.values():
        if macro.package == context.manifest.project and _is_carried(context, macro):
            files[_file(macro)].append(macro)
    for name, macros in sorted(files.items()):
        # dbt's macros may call each other in any order: the text is that of the file, without what is around.
        codes = [query_text(context, macro.code, adapter=_adapter(macro)) for macro in macros]
        text = "\n\n".join(code.text for code in codes)
        file = context.files.add(name, f"{text}\n")
        for macro, code in zip(macros, codes, strict=True):
            _note(context, macro, ImportOutcome.IMPORTED, file=file, notes=line_notes(text, code))
    for package in PACKAGES:
        if context.needed[package]:
            context.files.add(f"packages/{package}/macros/{package}.sql", package_text(package))
    _note_weeks(context)
    _name_packages(context)


def _note_weeks(context: ImportContext) -> None:
    used, adapter = set(context.needed["dbt_date"]), context.manifest.adapter
    if "get_date_dimension" in used:
        used |= {"week_start", "week_of_year"}
    if used & {"week_start", "week_end"} and adapter in _MONDAYS:
        context.notes.append(f"dbt_date.week_start() is a Sunday here, and a Monday on {adapter}: use iso_week_start()")
    if "week_of_year" in used and adapter not in _ISO_WEEKS:
        context.notes.append(f"dbt_date.week_of_year() follows ISO 8601 here, which differs on {plain(adapter)}")


def _is_carried(context: ImportContext, macro: DbtMacro) -> bool:
    base = macro.name.rpartition("__")[2]
    if base in _HOOKED:
        _note(context, macro, ImportOutcome.NOT_IMPORTED, _HOOKED[base])
        return False
    if macro.name.startswith("materialization_"):
        _note(context, macro, ImportOutcome.NOT_IMPORTED, _MATERIALIZATION)
        return False
    return True


def _adapter(macro: DbtMacro) -> str | None:
    """Return the warehouse that a macro's prefix names, as in `spark__x`."""
    prefix = macro.name.partition("__")[0]
    return prefix if "__" in macro.name and prefix in ("spark", "databricks", *WAREHOUSES) else None


def _file(macro: DbtMacro) -> str:
    parts = macro.path.split("/")
    last = parts[-1] if is_safe(parts[-1]) and parts[-1].endswith(".sql") else "macros.sql"
    folders = safe_folders(macro.path)
    return "/".join(("macros", *folders[folders[:1] in (("macros",), ("tests",)) :], last))


def _note(
    context: ImportContext,
    macro: DbtMacro,
    outcome: ImportOutcome,
    reason: str = "",
    file: str = "",
    notes: Iterable[str] = (),
) -> None:
    context.items[macro.id] = Item(
        "macro", plain(macro.name), outcome, file, plain(macro.path), reason, notes=tuple(notes)
    )


def _name_packages(context: ImportContext) -> None:
    project = context.manifest.project
    callers = [node for node in context.manifest.nodes.values() if node.package == project and node.kind != "test"]
    called = Counter(macro for node in callers for macro in set(node.macros))
    own = [macro for macro in context.manifest.macros.values() if macro.package == project]
    called.update(other for macro in own for other in set(macro.macros))
    for key, number in sorted(called.items()):
        known = context.manifest.macros.get(key)
        package = known.package if known else key.split(".")[1] if key.count(".") >= 2 else ""  # noqa: PLR2004 - macro.<package>.<name>
        name = known.name if known else key.rpartition(".")[2]
        if not package or package == project or package in _INTERNAL or name in provided(package):
            continue
        times = f"called {number} time{'' if number == 1 else 's'}"
        answer = package_answer(package, name) or f"write it to packages/{plain(package)}/macros/"
        reason = f"a macro of a package, {times}: {answer}"
        context.items[key] = Item("macro", plain(f"{package}.{name}"), ImportOutcome.NOT_IMPORTED, reason=reason)
