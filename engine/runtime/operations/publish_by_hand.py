"""`engine publish`: staged rows are shown as they are, because the user says so."""

from __future__ import annotations

from pathlib import Path

from engine.compile import Manifest, Model, Target
from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.plan.deployed.state_folder import table_state
from engine.runtime.build import spark_session
from engine.runtime.context.run_context import command_run
from engine.runtime.lifecycle import full_refresh, publish
from engine.state import locked


def accept(manifest: Manifest, target: Target, root: Path, model: Model, target_dir: Path) -> int | None:
    """Show the rows of a model that wait to readers; return the snapshot seen from then on; None: nothing waited.

    Raises:
        StateError: `table-locked`, `publish-diverged`.
        SetupError: Spark or the catalog cannot be had.
    """
    relation, folder = model.relation, table_state(target, model)
    table = Lake(target.catalog).table(relation.schema, relation.name)
    if table is None or not (STAGED in table.branches or folder.unpublished()):
        return None
    with locked([folder]) as locks, spark_session(target, target_dir, locks) as spark:
        run = command_run(manifest, target, root, spark)
        snapshot = publish.publish(run, model)
        full_refresh.clear_staging(run, model, spark)
        return snapshot
