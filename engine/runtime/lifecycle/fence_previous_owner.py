"""Before a run that took a lease over writes: whoever held it can commit no more, even if it wakes up."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.compile import Model, Relation
from engine.lake.fencing.raise_fence import raise_fence
from engine.runtime.context.run_context import Run

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
