"""Columns of a table get the names that its model gives them now (`renamed_from` of a column).

Iceberg keeps their numbers: no file is changed, and who streams the table continues. The table of deleted keys has the
columns of the key too, and a table with the first rows of what is streamed has the columns of that. Each is renamed if
it has its earlier name, the model's own table last: a build that was killed in between is finished by the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Manifest, Model
from engine.errors import Diagnostic, Level
from engine.events import Diagnosed
from engine.lake.quoted_names import quoted
from engine.lake.table_facts import TableFacts
from engine.plan.deployed.column_names import earlier_names
from engine.plan.deployed.deployed_facts import DeployedModel
from engine.relations import Relation
from engine.runtime.sinks.deleted_keys import SUFFIX

_DELETED = "engine.deleted"

if TYPE_CHECKING:
    from engine.runtime.context.run_context import Run


def rename_columns(run: Run, models: Iterable[Model], deployed: Mapping[str, DeployedModel]) -> None:
    """Give the columns of tables their names; the locks of the tables must be held."""
    for model in models:
        known = deployed.get(model.id, DeployedModel())
        for relation, names in _initial_snapshots(run.manifest, model, known):
            _renamed(run, relation, names)
        if not known.columns_renamed:
            continue
        own = model.relation
        for relation in (replace(own, name=own.name + SUFFIX), own):
            done = _renamed(run, relation, known.columns_renamed)
            kill_points.reach("columns renamed", model.name, where=relation.name)
        if done:
            run.emit(Diagnosed(_told(model, known.columns_renamed)))


def _initial_snapshots(
    manifest: Manifest, model: Model, known: DeployedModel
) -> Iterator[tuple[Relation, Mapping[str, str]]]:
    """The tables with the first rows of what a model streams, with the names that columns there have now.

    They may still be read: a column that is found under no name there is NULL in those rows.
    """
    for node, start in known.state.starts.items() if known.state is not None else ():
        upstream = manifest.nodes.get(node)
        name = str(start.get("seed") or "").removeprefix(f"{model.relation.catalog}.{model.relation.schema}.")
        if name and isinstance(upstream, Model):
            yield replace(model.relation, name=name), earlier_names(upstream)


def _renamed(run: Run, relation: Relation, names: Mapping[str, str]) -> bool:
    facts = run.lake.table(relation.schema, relation.name)
    now = {old.lower(): new for old, new in names.items()}
    wanted = [path for path in _columns(facts) if path[-1].lower() in now] if facts is not None else []
    for path in wanted:
        column = ".".join(map(quoted, path))
        run.spark.sql(f"ALTER TABLE {relation.sql} RENAME COLUMN {column} TO {quoted(now[path[-1].lower()])}")
    return bool(wanted)


def _columns(facts: TableFacts) -> Iterator[tuple[str, ...]]:
    deleted = facts.properties.get(_DELETED) == "true"
    for field in facts.fields:
        name, kind = str(field["name"]), field["type"]
        if not deleted:
            yield (name,)
        elif isinstance(kind, Mapping):
            yield from ((name, str(inner["name"])) for inner in kind.get("fields") or ())


def _told(model: Model, names: Mapping[str, str]) -> Diagnostic:
    columns = ", ".join(f"'{old}' to '{new}'" for old, new in names.items())
    hint = "'renamed_from' means nothing any more once each target, and each model that reads the column, was built."
    return Diagnostic(
        "table-renamed", f"renamed columns of {model.relation}: {columns}", hint, Level.NOTE, node=model.name
    )
