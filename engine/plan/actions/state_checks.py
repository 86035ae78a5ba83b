"""Whether the state and the table of a model still belong together.

Spark and Iceberg continue silently after a lost checkpoint (rows twice) and a replaced or rolled back table (a hole;
both measured); here each of them rejects the model. The plan asks, and the runtime again before it writes. For what is
read see `engine.plan.tables.upstream_tables`. Also: which models stage rows for their tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.characters import whole_number
from engine.compile import DataTest, Manifest, Model, Severity
from engine.compile.nodes.model_settings import Overwrite, Publish
from engine.compile.nodes.topological_order import ancestors
from engine.errors import REBUILD, Diagnostic, Location, StateError
from engine.lake.commits import STAGED, STAGED_LAYOUT
from engine.lake.table_facts import TableFacts
from engine.plan.actions.action import ActionKind
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.deployed.deployed_facts import DeployedModel
from engine.plan.deployed.generations import NO_BATCH, committed_batch, has_commits, recorded_offsets, wrote
from engine.plan.deployed.state_folder import made_by
from engine.state import ModelState, Phase
from engine.state.checkpoint import OFFSETS

# The code of the warning that a run did not publish staged rows.
HELD = "not-published"
WAYS = "publish them anyway: engine publish {0} --accept; or rebuild the table: engine build -f -s {0}"


def waits(model: Model) -> bool:
    """Whether the rows of a model wait for its tests; a table of another target is never published here."""
    return model.write.publish is Publish.ON_TESTS_PASS and model.deferred_from is None


def decided_by_tests(manifest: Manifest, nodes: Iterable[str]) -> list[Model]:
    selected_ids = set(nodes)
    tested = {test.model for i in selected_ids if isinstance(test := manifest.nodes[i], DataTest)} - selected_ids
    return [model for i in sorted(tested) if isinstance(model := manifest.nodes[i], Model) and waits(model)]


def deciding(manifest: Manifest, model: Model) -> frozenset[str]:
    """The tests before publishing; not those that read a table made from the model's published rows."""
    parents = {node: set(manifest.parents(node)) for node in manifest.order}
    return frozenset(
        test.id
        for test in manifest.tests_of(model.id)
        if test.severity is Severity.ERROR
        and not any(model.id in ancestors(parents, parent) for parent in test.depends_on)
    )


def staged_fault(model: Model, staged: TableFacts, main: TableFacts | None) -> Diagnostic | None:
    """Return why the staged rows of a model cannot be continued: `staged-rows`, `publish-diverged`; None: they can."""
    place = Location(model.file)
    if not waits(model):
        message = f"{model.relation} has staged rows, but '{model.name}' no longer sets publish: on_tests_pass"
        hint = f"Write publish: on_tests_pass again, or {WAYS.format(model.name)}"
        return Diagnostic("staged-rows", message, hint, node=model.name, location=place)
    if main is None or not main.history or STAGED_LAYOUT in staged.properties:
        # A replacement of the whole table waits for itself alone.
        return None
    base = next((snapshot.id for snapshot in staged.history if snapshot.id in staged.published_snapshots), None)
    if base is not None and not main.holds(base):
        message = (
            f"{model.relation} was set back by others while rows of '{model.name}' wait for its tests: those follow "
            f"snapshot {base}, and would bring its rows back"
        )
        hint = f"Set the table to snapshot {base} again. Or rebuild it: engine build -f -s {model.name}."
        return Diagnostic("publish-diverged", message, hint, node=model.name, location=place)
    if _behind(staged, main):
        return None
    message = (
        f"{model.relation} was changed by others while rows of '{model.name}' wait for its tests: "
        f"they cannot be put behind snapshot {staged.main}"
    )
    hint = (
        f"Rebuild it: engine build -f -s {model.name}. Or roll the table back to the snapshot before: nobody else "
        f"may write to a table with a branch '{STAGED}'."
    )
    return Diagnostic("publish-diverged", message, hint, node=model.name, location=place)


def _behind(staged: TableFacts, main: TableFacts) -> bool:
    """Whether what readers see is a part of what is staged; commits that rewrite files and no rows do not count."""
    for snapshot in main.history:
        if staged.holds(snapshot.id):
            return True
        if snapshot.operation != "replace":
            return False
        if snapshot.parent is not None and staged.holds(snapshot.parent):
            return True
    return False


_NOT_OURS = "Give the model another 'alias', or drop {0} if nobody needs it."
_BACKUP = "Restore the missing part from a backup, or " + REBUILD


def table_faults(model: Model, kind: ActionKind, deployed_model: DeployedModel) -> Iterator[Diagnostic]:
    state, table = deployed_model.state, deployed_model.table
    try:
        has_begun = state is not None and (state.phase is Phase.PUBLISHED or not model.streaming)
        if kind not in {ActionKind.REFRESH, ActionKind.RESET} and not has_begun:
            fresh(model, table)
        if table is not None and (not model.streaming or kind in {ActionKind.REFRESH, ActionKind.RESET}):
            check_ours(model, table, state)
        if kind is ActionKind.RESUME and state is not None:
            check_table(model, state, deployed_model.checkpoint or CheckpointFacts(Path()), deployed_model.written)
    except StateError as error:
        yield from (diagnostic.at(Location(model.file), model.name) for diagnostic in error.diagnostics)
    staged = deployed_model.written is not None and STAGED in deployed_model.written.branches
    if model.in_catalog and staged and kind is not ActionKind.REFRESH and deployed_model.written is not None:
        stages_rows = model.streaming or waits(model) or model.write.overwrite is Overwrite.PARTITIONS
        if stages_rows and (fault := staged_fault(model, deployed_model.written, deployed_model.table)) is not None:
            yield fault


def fresh(model: Model, table: TableFacts | None) -> None:
    """Check that a model without state may start: no table, or the empty one that a killed start left.

    Raises StateError: `state-missing` if the table has rows, `name-taken` if another program or model made it.
    """
    if table is None or (not has_commits(table) and made_by(model, table.properties)):
        return
    if not made_by(model, table.properties):
        message = f"{model.relation} exists and was not made by this model"
        raise StateError("name-taken", message, _NOT_OURS.format(model.relation), node=model.name)
    hint = f"Restore the state folder from a backup, or rebuild the table: engine build -f -s {model.name}"
    message = f"{model.relation} exists, but the state folder has no state of it"
    raise StateError("state-missing", message, hint, node=model.name)


def check_ours(model: Model, table: TableFacts, state: ModelState | None = None) -> None:
    """Check that a table about to be replaced was made for the model: it says so, or it is the state's.

    Raises StateError: `name-taken` if it belongs to somebody else.
    """
    if not made_by(model, table.properties) and (state is None or table.uuid != state.uuid):
        message = f"{model.relation} was not made by this model and is not replaced"
        raise StateError("name-taken", message, _NOT_OURS.format(model.relation), node=model.name)


def check_table(model: Model, state: ModelState, checkpoint: CheckpointFacts, table: TableFacts | None) -> None:
    """Check that the table and the checkpoint are those the state knows.

    Raises:
        StateError: `table-missing`, `table-replaced`, `table-rolled-back`, `checkpoint-lost`, `checkpoint-damaged` or
            `checkpoint-changed`.
    """
    name = str(model.relation)
    if table is None:
        message = f"{name} does not exist, but its state is at micro-batch {state.batch}"
        hint = f"Restore the table, or {REBUILD.format(model.name)}"
        raise StateError("table-missing", message, hint, node=model.name)
    if table.uuid != state.uuid:
        message = f"{name} was dropped and recreated: the state belongs to the old table"
        raise StateError("table-replaced", message, _BACKUP.format(model.name), node=model.name)
    _check_history(model, state, table)
    _check_checkpoint(model, state, checkpoint, table)


def _check_history(model: Model, state: ModelState, table: TableFacts) -> None:
    if state.snapshot is None or table.holds(state.snapshot):
        _check_alone(model, state, table)
        return
    reached = committed_batch(table.history, state)
    if reached is not None and state.batch is not None and reached >= state.batch:
        return
    message = (
        f"the last commit of the model (snapshot {state.snapshot}, micro-batch {state.batch}) is no longer in the "
        f"history of {model.relation}: the table was rolled back, or its history expired"
    )
    hint = (
        "The stream would continue after the lost rows and leave a gap. Roll the table forward to that snapshot, "
        f"or {REBUILD.format(model.name)}"
    )
    raise StateError("table-rolled-back", message, hint, node=model.name)


def _check_alone(model: Model, state: ModelState, table: TableFacts) -> None:
    """Check that the generation wrote each micro-batch once, and last the one that the state knows of or the next."""
    commits = (s for s in table.history if wrote(state, s))
    ours = [s for s in commits if s.marker("batch-id") is not None and not (s.erases or s.backfills)]
    numbers = [whole_number(s.marker("batch-id") or "") for s in ours]
    batches = [NO_BATCH if number is None else number for number in numbers]
    follows_state = not ours or state.batch is None or ours[0].id == state.snapshot or batches[0] > state.batch
    if follows_state and len(set(batches)) == len(batches):
        return
    message = (
        f"{model.relation} has a commit of micro-batch {batches[0]} (snapshot {ours[0].id}) that the state does not "
        f"have (micro-batch {state.batch}, snapshot {state.snapshot}): two copies of the state folder have written"
    )
    hint = f"Continue with the copy that wrote last, or {REBUILD.format(model.name)}"
    raise StateError("state-copied", message, hint, node=model.name)


def _check_checkpoint(model: Model, state: ModelState, checkpoint: CheckpointFacts, table: TableFacts) -> None:
    ended = [b for b in (state.batch, committed_batch(table.history, state)) if b is not None]
    if state.query_id is None and not ended:
        return
    query_id, started = checkpoint.query_id, checkpoint.started
    ours = query_id is not None and state.query_id in {None, query_id}
    if ours and (not ended or (started is not None and started >= max(ended))):
        _check_logs(model, checkpoint, max(ended, default=-1))
        _check_offsets(model, state, checkpoint, table)
        return
    message = f"the checkpoint of {model.relation} in {checkpoint.path} is lost or damaged"
    if query_id is not None and query_id != state.query_id:
        message = f"the checkpoint in {checkpoint.path} belongs to another query than {model.relation}"
    hint = "Starting without it would write every row twice. " + _BACKUP.format(model.name)
    raise StateError("checkpoint-lost", message, hint, node=model.name)


def _check_offsets(model: Model, state: ModelState, checkpoint: CheckpointFacts, table: TableFacts) -> None:
    """Check that Spark continues from the committed offsets; versions that recorded none are not checked."""
    committed = recorded_offsets(table.history, state)
    for batch, offsets_digest in checkpoint.ends.items():
        recorded_digests = state.ends.get(str(batch)) or [digest for digest in (committed.get(batch),) if digest]
        if not recorded_digests or offsets_digest in recorded_digests:
            continue
        message = (
            f"{OFFSETS}/{batch} in {checkpoint.path} differs from the file with which micro-batch {batch} of "
            f"{model.relation} was committed: it was changed since"
        )
        hint = "Continuing from it would read records twice or leave some out. " + _BACKUP.format(model.name)
        raise StateError("checkpoint-changed", message, hint, node=model.name)


def _check_logs(model: Model, checkpoint: CheckpointFacts, ended: int) -> None:
    """Check that Spark can read the newest logs; what is written of a micro-batch is known without them."""
    damage = checkpoint.damage
    if damage is None:
        return
    names = " and ".join(str(path) for path in damage.files)
    message = f"the checkpoint of {model.relation} is damaged: {damage.log}/{damage.batch} is incomplete"
    if damage.log == OFFSETS and ended >= damage.batch:
        # Its rows are in the table, and which they were is what the file said.
        raise StateError("checkpoint-damaged", message, _BACKUP.format(model.name), node=model.name)
    hint = (
        f"Remove {names} and build again: micro-batch {damage.batch} is repeated; rows that it wrote are not "
        "written twice."
    )
    if damage.log == OFFSETS:
        hint = (
            f"Nothing of micro-batch {damage.batch} is in the table: remove {names} and build again, unless "
            f"{model.relation}__quarantine has rows with that batch_id; then restore a backup."
        )
    raise StateError("checkpoint-damaged", message, hint, node=model.name)
