"""`engine build --rebuild`: tables are rebuilt beside the others, tested, compared and published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api import Selection, runnable
from engine.characters import whole_number
from engine.cli.command_setup import CommandSettings, Warnings, compiled, log_file, selected
from engine.cli.console.amounts import amount, bytes_text
from engine.cli.console.safe_output import write, write_json
from engine.cli.exits import terminable
from engine.errors import Diagnostic, Level
from engine.events import Diagnosed, Step, StepStarted

if TYPE_CHECKING:
    from engine.runtime.rebuild.tables_beside import Rebuild


@dataclass(frozen=True, slots=True)
class RebuildWanted:
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


def rebuild(chosen: CommandSettings, selection: Selection, wanted: RebuildWanted) -> bool:
    """Rebuild the selected streaming tables beside the existing ones; False if something failed.

    Raises:
        UsageError: the selection cannot be read, or has no streaming table.
        EngineError: it is not possible, or could not be started.
    """
    from engine.api.one_session import alone
    from engine.api.rebuild_beside import check_rebuild, rebuild_of
    from engine.runtime.rebuild.cut_over import cut_over
    from engine.runtime.rebuild.tables_beside import catch_up, discard, edited, is_publishing

    with terminable(), log_file(chosen), alone():
        chosen.out.event(StepStarted(Step.COMPILE))
        result = compiled(chosen, warnings=Warnings.SELECTED)
        found = selected(chosen, result.manifest, selection, tell=False)
        nodes = runnable(result.manifest, found, "build")
        one = rebuild_of(chosen.project, result, nodes, wanted.threads, chosen.out.event)
        if wanted.discard:
            chosen.out.say(_removed(discard(one)))
            return True
        if not is_publishing(one):
            if changed := edited(one):
                names = ", ".join(f"'{name}'" for name in changed)
                message = f"the query of {names} was edited since its rebuild began; the rebuild begins again"
                chosen.out.event(Diagnosed(Diagnostic("rebuild-restarted", message, "", Level.NOTE, node=changed[0])))
                discard(one)
            check_rebuild(chosen.project, result, one, wanted.accept)
            _show_sizes(chosen, one)
            with chosen.project.unit_runs(result) as run_unit:
                caught_up = catch_up(one, run_unit)
            if not caught_up:
                chosen.out.say(_LEFT.format(" ".join(one.names)))
                return False
            _compare(one, wanted.output)
            if not wanted.publish:
                chosen.out.say(_READY.format(" ".join(one.names)))
                return True
        if not cut_over(one):
            return False
        chosen.out.say(f"Published {', '.join(one.names)}. To go back: engine rollback {' '.join(one.names)}")
    return True


_READY = "Not published (--no-publish). To catch up once more and publish: engine build --rebuild -s {0}"
_LEFT = (
    "Nothing was published; the tables are as they were. To continue: engine build --rebuild -s {0}; to remove "
    "what was rebuilt: engine build --rebuild --discard -s {0}"
)


def _removed(names: Sequence[str]) -> str:
    return f"Removed {', '.join(names)}" if names else "No rebuild was begun; nothing was removed"


def _show_sizes(chosen: CommandSettings, one: Rebuild) -> None:
    from engine.lake.lake_reader import Lake
    from engine.plan.deployed.state_folder import next_relation

    lake, total = Lake(one.target.catalog), 0
    for node in one.models:
        model = one.model(node)
        table = lake.table(model.relation.schema, model.relation.name)
        newest = table.history[0] if table is not None and table.history else None
        rows = newest.rows if newest is not None else 0
        size = (whole_number(newest.summary.get("total-files-size", "")) or 0) if newest is not None else 0
        total += size
        numbers = f"{bytes_text(size)}" if rows is None else f"{amount(rows, 'row')}, {bytes_text(size)}"
        chosen.out.say(f"Rebuilding {model.relation} ({numbers} now) in {next_relation(model.relation).name}")
    chosen.out.say(
        f"This needs about {bytes_text(total)} of disk beside them, and as much again while they are published; all of "
        "their input is read again, which takes as long as a full refresh"
    )


def _compare(one: Rebuild, output: str) -> None:
    from engine.cli.commands.compare_command import difference_record, difference_text
    from engine.runtime.rebuild.cut_over import compare_tables

    for name, difference in compare_tables(one):
        if output == "json":
            write_json({"event": "RebuildCompared", "model": name, **difference_record(difference)})
        else:
            write(f"{name}: {difference.what}")
            for text in difference_text(difference, "text"):
                write(text)
