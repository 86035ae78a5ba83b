"""The tables that a query of `engine sql` may name, and how a model, a source or a table is meant by a name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from engine.api import Project
from engine.api.inline_query import render_query
from engine.compile import Compiled, Model
from engine.errors import RunError, near
from engine.lake.lake_reader import Lake, TableColumn
from engine.lake.queries.duckdb_queries import DuckDBQueries, QueryRows

if TYPE_CHECKING:
    from engine.lake.queries.select_statement import TableName

_IN_SPARK = "Run the query in Spark: engine show --inline."


@dataclass
class LakeQueries:
    project: Project
    compiled: Compiled
    lake: Lake
    _columns: dict[str, tuple[TableColumn, ...]] = field(default_factory=dict)

    @cached_property
    def models(self) -> dict[str, Model]:
        return {model.name: model for model in self.compiled.manifest.models}

    @cached_property
    def tables(self) -> dict[str, tuple[str, str]]:
        """What can be read: models by their names, other tables of the schemas of the models as `schema.table`."""
        schemas = dict.fromkeys(
            [self.compiled.target.schema, *(m.relation.schema for m in self.models.values() if m.in_catalog)]
        )
        stored_tables = {(schema, name) for schema in schemas for name in self.lake.names(schema)}
        model_tables = {
            name: (model.relation.schema, model.relation.name)
            for name, model in self.models.items()
            if (model.relation.schema, model.relation.name) in stored_tables
        }
        other_tables = sorted(stored_tables - set(model_tables.values()))
        return {**model_tables, **{".".join(place): place for place in other_tables}}

    def columns(self, table: str) -> tuple[TableColumn, ...]:
        """The columns of one of the tables, as stored. Raises SetupError: it cannot be read."""
        if table not in self._columns:
            self._columns[table] = self.lake.columns(*self.tables[table]) or ()
        return self._columns[table]

    def forget_tables(self) -> None:
        """Forget which tables and columns there are: a build may have changed them."""
        self.__dict__.pop("tables", None)
        self._columns.clear()

    @contextmanager
    def database(self) -> Iterator[DuckDBQueries]:
        queries = DuckDBQueries(self.lake, self.compiled.target.catalog.name, self._resolve_table)
        try:
            yield queries
        finally:
            queries.close()

    def run(self, queries: DuckDBQueries, text: str, limit: int | None) -> QueryRows:
        """Render and run one query in DuckDB's dialect, which may use ref() and source().

        Raises EngineError: it cannot be rendered, is not a query, or fails.
        """
        return queries.run(render_query(self.project, self.compiled, text, self._reference_sql), limit)

    def _reference_sql(self, kind: str, name: str) -> str:
        """The name of a table in SQL. Raises RunError: `sql-query`: it is not a stored table."""
        place = self._source(name) if kind == "source" else self._model(name)
        if isinstance(place, RunError):
            raise place
        return ".".join('"' + part.replace('"', '""') + '"' for part in place)

    def _resolve_table(self, name: TableName) -> tuple[str, str] | RunError:
        if name.catalog not in {"", self.compiled.target.catalog.name}:
            return _not_found(f"catalog '{name.catalog}'", "")
        if name.schema:
            return name.schema, name.name
        if name.name in self.models:
            return self._model(name.name)
        target_schema = self.compiled.target.schema
        if f"{target_schema}.{name.name}" in self.tables:
            return target_schema, name.name
        return _not_found(f"table '{name.name}'", near(name.name, self.tables))

    def _model(self, name: str) -> tuple[str, str] | RunError:
        model = self.models.get(name)
        if model is None:
            return _not_found(f"model '{name}'", near(name, self.models))
        if not model.keeps_rows:
            message = (
                f"'{name}' is {'a view' if model.in_catalog else 'ephemeral'}: SQL of Spark, without rows of its own"
            )
            return RunError("sql-query", message, _IN_SPARK, node=name)
        if (model.relation.schema, model.relation.name) not in self.tables.values():
            hint = f"Build it first: engine build -s +{name}"
            return RunError("table-missing", f"the table {model.relation} does not exist yet", hint, node=name)
        return model.relation.schema, model.relation.name

    def _source(self, name: str) -> tuple[str, str] | RunError:
        source_names = [source.name for source in self.compiled.manifest.sources]
        if name not in source_names:
            return _not_found(f"source '{name}'", near(name, source_names))
        return RunError("sql-query", f"the source '{name}' is read by Spark alone", _IN_SPARK)


def _not_found(subject: str, hint: str) -> RunError:
    return RunError("sql-query", f"{subject} not found", hint or "List the tables: engine sql '\\d'.")
