"""What a table must be when a model commits to it: see `engine.lake.commit_guard`."""

from __future__ import annotations

from collections.abc import Callable

from engine.compile import Model, Relation
from engine.errors import StateError
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.runtime.context.run_context import Run


def descends_in(run: Run, relation: Relation, branch: str | None = None) -> Callable[[int, int], bool]:
    """Tell whether a snapshot of a table has another one for an ancestor, also where others expired what is between."""

    def descends(head: int, ancestor: int) -> bool:
        table = run.lake.table(relation.schema, relation.name, branch, back_to=ancestor)
        if table is None or not table.holds(ancestor):
            return False
        ids = [snapshot.id for snapshot in table.history]
        return head in ids and (ancestor not in ids or ids.index(head) <= ids.index(ancestor))

    return descends


def check_alone(model: Model, relation: Relation, table: TableFacts | None, begun: SnapshotFacts) -> None:
    """Check that the files of a commit are still those of its rows alone, so that they can be replaced.

    Raises:
        StateError: `batch-unfinished`.
    """
    newer = []
    for snapshot in table.history if table is not None else ():
        if snapshot.id == begun.id:
            break
        newer.append(snapshot)
    if all(snapshot.operation == "append" for snapshot in newer):
        return
    message = (
        f"micro-batch {begun.marker('batch-id')} of '{model.name}' was started by another version of the model, "
        f"whose rows in {relation} (snapshot {begun.id}) were rewritten since"
    )
    hint = (
        "Restore that version of the model and build once to finish the micro-batch, then change it again. Or "
        f"rebuild the table: engine build -f -s {model.name}"
    )
    raise StateError("batch-unfinished", message, hint, node=model.name)
