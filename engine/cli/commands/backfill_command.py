"""`engine backfill MODEL --from .. --to ..`: what will be replaced, a question, and a line for each commit."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Failed, Warnings, compile_and_report, find_model, log_file
from engine.cli.console.amounts import amount
from engine.cli.console.safe_output import confirmed, write, write_json
from engine.compile import Manifest, Model, Target

if TYPE_CHECKING:
    from engine.runtime.backfill.backfill_model import Backfill, ReplacedRange
    from engine.runtime.backfill.backfill_request import TimeRange

# Days that are printed, each in a line; JSON has them all.
_SHOWN = 31
FEWER_ROWS = "fewer-rows"


def backfill_rows(
    settings: CommandSettings,
    name: str,
    times: tuple[str | None, str, str | None],
    most: int,
    accept: Collection[str],
    log_format: str,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Compute rows of a model again, after asking.

    `times`: the column, the first time, and the one behind the last. `most`: rows of a commit, unless a day has more.

    Raises:
        UsageError: there is no such model or range, or nobody can be asked.
        StateError: `table-locked`, `backfill-rejected`, `backfill-unread`, `source-gap`, and those of a build.
        RunError: `query-failed`, `expectation-failed`, `commit-conflict`.
        SetupError: Spark or the catalog cannot be had.
    """
    from engine.lake.catalog.moved_lake import check as lake_check
    from engine.runtime.backfill.backfill_model import carry_out, compute_backfill
    from engine.runtime.backfill.backfill_request import rejected
    from engine.runtime.context.run_context import jar_sets
    from engine.runtime.erasure.erase_model import open_run

    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.DAILY)
        manifest, target = result.manifest, result.target
        lake_check(target.catalog)
        model = _model(manifest, name)
        within = _range(target, model, times)
        as_json, sets = log_format == "json", jar_sets(manifest, [model])
        with (
            open_run(manifest, target, settings.root, model, settings.target_dir, dry_run=dry_run, sets=sets) as run,
            compute_backfill(run, model, within, most, dry_run=dry_run) as backfill,
        ):
            _show(backfill, as_json=as_json)
            if dry_run or not backfill.ranges:
                return
            if backfill.fewer and FEWER_ROWS not in accept and yes:
                day = backfill.fewer[0]
                message = (
                    f"{amount(len(backfill.fewer), 'day')} would have fewer rows than now: {day.day} has "
                    f"{day.rows_before:,}, and would have {day.rows_after:,}"
                )
                hint = (
                    f"If the query is meant to give fewer rows, add --accept {FEWER_ROWS}. engine show {name} runs it."
                )
                raise rejected(model, message, hint)
            if not yes and not confirmed("backfill", "Replace them?"):
                settings.out.say("Nothing was replaced")
                raise Failed
            for replaced in carry_out(backfill):
                _report(settings, backfill, replaced, as_json=as_json)


def _model(manifest: Manifest, name: str) -> Model:
    from engine.runtime.backfill.backfill_request import check_model

    model = find_model(manifest, name)
    check_model(model)
    return model


def _range(target: Target, model: Model, times: tuple[str | None, str, str | None]) -> TimeRange:
    from engine.lake.lake_reader import Lake
    from engine.runtime.backfill.backfill_request import read_range, rejected

    table = Lake(target.catalog).table(model.relation.schema, model.relation.name)
    if table is None:
        raise rejected(model, f"{model.relation} does not exist yet", f"Build it: engine build -s {model.name}")
    return read_range(model, table, *times)


def _show(backfill: Backfill, *, as_json: bool) -> None:
    readers = tuple(_readers(backfill))
    if as_json:
        for day in backfill.days:
            record = {
                "day": str(day.day),
                "rows_before": day.rows_before,
                "rows_after": day.rows_after,
                "same": day.is_unchanged,
            }
            write_json({"event": "DayCompared", "model": backfill.model.name, **record})
        for name, effect, command in readers:
            write_json({"event": "ReaderFound", "node": name, "what": effect, "command": command})
        return
    changed = [day for day in backfill.days if not day.is_unchanged]
    relation, time_range = backfill.model.relation, backfill.time_range
    lines = [f"Rows of {relation} with {time_range}, by the current query over the input of its stream:"]
    lines += [f"  {day.day}  {day.rows_before:>12,} -> {amount(day.rows_after, 'row')}" for day in changed[:_SHOWN]]
    lines += [f"  and {amount(len(changed) - _SHOWN, 'more day')}"] * (len(changed) > _SHOWN)
    same = [day for day in backfill.days if day.is_unchanged]
    if same:
        have = "has" if len(same) == 1 else "have"
        lines.append(f"  {amount(len(same), 'day')} {have} the same rows and stay as they are")
    if backfill.left_out:
        left_out = amount(backfill.left_out, "row")
        lines.append(f"  {left_out} of the query fail an expectation and are left out, also of the quarantine")
    if backfill.ranges:
        before, after = sum(one.rows_before for one in backfill.ranges), sum(one.rows_after for one in backfill.ranges)
        commits = amount(len(backfill.ranges), "commit")
        lines.append(f"{amount(before, 'row')} will be replaced by {amount(after, 'row')}, in {commits}.")
        lines += ["Readers of the table:"] * bool(readers)
        lines += [f"  {name:16} {effect}{f'; {command}' if command else ''}" for name, effect, command in readers]
    else:
        lines.append("Nothing to replace: the rows match the query")
    write("\n".join(map(one_line, lines)))


def _readers(backfill: Backfill) -> Iterator[tuple[str, str, str]]:
    """Yield the models that read the table: name, what they do, and the command that recomputes them."""
    for reader in backfill.run.manifest.models:
        reads = [item for item in reader.inputs if item.node == backfill.model.id]
        if not reads or not reader.in_catalog:
            continue
        if any(item.stream for item in reads):
            keeps = "keeps the rows that it has computed"
            yield reader.name, keeps, _recompute(reader)
        elif reader.streaming:
            yield reader.name, "reads the new rows in its next micro-batches", ""
        elif not reader.computed_when_read:
            yield reader.name, "is recomputed by the next build", ""


def _recompute(reader: Model) -> str:
    from engine.errors import EngineError
    from engine.runtime.backfill.backfill_request import check_model

    try:
        check_model(reader)
    except EngineError:
        return f"engine build -f -s {reader.name}"
    return f"engine backfill {reader.name} --from .. --to .., or engine build -f -s {reader.name}"


def _report(settings: CommandSettings, backfill: Backfill, replaced: ReplacedRange, *, as_json: bool) -> None:
    if as_json:
        record = {
            "model": backfill.model.name,
            "relation": str(backfill.model.relation),
            "range": str(replaced.time_range),
        }
        write_json(
            {"event": "RowsReplaced", **record, "rows_before": replaced.rows_before, "rows_after": replaced.rows_after}
        )
    else:
        before, after = amount(replaced.rows_before, "row"), amount(replaced.rows_after, "row")
        settings.out.say(f"Replaced {before} of {backfill.model.relation} by {after}: {replaced.time_range}")
