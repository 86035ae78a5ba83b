"""Columns of a table that the next build gives another name: `renamed_from` of a column names what the table has.

Iceberg knows columns by numbers: a rename changes no file, and streams that read the table continue. Until it is done
the plan looks at the table as it will be then.
"""

from __future__ import annotations

from dataclasses import replace

from engine.compile import Model
from engine.plan.deployed.deployed_facts import DeployedModel


def earlier_names(model: Model) -> dict[str, str]:
    """Return the names that columns of a model have now, by those that they had, in lower case."""
    return {column.renamed_from.lower(): column.name for column in model.columns if column.renamed_from}


def with_column_names(model: Model, known: DeployedModel) -> DeployedModel:
    wanted = earlier_names(model)
    if not wanted or known.table is None or known.state is None or known.table.uuid != known.state.uuid:
        return known
    there = {name.lower(): name for name, _ in known.table.columns}
    names = {there[old]: new for old, new in wanted.items() if old in there and new.lower() not in there}
    if not names:
        return known
    now = {old.lower(): new for old, new in names.items()}
    written = known.written.with_names(names) if known.written is not None else None
    state = replace(known.state, columns=tuple(now.get(name.lower(), name) for name in known.state.columns))
    return replace(known, table=known.table.with_names(names), written=written, state=state, columns_renamed=names)
