"""`engine drop` and `engine ls --orphans`: tables that nothing builds any more, and how they go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Failed, Warnings, compile_and_report, log_file
from engine.cli.console.amounts import amount, bytes_text
from engine.cli.console.safe_output import confirmed, json_text, write, write_json

if TYPE_CHECKING:
    from engine.compile import Compiled, Target
    from engine.plan.deployed.state_folder import KnownTable
    from engine.runtime.operations.drop_table import Drop, Part


def list_orphans(settings: CommandSettings, output: str) -> None:
    """Print the tables that this project and target have built, and that no model has any more."""
    from engine.runtime.lifecycle.orphaned_tables import orphans, reason

    result = compile_and_report(settings, show_template_output=False, warnings=Warnings.DAILY)
    lines = []
    for table in orphans(result.manifest, result.target, settings.root):
        text = reason(result.manifest, table)
        if output == "json":
            record = {
                "resource_type": "orphan",
                "name": table.folder.table,
                "relation": table.name,
                "model": table.model,
                "reason": text,
            }
            lines.append(json_text(record))
        elif output == "name":
            lines.append(one_line(table.name))
        elif output == "path":
            lines.append(one_line(str(table.folder.folder)))
        else:
            lines.append(one_line(f"orphan  {table.name}  ({text})"))
    if lines:
        write("\n".join(lines))


def drop_tables(
    settings: CommandSettings, names: Sequence[str], accept: Sequence[str], log_format: str, *, yes: bool
) -> None:
    """Remove tables with their state, quarantine and remembered deletes, after asking; no names: all that were built.

    Raises:
        UsageError: a name means no table or several; nobody can be asked.
        StateError: `table-locked`, `state-unwritable`, `state-unreadable`.
        SetupError: `lake-outside`, `lake-moved`, `catalog-unusable`, `catalog-busy`.
    """
    from engine.lake.catalog.moved_lake import check as lake_check
    from engine.plan.deployed.state_folder import environment
    from engine.runtime.operations.drop_table import carry_out, drop_part, find_failing_rows, plan_drop, refusals
    from engine.state import locked

    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.DAILY)
        target = result.target
        lake_check(target.catalog)
        tables = _tables_to_drop(result, settings, names)
        if problems := refusals(result.manifest, target, tables, accept):
            settings.out.diagnostics(problems)
            raise Failed
        drops = [drop for table in tables if _is_something(drop := plan_drop(target, table))]
        failing_row_tables = () if names else find_failing_rows(target)
        if not drops and not failing_row_tables:
            settings.out.say("Nothing was built there; nothing to drop")
            return
        as_json = log_format == "json"
        if not as_json:
            _show(drops, failing_row_tables, target)
        if not yes and not confirmed("drop", "Remove them?"):
            settings.out.say("Nothing was removed")
            raise Failed
        for part in failing_row_tables:
            drop_part(target, part)
            _report(settings, part, target, as_json=as_json)
        dropped_names = {drop.table.name for drop in drops}
        with locked([drop.table.folder for drop in drops]):
            # What a build has done while the question was open counts.
            for table in (table for table in _tables_to_drop(result, settings, names) if table.name in dropped_names):
                report_dropped = partial(_report, settings, target=target, as_json=as_json)
                carry_out(target, plan_drop(target, table), environment(result.manifest, target), report_dropped)
                if as_json:
                    write_json({"event": "StateDropped", "relation": table.name, "model": table.model})
                else:
                    settings.out.say(f"Removed the state of {table.name}")


def _tables_to_drop(result: Compiled, settings: CommandSettings, names: Sequence[str]) -> tuple[KnownTable, ...]:
    from engine.runtime.operations.drop_table import all_tables, resolve_tables

    if names:
        return resolve_tables(result.manifest, result.target, settings.root, names)
    return all_tables(result.manifest, result.target, settings.root)


def _is_something(drop: Drop) -> bool:
    return bool(drop.parts or drop.table.state or drop.table.unfinished)


def _show(drops: Sequence[Drop], failing_row_tables: Sequence[Part], target: Target) -> None:
    lines = ["This will be removed and cannot be restored:", *(_line(part, target) for part in failing_row_tables)]
    for drop in drops:
        for part in drop.parts:
            lines.append(_line(part, target))
            lines += [f"  {'':16} {part.folder}"] if part.folder is not None else []
        folder = drop.table.folder.folder
        lines += [f"  {'state':16} {folder}"] if folder.exists() else []
    lines += [f"  {text}" for drop in drops for text in drop.retained]
    write("\n".join(map(one_line, lines)))


def _line(part: Part, target: Target) -> str:
    return f"  {part.role:16} {target.catalog.name}.{part.schema}.{part.name}{_numbers(part)}"


def _numbers(part: Part) -> str:
    stored_table = part.stored_relation
    if stored_table is None:
        return "  (already removed from the catalog)"
    parts = [
        amount(stored_table.rows, "row") if stored_table.rows is not None else "",
        bytes_text(stored_table.size) if stored_table.size is not None else "",
    ]
    text = ", ".join(filter(None, parts))
    return f"  ({text})" if text else ""


def _report(settings: CommandSettings, part: Part, target: Target, *, as_json: bool) -> None:
    name = f"{target.catalog.name}.{part.schema}.{part.name}"
    if not as_json:
        settings.out.say(f"Removed the {part.role} {name}")
        return
    stored_table = part.stored_relation
    record = {"event": "TableDropped", "relation": name, "role": part.role}
    write_json(
        {
            **record,
            "rows": stored_table.rows if stored_table else None,
            "bytes": stored_table.size if stored_table else None,
        }
    )
