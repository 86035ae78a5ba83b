"""The generation that was built beside a table, as one of that table: its checkpoint copied, its inputs by their names.

What was built with it is read from the published tables afterwards. A stream that has read all of `<table>__next` has
read all of the commit that publishes those rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from engine.compile import Model
from engine.errors import StateError
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan.deployed import generations
from engine.runtime.context.copy_generation import copy_generation
from engine.runtime.context.run_context import Run
from engine.sources.iceberg.snapshot_history import Start
from engine.state import ModelState, Phase, TableState
from engine.state.moved_offsets import offsets_to_move


@dataclass(frozen=True, slots=True)
class PublishedInput:
    """A table that was rebuilt and published, for those that stream from it and were rebuilt with it.

    Attributes:
        snapshot: the commit that published its rows.
        before: the snapshots of the table in which they were made.
    """

    relation: str
    uuid: str
    snapshot: SnapshotFacts
    before: frozenset[int]

    @property
    def files(self) -> int:
        text = self.snapshot.summary.get("added-data-files", "0")
        return int(text) if text.isdecimal() else 0


def published_input(model: Model, state: ModelState, table: TableFacts, made: TableFacts) -> PublishedInput:
    """Find the commit that published a rebuilt table.

    Raises:
        StateError: `rebuild-unfinished`: the commit has expired.
    """
    first = next((s for s in reversed(table.history) if generations.wrote(state, s) and s.parent is None), None)
    if first is None:
        message = f"the commit that published the rebuilt rows of {model.relation} has expired"
        hint = (
            "Streams that were rebuilt with it cannot continue from it. Discard the rebuild (engine build --rebuild "
            f"--discard -s {model.name}+), and rebuild them: engine build -f -s {model.name}+"
        )
        raise StateError("rebuild-unfinished", message, hint, node=model.name)
    before = frozenset({*(snapshot.id for snapshot in made.history), *made.snapshots})
    return PublishedInput(str(model.relation), table.uuid, first, before)


def copied(run: Run, model: Model, beside: TableState, inputs: Mapping[str, PublishedInput]) -> ModelState:
    """Make the generation that was built beside a model's table the pending one of that table.

    `run`: that holds the locks of both tables.
    `beside`: the state of the table in which it was made; its last micro-batch is committed.
    `inputs`: the tables that were rebuilt and published before, by the id of their model.

    Raises:
        StateError: `state-unreadable`, `lease-lost`.
    """
    made, folder = beside.load(), run.state(model)
    if made is None:
        raise ValueError(model.name)
    table = run.lake.table(model.relation.schema, model.relation.name)
    number = generations.next_number(folder, table)
    starts = {node: _start(start, inputs.get(node)) for node, start in made.starts.items()}
    state = replace(run.signed(model, made), generation=number, phase=Phase.BUILDING, starts=starts)
    # A generation without model.json is nobody's to remove: a kill in the middle of the copy leaves half a checkpoint.
    folder.discard(number)
    folder.save(state)
    tables = {node: (one.relation, one.uuid) for node, one in inputs.items()}
    copy_generation(beside, made.generation, folder, number, tables)
    for one in inputs.values():
        found = offsets_to_move(folder.checkpoint(number), one.before, one.snapshot.id, one.files)
        state = state if found is None else found.write(folder, state)
    folder.save_facts(number, state.fingerprint, model.facts)
    return state


def _start(start: Mapping[str, object], read: PublishedInput | None) -> Mapping[str, object]:
    return start if read is None else asdict(Start(read.uuid))
