"""`engine erase MODEL --where ..`: what will be erased, a question, and what was erased, a line a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Failed, Warnings, compile_and_report, find_model, log_file
from engine.cli.console.amounts import amount
from engine.cli.console.safe_output import confirmed, write, write_json
from engine.compile import Manifest, Model, Target

if TYPE_CHECKING:
    from engine.runtime.erasure.erase_model import Erasure, MatchedTable
    from engine.runtime.erasure.erased_tables import EraseRequest, OtherCopy


def erase_rows(
    settings: CommandSettings,
    name: str,
    where: str,
    quarantine: str | None,
    log_format: str,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Erase the rows of a model that match a condition, after asking.

    Raises:
        UsageError: there is no such model, a condition is wrong, or nobody can be asked.
        StateError: `table-locked`, `erase-blocked`, `erase-unread`, `drop-unfinished`.
        RunError: `query-failed`, `commit-conflict`.
        SetupError: Spark or the catalog cannot be had.
    """
    from engine.lake.catalog.moved_lake import check as lake_check
    from engine.runtime.erasure.erase_model import carry_out, find_rows, open_run
    from engine.runtime.erasure.erased_tables import other_copies

    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.DAILY)
        manifest, target = result.manifest, result.target
        lake_check(target.catalog)
        model = _model(manifest, name)
        request = _request(target, model, where, quarantine)
        if request is None:
            settings.out.say(f"{model.relation} does not exist; nothing to erase")
            return
        copies, as_json = other_copies(manifest, request), log_format == "json"
        with open_run(manifest, target, settings.root, model, settings.target_dir, dry_run=dry_run) as run:
            erasure = find_rows(run, request)
            _show(erasure, copies, as_json=as_json)
            if dry_run:
                return
            if erasure.some and not yes and not confirmed("erase", "Erase them?"):
                settings.out.say("Nothing was erased")
                raise Failed
            for erased in carry_out(erasure):
                _report(settings, erased, as_json=as_json)
        if not erasure.some and not as_json:
            settings.out.say(f"No rows of {model.relation} match, nor of its earlier versions; nothing to erase")


def _model(manifest: Manifest, name: str) -> Model:
    from engine.runtime.erasure.erased_tables import check_model

    model = find_model(manifest, name)
    check_model(model)
    return model


def _request(target: Target, model: Model, where: str, quarantine: str | None) -> EraseRequest | None:
    """The conditions, checked; None: the model has no table yet."""
    from engine.lake.lake_reader import Lake
    from engine.runtime.erasure.erased_tables import read_request
    from engine.runtime.quality.quarantine import relation_of

    lake, relation = Lake(target.catalog), model.relation
    table = lake.table(relation.schema, relation.name)
    if table is None:
        return None
    return read_request(model, table, lake.table(relation.schema, relation_of(model).name), where, quarantine)


def _show(erasure: Erasure, copies: tuple[OtherCopy, ...], *, as_json: bool) -> None:
    """Print what will be erased, and what stays elsewhere."""
    matching = [rows for rows in erasure.matched_tables if rows.matches.some]
    if as_json:
        for rows in erasure.matched_tables:
            write_json({"event": "RowsFound", **_record(rows)})
        for copy in copies:
            write_json({"event": "OtherCopy", "node": copy.node, "what": copy.description, "command": copy.command})
        return
    lines = [f"Rows of {erasure.request.model.name} where {erasure.request.where}"]
    if erasure.some:
        lines.append("This will be erased and cannot be restored, and no earlier version of these tables can be read:")
    lines += [f"  {rows.table.role:16} {rows.table.relation}  ({_numbers(rows)})" for rows in matching]
    lines += [f"  {'kept micro-batch':16} {folder}" for folder in erasure.batches]
    if missing := [*_unsearched(erasure)]:
        lines += ["Not searched:", *(f"  {text}" for text in missing)]
    if copies:
        lines.append("Not erased, and may have these rows:")
        lines += [
            f"  {copy.node:16} {copy.description}{f'; {copy.command}' if copy.command else ''}" for copy in copies
        ]
    write("\n".join(map(one_line, lines)))


def _unsearched(erasure: Erasure) -> list[str]:
    texts = list(erasure.unsearched)
    for rows in erasure.matched_tables:
        if count := rows.matches.unjudged:
            columns = ", ".join(rows.table.names)
            texts.append(
                f"{amount(count, 'row')} of {rows.table.relation} without {columns}: add a condition over its columns, "
                "such as --quarantine \"cast(raw as string) like '%jane@example.com%'\""
            )
    return texts


def _numbers(rows: MatchedTable) -> str:
    matches = rows.matches
    older = "earlier versions" if matches.older is None else amount(matches.older, "file") + " of earlier versions"
    unreferenced = f"{amount(len(matches.orphans), 'file')} of no version"
    return ", ".join(
        [
            amount(matches.rows, "row"),
            *([older] if matches.older != 0 else []),
            *([unreferenced] if matches.orphans else []),
        ]
    )


def _report(settings: CommandSettings, erased: MatchedTable, *, as_json: bool) -> None:
    if as_json:
        write_json({"event": "RowsErased", **_record(erased)})
    else:
        settings.out.say(
            f"Erased {amount(erased.matches.rows, 'row')} from the {erased.table.role} {erased.table.relation}"
        )


def _record(rows: MatchedTable) -> dict[str, object]:
    matches = rows.matches
    return {
        "relation": str(rows.table.relation),
        "role": rows.table.role,
        "rows": matches.rows,
        "files": len(matches.files),
        "older_files": matches.older,
        "other_files": len(matches.orphans),
        "not_searched": matches.unjudged,
    }
