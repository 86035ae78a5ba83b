"""`engine rollback`: which tables go back to what, a question, and a line for each that did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.api import Selection
from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Failed, Warnings, compile_and_report, log_file, select_and_report
from engine.cli.console.amounts import amount
from engine.cli.console.safe_output import confirmed, write, write_json
from engine.compile import Manifest, Model, Target
from engine.times import time_text

if TYPE_CHECKING:
    from engine.runtime.operations.roll_back import Rollback


def roll_tables_back(
    settings: CommandSettings, terms: Sequence[str], accept: Sequence[str], log_format: str, *, dry_run: bool, yes: bool
) -> None:
    """Bring back what a full refresh has replaced, after asking.

    Raises:
        UsageError: the selection cannot be read or matches nothing; nobody can be asked.
        StateError: `table-locked`, `state-unreadable`, `lease-lost`.
        SetupError: Spark or the catalog cannot be had.
    """
    from engine.lake.catalog.moved_lake import check as lake_check
    from engine.runtime.operations.roll_back import open_run, roll_back

    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.DAILY)
        manifest, target = result.manifest, result.target
        lake_check(target.catalog)
        nodes = select_and_report(settings, manifest, Selection(tuple(terms)), daily=True)
        models = [node for i in nodes if isinstance(node := manifest.nodes[i], Model)]
        rollbacks = _checked_rollbacks(settings, manifest, target, models, accept)
        as_json = log_format == "json"
        if not as_json:
            _show(rollbacks)
        if dry_run:
            _report(rollbacks, "WouldRollBack", as_json=as_json)
            return
        if not yes and not confirmed("rollback", "Go back?"):
            settings.out.say("Nothing was changed")
            raise Failed
        with open_run(manifest, target, settings.root, [one.model for one in rollbacks], settings.target_dir) as run:
            # What a build has done while the question was open counts.
            for one in _checked_rollbacks(settings, manifest, target, [one.model for one in rollbacks], accept):
                roll_back(run, one)
                _report([one], "RolledBack", as_json=as_json)
                if not as_json:
                    settings.out.say(_line("Rolled back", one))
    _warn_of_edited_queries(settings, rollbacks)


def _checked_rollbacks(
    settings: CommandSettings, manifest: Manifest, target: Target, models: Sequence[Model], accept: Sequence[str]
) -> tuple[Rollback, ...]:
    from engine.runtime.operations.roll_back import rollbacks

    possible, faults = rollbacks(manifest, target, models, accept)
    if faults:
        settings.out.diagnostics(faults)
        raise Failed
    return possible


def _show(rollbacks: Sequence[Rollback]) -> None:
    lines = ["These tables are restored to their state before the full refresh:"]
    write("\n".join([*lines, *(f"  {_line('', one)}" for one in rollbacks)]))


def _line(verb: str, rollback: Rollback) -> str:
    rows = f", {amount(rollback.rows, 'row')}" if rollback.rows is not None else ""
    as_of = f" (as of {_time(rollback)} UTC{rows})"
    return one_line(
        f"{verb} {rollback.model.relation} to generation {rollback.replaced_generation.state.generation}{as_of}".strip()
    )


def _time(rollback: Rollback) -> str:
    return time_text(rollback.replaced_generation.replaced_at // 1000 * 1000)


def _report(rollbacks: Sequence[Rollback], event: str, *, as_json: bool) -> None:
    for one in rollbacks if as_json else ():
        record = {"event": event, "model": one.model.name, "relation": str(one.model.relation), "rows": one.rows}
        record |= {"generation": one.replaced_generation.state.generation, "replaced_at": _time(one)}
        write_json(record)


def _warn_of_edited_queries(settings: CommandSettings, rollbacks: Sequence[Rollback]) -> None:
    """Say which models the project has another query of than the one that writes their tables again."""
    edited = [one.model.name for one in rollbacks if one.model.fingerprint != one.replaced_generation.state.fingerprint]
    if edited:
        names = ", ".join(f"'{name}'" for name in edited)
        settings.out.say(
            f"The project's query of {names} differs from the restored one; to see the effect of a build: engine plan"
        )
