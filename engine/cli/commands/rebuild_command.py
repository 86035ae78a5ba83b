"""`engine build --rebuild`: tables are rebuilt beside the others, tested, compared and published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api import Selection, runnable
from engine.characters import whole_number
from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, log_file, select_and_report
from engine.cli.console.amounts import amount, bytes_text
from engine.cli.console.safe_output import write, write_json
from engine.cli.exits import terminable
from engine.errors import Diagnostic, Level
from engine.events import Diagnosed, Step, StepStarted

if TYPE_CHECKING:
    from engine.runtime.rebuild.tables_beside import Rebuild


@dataclass(frozen=True, slots=True)
class RebuildFlags:
    """What the command line says of a rebuild.

    Attributes:
        publish: it is published when it has caught up and its tests have passed.
        discard: what was begun is removed instead.
        output: `text` or `json`.
    """

    accept: Sequence[str]
    threads: int
    publish: bool
    discard: bool
    output: str


def rebuild(settings: CommandSettings, selection: Selection, flags: RebuildFlags) -> bool:
    """Rebuild the selected streaming tables beside the existing ones; False if something failed.

    Raises:
        UsageError: the selection cannot be read, or has no streaming table.
        EngineError: it is not possible, or could not be started.
    """
    from engine.api.one_session import alone
    from engine.api.rebuild_beside import check_rebuild, rebuild_of
    from engine.runtime.rebuild.cut_over import cut_over
    from engine.runtime.rebuild.tables_beside import catch_up, discard, edited, is_publishing

    with terminable(), log_file(settings), alone():
        settings.out.event(StepStarted(Step.COMPILE))
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        selected_nodes = select_and_report(settings, result.manifest, selection, report_empty=False)
        nodes = runnable(result.manifest, selected_nodes, "build")
        one = rebuild_of(settings.project, result, nodes, flags.threads, settings.out.event)
        if flags.discard:
            settings.out.say(_removed_text(discard(one)))
            return True
        if not is_publishing(one):
            if edited_models := edited(one):
                names = ", ".join(f"'{name}'" for name in edited_models)
                message = f"the query of {names} was edited since its rebuild began; the rebuild begins again"
                settings.out.event(
                    Diagnosed(Diagnostic("rebuild-restarted", message, "", Level.NOTE, node=edited_models[0]))
                )
                discard(one)
            check_rebuild(settings.project, result, one, flags.accept)
            _show_sizes(settings, one)
            with settings.project.unit_runs(result) as run_unit:
                caught_up = catch_up(one, run_unit)
            if not caught_up:
                settings.out.say(_UNFINISHED.format(" ".join(one.names)))
                return False
            _compare(one, flags.output)
            if not flags.publish:
                settings.out.say(_READY.format(" ".join(one.names)))
                return True
        if not cut_over(one):
            return False
        settings.out.say(f"Published {', '.join(one.names)}. To go back: engine rollback {' '.join(one.names)}")
    return True


_READY = "Not published (--no-publish). To catch up once more and publish: engine build --rebuild -s {0}"
_UNFINISHED = (
    "Nothing was published; the tables are as they were. To continue: engine build --rebuild -s {0}; to remove "
    "the rebuilt tables: engine build --rebuild --discard -s {0}"
)


def _removed_text(names: Sequence[str]) -> str:
    return f"Removed {', '.join(names)}" if names else "No rebuild was begun; nothing was removed"


def _show_sizes(settings: CommandSettings, rebuild_run: Rebuild) -> None:
    from engine.lake.lake_reader import Lake
    from engine.plan.deployed.state_folder import next_relation

    lake, total = Lake(rebuild_run.target.catalog), 0
    for node in rebuild_run.models:
        model = rebuild_run.model(node)
        table = lake.table(model.relation.schema, model.relation.name)
        newest = table.history[0] if table is not None and table.history else None
        rows = newest.rows if newest is not None else 0
        size = (whole_number(newest.summary.get("total-files-size", "")) or 0) if newest is not None else 0
        total += size
        numbers = f"{bytes_text(size)}" if rows is None else f"{amount(rows, 'row')}, {bytes_text(size)}"
        settings.out.say(f"Rebuilding {model.relation} ({numbers} now) in {next_relation(model.relation).name}")
    settings.out.say(
        f"This needs about {bytes_text(total)} of free disk, and twice as much while they are published; it re-reads "
        "all of their input, which takes as long as a full refresh"
    )


def _compare(rebuild_run: Rebuild, output: str) -> None:
    from engine.cli.commands.compare_command import difference_record, difference_text
    from engine.runtime.rebuild.cut_over import compare_tables

    for name, difference in compare_tables(rebuild_run):
        if output == "json":
            write_json({"event": "RebuildCompared", "model": name, **difference_record(difference)})
        else:
            write(f"{name}: {difference.description}")
            for text in difference_text(difference, "text"):
                write(text)
