"""`engine rollback`: which tables go back to what, a question, and a line for each that did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.api import Selection
from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Failed, Warnings, compiled, log_file, selected
from engine.cli.console.amounts import amount
from engine.cli.console.safe_output import confirmed, write, write_json
from engine.compile import Manifest, Model, Target
from engine.times import time_text

if TYPE_CHECKING:
    from engine.runtime.operations.roll_back import Rollback


def roll_tables_back(
    chosen: CommandSettings, terms: Sequence[str], accept: Sequence[str], log_format: str, *, dry_run: bool, yes: bool
) -> None:
    """Bring back what a full refresh has replaced, after asking.

    Raises:
        UsageError: the selection cannot be read or matches nothing; nobody can be asked.
        StateError: `table-locked`, `state-unreadable`, `lease-lost`.
        SetupError: Spark or the catalog cannot be had.
    """
    from engine.lake.catalog.moved_lake import check as lake_check
    from engine.runtime.operations.roll_back import opened, roll_back

    with log_file(chosen):
        result = compiled(chosen, warnings=Warnings.DAILY)
        manifest, target = result.manifest, result.target
        lake_check(target.catalog)
        nodes = selected(chosen, manifest, Selection(tuple(terms)), daily=True)
        models = [node for i in nodes if isinstance(node := manifest.nodes[i], Model)]
        found = _found(chosen, manifest, target, models, accept)
        as_json = log_format == "json"
        if not as_json:
            _show(found)
        if dry_run:
            _tell(found, "WouldRollBack", as_json=as_json)
            return
        if not yes and not confirmed("rollback", "Go back?"):
            chosen.out.say("Nothing was changed")
            raise Failed
        with opened(manifest, target, chosen.root, [one.model for one in found], chosen.target_dir) as run:
            # What a build has done while the question was open counts.
            for one in _found(chosen, manifest, target, [one.model for one in found], accept):
                roll_back(run, one)
                _tell([one], "RolledBack", as_json=as_json)
                if not as_json:
                    chosen.out.say(_line("Rolled back", one))
    _hint(chosen, found)


def _found(
    chosen: CommandSettings, manifest: Manifest, target: Target, models: Sequence[Model], accept: Sequence[str]
) -> tuple[Rollback, ...]:
    from engine.runtime.operations.roll_back import rollbacks

    found, faults = rollbacks(manifest, target, models, accept)
    if faults:
        chosen.out.diagnostics(faults)
        raise Failed
    return found


def _show(found: Sequence[Rollback]) -> None:
    lines = ["These tables go back to what they were before their full refresh:"]
    write("\n".join([*lines, *(f"  {_line('', one)}" for one in found)]))


def _line(verb: str, one: Rollback) -> str:
    rows = f", {amount(one.rows, 'row')}" if one.rows is not None else ""
    at = f" (as of {_time(one)} UTC{rows})"
    return one_line(f"{verb} {one.model.relation} to generation {one.previous.state.generation}{at}".strip())


def _time(one: Rollback) -> str:
    return time_text(one.previous.replaced_at // 1000 * 1000)


def _tell(found: Sequence[Rollback], event: str, *, as_json: bool) -> None:
    for one in found if as_json else ():
        record = {"event": event, "model": one.model.name, "relation": str(one.model.relation), "rows": one.rows}
        record |= {"generation": one.previous.state.generation, "replaced_at": _time(one)}
        write_json(record)


def _hint(chosen: CommandSettings, found: Sequence[Rollback]) -> None:
    """Say which models the project has another query of than the one that writes their tables again."""
    edited = [one.model.name for one in found if one.model.fingerprint != one.previous.state.fingerprint]
    if edited:
        names = ", ".join(f"'{name}'" for name in edited)
        chosen.out.say(
            f"The project has another query of {names} than the one that came back; to see what a build would do: "
            "engine plan"
        )
