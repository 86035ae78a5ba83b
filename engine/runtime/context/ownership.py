"""Table ownership: only what carries the marks of the model that needs its name is ever dropped or replaced.

A staging table (`<table>__g<n>`) or an initial snapshot (`<table>__seed<n>_..`) says so in its properties. Older ones
are known by the model and the number of the generation, unless a model of the project keeps a state for that name.

Commits other than micro-batches repeat the markers of the owner's last commit: after a kill, or once the snapshot
before has expired, the table still says which micro-batch its writer has reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from engine.compile import Model, Relation
from engine.errors import Location, StateError
from engine.lake import table_writer as lake
from engine.lake.commits import CONFLICTS, STAGED, STAGED_LAYOUT, until_committed
from engine.lake.table_facts import BACKFILL, ERASE, SnapshotFacts, TableFacts
from engine.lake.table_fence import FENCE
from engine.plan.deployed.state_folder import ROLES, SEED, STAGING
from engine.runtime.context.run_context import Run
from engine.state import TableState
from engine.state.lease import Lease

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# What is made beside the table of a model: quarantine, remembered deletes, staging tables, initial snapshots.
_BESIDE = r"(__(quarantine|deleted|g\d+|seed\w+))?"


def raise_fences(run: Run, models: Iterable[Model]) -> None:
    """Raise a fence in the existing tables of those models whose earlier holder did not release them.

    The run continues copies of their checkpoints.
    """
    for model in models:
        lease, relation = run.state(model).lease, model.relation
        if lease is None or lease.fenced:
            continue
        own_name = re.compile(re.escape(relation.name) + _BESIDE)
        names = sorted(name for name in run.lake.names(relation.schema) if own_name.fullmatch(name))
        tables = (Relation(relation.catalog, relation.schema, name) for name in names)
        raise_fence(run.spark, [table.sql for table in tables], lease)
        # Behind the fence: what Spark has written for a commit that was made by then is there, or comes again.
        run.state(model).continue_in_copies(lease)
        lease.fence_raised()


def raise_fence(session: SparkSession, relations: Iterable[str], lease: Lease) -> None:
    for relation in relations:
        until_committed(lambda name=relation: _raise(session, name, lease.number), CONFLICTS)  # type: ignore[misc]


def _raise(session: SparkSession, relation: str, number: int) -> None:
    table: Any = lake.load(session, relation)
    raised_to = table.properties().get(FENCE)
    if raised_to is not None and int(raised_to) >= number:
        return
    change = table.newTransaction()
    change.updateProperties().set(FENCE, str(number)).commit()
    # A REST catalog compares no properties, but the snapshot that a commit is made onto.
    added = change.newAppend().set(FENCE, str(number))
    if table.refs().containsKey(STAGED) and STAGED_LAYOUT not in dict(table.properties()):
        # Main has to stay where the branch begins. (A replacement that is staged takes the place of main in any case.)
        added = added.toBranch(STAGED)
    added.commit()
    change.commitTransaction()


_WHAT = {STAGING: "a rebuild", SEED: "an initial snapshot"}


def is_table_beside(
    model: Model, folder: TableState, name: str, properties: Mapping[str, str], role: str, generation: int
) -> bool:
    if properties.get("engine.model") != model.name:
        return False
    if properties.get(role) == "true":
        return True
    numbered = properties.get("engine.generation") == str(generation)
    return numbered and not any(r in properties for r in ROLES) and not (folder.folder.parent / name).exists()


def adopted(run: Run, model: Model, relation: Relation, facts: TableFacts) -> bool:
    """Return whether a table with the name of a model's quarantine or remembered deletes is the model's.

    A renamed model whose alias keeps its table is known by that: both carry the earlier name.
    """
    marked_model = facts.properties.get("engine.model")
    if marked_model == model.name:
        return True
    state, own_relation = run.state(model).load(), model.relation
    table = run.lake.table(own_relation.schema, own_relation.name) if state is not None else None
    if state is None or table is None or marked_model is None:
        return False
    if table.uuid != state.uuid or table.properties.get("engine.model") != marked_model:
        return False
    lake.set_properties(run.spark, relation.sql, {"engine.model": model.name})
    return True


def drop_beside(
    session: SparkSession, model: Model, folder: TableState, relation: Relation, role: str, generation: int
) -> None:
    """Drop the table of a name that a model needs, if there is one and it is the model's.

    Raises StateError: `name-taken`: it is somebody else's; nothing was changed.
    """
    properties = lake.properties(session, relation.sql)
    if properties is None:
        return
    if not is_table_beside(model, folder, relation.name, properties, role, generation):
        message = f"{relation} was not made by '{model.name}', which needs a table of that name for {_WHAT[role]}"
        hint = f"Rename or drop {relation}, or give '{model.name}' another 'alias'."
        raise StateError("name-taken", message, hint, node=model.name, location=Location(model.file))
    lake.drop_table(session, relation.sql)


def descends_in(run: Run, relation: Relation, branch: str | None = None) -> Callable[[int, int], bool]:
    """Tell whether a snapshot of a table has another one for an ancestor, also where others expired what is between."""

    def descends(head: int, ancestor: int) -> bool:
        table = run.lake.table(relation.schema, relation.name, branch, back_to=ancestor)
        if table is None or not table.holds(ancestor):
            return False
        ids = [snapshot.id for snapshot in table.history]
        return head in ids and (ancestor not in ids or ids.index(head) <= ids.index(ancestor))

    return descends


def check_alone(model: Model, relation: Relation, table: TableFacts | None, attempt: SnapshotFacts) -> None:
    """Check that the files of a commit are still those of its rows alone, so that they can be replaced.

    Raises StateError: `batch-unfinished`.
    """
    newer = []
    for snapshot in table.history if table is not None else ():
        if snapshot.id == attempt.id:
            break
        newer.append(snapshot)
    if all(snapshot.operation == "append" for snapshot in newer):
        return
    message = (
        f"micro-batch {attempt.marker('batch-id')} of '{model.name}' was started by another version of the model, "
        f"whose rows in {relation} (snapshot {attempt.id}) were rewritten since"
    )
    hint = (
        "Restore that version of the model and build once to finish the micro-batch, then change it again. Or "
        f"rebuild the table: engine build -f -s {model.name}"
    )
    raise StateError("batch-unfinished", message, hint, node=model.name)


_NOT_CARRIED = ("lease", "fence", ERASE, BACKFILL)


def repeated_markers(run: Run, owner: Model, facts: TableFacts) -> dict[str, str]:
    last = next((s for s in facts.history if s.marker("generation") is not None), None)
    summary = last.summary if last is not None else {}
    engine_markers = {key.removeprefix("engine."): text for key, text in summary.items() if key.startswith("engine.")}
    carried = {key: text for key, text in engine_markers.items() if key not in _NOT_CARRIED}
    return {**carried, "model": owner.name, "run-id": run.id, **run.lease_marker(owner)}
