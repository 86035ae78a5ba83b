"""What the project says of a model and its columns, written to its table (`persist_docs`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model
from engine.errors import Diagnostic, Level, Location
from engine.events import Diagnosed
from engine.lake.comments import comment_table, comment_view
from engine.plan.actions.descriptions import comments_of

if TYPE_CHECKING:
    from engine.runtime.context.run_context import Run

_log = logging.getLogger("engine.runtime")


def describe(run: Run, model: Model) -> None:
    """Bring the comments of a model's table or view up to date; what cannot be written is only a warning."""
    from py4j.protocol import Py4JError

    persist, relation = model.operation.persist_docs, model.relation
    if not (persist.relation or persist.columns):
        return
    wanted = comments_of(model)
    try:
        if model.computed_when_read:
            comment_view(run.spark, relation.catalog, relation.schema, relation.name, wanted)
        else:
            kill_points.reach("describing", model.name)
            comment_table(run.spark, relation.sql, wanted)
    except Py4JError:
        _log.exception("descriptions of %s", model.name)
        message = f"the descriptions of '{model.name}' were not written to {relation}"
        hint = "The rows were written. The next build retries; the log has the reason."
        place = Location(model.file)
        run.emit(
            Diagnosed(Diagnostic("comments-failed", message, hint, Level.WARNING, node=model.name, location=place))
        )
