"""What each operation does before its build or plants in it; what the build is given on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.histories.difference import DifferenceError
from tests.histories.follow import EARLIEST, LOST, NOW, REFRESH, Followed
from tests.histories.go_back import go_back
from tests.histories.points import Armed, Points, fail
from tests.histories.rebuild import rebuild
from tests.histories.recompute import recompute
from tests.histories.steps import Step
from tests.histories.world import World

Undo = list[Callable[[], Any]]
_OTHER_COMMANDS = {"go-back": go_back, "backfill": recompute, "rebuild": rebuild}
_BY_OTHERS = {"compact": World.compact, "expire": World.expire, "foreign-tag": World.tag, "widen": World.widen}


def begin(step: Step, world: World, models: dict[str, Followed], points: Points, undo: Undo) -> tuple[str, ...]:
    """Do what a step does beside landing files.

    Args:
        step: what to do.
        world: where.
        models: what is known of each.
        points: of this process.
        undo: gets how to undo it.

    Returns:
        Options of the build.
    """
    known = models.get(step.model)
    match step.operation, known:
        case "edit", _:
            undo.append(_edit(step, world))
        case "kill", _:
            point, skip = step.detail
            points.armed = Armed(point, step.model, skip, fail)
        case "rollback-in-build", Followed():
            points.armed = Armed("committing", step.model, step.detail[0], lambda: _roll_back(known, undo))
        case "compact-in-build", _:
            points.armed = Armed("committing", step.model, 0, lambda: world.compact(step.model))
        case "rollback", Followed():
            _roll_back(known, undo)
        case "compact" | "expire" | "foreign-tag" | "widen", _:
            _BY_OTHERS[step.operation](world, step.model)
        case "rename" | "foreign-column" | "move", _:
            undo += filter(None, [_changed(step, world)])
        case (("accept" | "test" | "maintain" | "go-back" | "backfill" | "rebuild"), _):
            _command(step, world, models, points)
        case "rename-table", _:
            (point,) = step.detail
            points.armed = Armed(point, step.model, 0, fail) if point else None
            undo.append(world.rename_table(step.model))
        case "lost-state", Followed():
            known.asked = LOST if world.lose(step.model, checkpoint=False) else known.asked
        case "lost-checkpoint", _:
            world.lose(step.model, checkpoint=True)
        case ("refresh" | "reset-now" | "reset-earliest") as what, _:
            return ask(what, [step.model], models)
    return ()


def _changed(step: Step, world: World) -> Callable[[], Any] | None:
    """Rename a file, add a column to a table, or move the project; how to undo that."""
    if step.operation == "rename":
        return world.rename(step.detail[0])
    return world.move() if step.operation == "move" else world.add_column(step.model)


def ask(what: str, names: Iterable[str], models: dict[str, Followed]) -> tuple[str, ...]:
    """The options that give models a new checkpoint; with a table those that stream it are rebuilt."""
    names = list(names)
    if what == REFRESH:
        names += [m for m, known in models.items() if known.kind.upstream in names and m not in names]
    for name in names:
        models[name].asked = what
    options = {REFRESH: ("-f",), NOW: ("--reset-checkpoint", "now"), EARLIEST: ("--reset-checkpoint", "earliest")}
    return (*options[what], *(part for name in names for part in ("-s", name)))


def _edit(step: Step, world: World) -> Callable[[], None]:
    where, name, value = step.detail
    settings = world.settings["" if where == "project" else step.model]
    before = settings[name]

    def back() -> None:
        settings[name] = before
        world.write()

    settings[name] = value
    world.write()
    return back


def _roll_back(known: Followed, undo: Undo) -> None:
    if known.kind.batch:
        # It is computed again.
        known.world.roll_back(known.name)
        known.shown = known.readers()
    elif known.frozen is None:
        table = known.world.table(known.name)
        # Before a compaction the table had the same rows, and the last commit of its model.
        compacted = table is not None and bool(table.history) and table.history[0].rewrites_files
        if (back := known.world.roll_back(known.name)) is not None and not compacted:
            undo.append(known.freeze(back))


def _command(step: Step, world: World, models: dict[str, Followed], points: Points) -> None:
    """Another command: publish what waits, let the tests decide about it, maintain the tables, undo a refresh, recompute, or rebuild."""
    if step.operation == "maintain":
        _maintain(world, models)
        return
    if step.operation in _OTHER_COMMANDS:
        _OTHER_COMMANDS[step.operation](step, world, models, points)
        return
    for name, known in models.items():
        if known.kind.tested and known.frozen is None and world.table(name) is not None:
            accept = step.operation == "accept"
            known.decided(world.lab.run(*(("publish", name, "--accept") if accept else ("test", "-s", name))), accept)


def _maintain(world: World, models: dict[str, Followed]) -> None:
    result = world.lab.run("maintain", "--older-than", "1 second")
    if result.code != 0:
        raise DifferenceError(f"maintain ended with {result.code}: {result.text[-2000:]}")
    for known in models.values():
        known.same()
