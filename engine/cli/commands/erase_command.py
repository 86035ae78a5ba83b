"""`engine erase MODEL --where ..`: what will be erased, a question, and what was erased, a line a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Failed, Warnings, compiled, log_file, named_model
from engine.cli.console.amounts import amount
from engine.cli.console.safe_output import confirmed, write, write_json
from engine.compile import Manifest, Model, Target

if TYPE_CHECKING:
    from engine.runtime.erasure.erase_model import Erasure, FoundRows
    from engine.runtime.erasure.erased_tables import EraseRequest, OtherCopy


def erase_rows(
    chosen: CommandSettings, name: str, where: str, quarantine: str | None, log_format: str, *, dry_run: bool, yes: bool
) -> None:
    """Erase the rows of a model that match a condition, after asking.

    Raises:
        UsageError: there is no such model, a condition is wrong, or nobody can be asked.
        StateError: `table-locked`, `erase-blocked`, `erase-unread`, `drop-unfinished`.
        RunError: `query-failed`, `commit-conflict`.
        SetupError: Spark or the catalog cannot be had.
    """
    from engine.lake.catalog.moved_lake import check as lake_check
    from engine.runtime.erasure.erase_model import carry_out, look, opened
    from engine.runtime.erasure.erased_tables import other_copies

    with log_file(chosen):
        result = compiled(chosen, warnings=Warnings.DAILY)
        manifest, target = result.manifest, result.target
        lake_check(target.catalog)
        model = _model(manifest, name)
        request = _request(target, model, where, quarantine)
        if request is None:
            chosen.out.say(f"{model.relation} does not exist; nothing to erase")
            return
        copies, as_json = other_copies(manifest, request), log_format == "json"
        with opened(manifest, target, chosen.root, model, chosen.target_dir, dry_run=dry_run) as run:
            erasure = look(run, request)
            _show(erasure, copies, as_json=as_json)
            if dry_run:
                return
            if erasure.some and not yes and not confirmed("erase", "Erase them?"):
                chosen.out.say("Nothing was erased")
                raise Failed
            for done in carry_out(erasure):
                _tell(chosen, done, as_json=as_json)
        if not erasure.some and not as_json:
            chosen.out.say(f"No rows of {model.relation} match, nor of its earlier versions; nothing to erase")


def _model(manifest: Manifest, name: str) -> Model:
    from engine.runtime.erasure.erased_tables import check_model

    model = named_model(manifest, name)
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
    found = [one for one in erasure.found if one.matches.some]
    if as_json:
        for one in erasure.found:
            write_json({"event": "RowsFound", **_record(one)})
        for copy in copies:
            write_json({"event": "OtherCopy", "node": copy.node, "what": copy.what, "command": copy.command})
        return
    lines = [f"Rows of {erasure.request.model.name} where {erasure.request.where}"]
    if erasure.some:
        lines.append("This will be erased and cannot be restored, and no earlier version of these tables can be read:")
    lines += [f"  {one.table.role:16} {one.table.relation}  ({_numbers(one)})" for one in found]
    lines += [f"  {'kept micro-batch':16} {folder}" for folder in erasure.batches]
    if missing := [*_unsearched(erasure)]:
        lines += ["Not searched:", *(f"  {text}" for text in missing)]
    if copies:
        lines.append("Not erased, and may have these rows:")
        lines += [f"  {copy.node:16} {copy.what}{f'; {copy.command}' if copy.command else ''}" for copy in copies]
    write("\n".join(map(one_line, lines)))


def _unsearched(erasure: Erasure) -> list[str]:
    texts = list(erasure.unsearched)
    for one in erasure.found:
        if count := one.matches.unjudged:
            named = ", ".join(one.table.names)
            texts.append(
                f"{amount(count, 'row')} of {one.table.relation} without {named}: add a condition over its columns, "
                "such as --quarantine \"cast(raw as string) like '%jane@example.com%'\""
            )
    return texts


def _numbers(one: FoundRows) -> str:
    matches = one.matches
    older = "earlier versions" if matches.older is None else amount(matches.older, "file") + " of earlier versions"
    left = f"{amount(len(matches.left), 'file')} of no version"
    return ", ".join(
        [amount(matches.rows, "row"), *([older] if matches.older != 0 else []), *([left] if matches.left else [])]
    )


def _tell(chosen: CommandSettings, done: FoundRows, *, as_json: bool) -> None:
    if as_json:
        write_json({"event": "RowsErased", **_record(done)})
    else:
        chosen.out.say(f"Erased {amount(done.matches.rows, 'row')} from the {done.table.role} {done.table.relation}")


def _record(one: FoundRows) -> dict[str, object]:
    matches = one.matches
    return {
        "relation": str(one.table.relation),
        "role": one.table.role,
        "rows": matches.rows,
        "files": len(matches.files),
        "older_files": matches.older,
        "other_files": len(matches.left),
        "not_searched": matches.unjudged,
    }
