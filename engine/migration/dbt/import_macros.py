"""The macros of the project, in the files they are in; macros of packages are named, or come with the import."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from engine.compile.templates.dbt_functions import package_answer
from engine.migration.dbt.compatible_macros import PACKAGES, package_text, provided
from engine.migration.dbt.import_context import ImportContext
from engine.migration.dbt.manifest.read_manifest import DbtMacro
from engine.migration.dbt.model_text import line_notes, query_text
from engine.migration.dialects.translate import WAREHOUSES
from engine.migration.output.import_report import ImportOutcome, Item, plain
from engine.migration.output.new_project import is_safe, safe_folders

_HOOKED = {
    "generate_schema_name": "'schema: marts' makes <target schema>_marts; the macro would be ignored",
    "generate_alias_name": "'alias' in the header names the table; the macro would be ignored",
    "generate_database_name": "the catalog is set in the target; the macro would be ignored",
}
_MATERIALIZATION = "a materialization: tables and views are written by the engine"
# What dbt calls itself, or what templates here answer by name.
_INTERNAL = frozenset(
    ("dbt", "dbt_duckdb", "dbt_spark", "dbt_snowflake", "dbt_bigquery", "dbt_postgres", "dbt_redshift")
)


def import_macros(context: ImportContext) -> None:
    """Add the macros of the project, and those of dbt's packages that are needed."""
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
    _name_packages(context)


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
    """The warehouse that a macro names at its beginning, as `spark__x`; else None."""
    prefix = macro.name.partition("__")[0]
    return prefix if "__" in macro.name and prefix in ("spark", "databricks", *WAREHOUSES) else None


def _file(macro: DbtMacro) -> str:
    """The file of a macro; generic tests may be under tests/generic."""
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
    """Name the macros of packages that models and macros of the project call."""
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
