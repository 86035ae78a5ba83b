"""What `engine plan` says of the refresh of a batch table, before Java starts."""

from __future__ import annotations

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import History, Refresh
from engine.lake.table_facts import TableFacts
from engine.plan.actions.action import ActionKind
from engine.plan.actions.unchanged import batch_inputs_now
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.refresh.batch_inputs import same_rows
from engine.plan.refresh.refresh_choice import RefreshChoice, refresh_choice


def planned_choice(manifest: Manifest, model: Model, kind: ActionKind, deployed: Deployed) -> RefreshChoice | None:
    """Return what of a batch table is computed again.

    Args:
        manifest: the compiled project.
        model: of it.
        kind: what becomes of it.
        deployed: what there is.

    Returns:
        None: it is not a batch table that was built before, or is up to date, or `refresh: full`.
    """
    known = deployed.models.get(model.id, DeployedModel())
    if not model.recomputed or kind is not ActionKind.REBUILD or known.state is None:
        return None
    inputs = batch_inputs_now(manifest, model, deployed)
    if (
        model.write.history is History.VERSIONS
        or model.write.refresh is Refresh.FULL
        or same_rows(manifest, model, known.state, known.written, inputs)
    ):
        return None

    def of_table(node: Model) -> TableFacts | None:
        return deployed.models.get(node.id, DeployedModel()).table

    return refresh_choice(
        manifest, model, known.state, known.written, inputs, of_table, deployed.environment, deployed.spark_version
    )
