"""The table `<model>__quarantine`: records that could not be read, and rows that failed expectations.

Its commits carry the model's markers and the id of Spark's query: a replayed batch writes what is missing, and batches
of another checkpoint are never compared. Rows of earlier generations stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from engine.compile import Model, Relation
from engine.errors import StateError
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.lake.table_layout import TableLayout
from engine.runtime.context import ownership
from engine.runtime.context.ownership import check_alone, descends_in
from engine.runtime.context.run_context import Run
from engine.runtime.quality import expectations
from engine.runtime.quality.bad_records import Watched
from engine.sources import OnBadRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUFFIX = "__quarantine"
COLUMNS = (
    "reason STRING, checks ARRAY<STRING>, raw BINARY, row STRING, origin STRING, batch_id BIGINT, "
    "quarantined_at TIMESTAMP"
)
_QUERY = "query-id"


def relation_of(model: Model) -> Relation:
    return replace(model.relation, name=model.relation.name + SUFFIX)


@dataclass(slots=True)
class Quarantine:
    """A model's quarantine as it stood at first, and as written since; `last` None: the snapshot of `facts`."""

    model: Model
    facts: TableFacts | None
    is_created: bool = field(default=False)
    last: int | None = field(default=None)
    descends: Callable[[int, int], bool] = lambda _, __: False

    @property
    def relation(self) -> Relation:
        return relation_of(self.model)

    def wrote(self, query: str | None, batch: int | None = None) -> SnapshotFacts | None:
        """The commit of a batch (None: of any batch) of a query of Spark's, if there is one."""
        for snapshot in self.facts.history if self.facts else ():
            is_batch = batch is None or snapshot.marker("batch-id") == str(batch)
            if is_batch and query is not None and snapshot.marker(_QUERY) == query:
                return snapshot
        return None

    def append(
        self, session: SparkSession, parts: Iterable[DataFrame], batch: int, query: str, markers: Mapping[str, str]
    ) -> int:
        staged = lake.stage(self._rows(session, parts, batch), self._create_if_missing(session))
        commit = lake.append(staged, {**markers, _QUERY: query}, None, self._expected())
        self.last = commit.snapshot if commit else self.last
        return commit.rows if commit else 0

    def redo(
        self,
        session: SparkSession,
        parts: Iterable[DataFrame],
        batch: int,
        query: str,
        markers: Mapping[str, str],
        begun_snapshot: SnapshotFacts,
    ) -> int:
        """Put the rows of a micro-batch in place of those of its first attempt, which followed other rules.

        Raises StateError: `batch-unfinished`.
        """
        check_alone(self.model, self.relation, self.facts, begun_snapshot)
        staged = lake.stage(self._rows(session, parts, batch), self.relation.sql)
        commit = lake.exchange(staged, begun_snapshot.id, {**markers, _QUERY: query}, self._expected())
        self.last = commit.snapshot
        return commit.rows

    def take_over(self, session: SparkSession, rows: DataFrame, markers: Mapping[str, str]) -> None:
        lake.append(lake.stage(rows, self._create_if_missing(session)), markers, None, self._expected())

    def _expected(self) -> ExpectedTable:
        last = self.last if self.last is not None or self.facts is None else self.facts.snapshot
        return ExpectedTable(self.model.name, self.facts.uuid if self.facts else None, last, self.descends)

    def replace(self, session: SparkSession, parts: Iterable[DataFrame], markers: Mapping[str, str]) -> int:
        rows = self._rows(session, parts, None)
        commit = lake.replace(rows, self.relation.sql, _layout(self.model), markers)
        return commit.rows

    def _rows(self, session: SparkSession, parts: Iterable[DataFrame], batch: int | None) -> DataFrame:
        from pyspark.sql import functions as f

        empty = session.createDataFrame([], COLUMNS).drop("batch_id", "quarantined_at")
        all_rows = reduce(
            lambda first_rows, second_rows: first_rows.unionByName(second_rows, allowMissingColumns=True), parts, empty
        )
        return all_rows.withColumns({"batch_id": f.lit(batch).cast("bigint"), "quarantined_at": f.current_timestamp()})

    def _create_if_missing(self, session: SparkSession) -> str:
        if self.facts is None and not self.is_created:
            lake.create_table(session, self.relation.sql, session.createDataFrame([], COLUMNS), _layout(self.model))
            self.is_created = True
        return self.relation.sql


def _layout(model: Model) -> TableLayout:
    properties = {"engine.model": model.name, "engine.quarantine": "true"}
    comment = f"Records that '{model.name}' could not read, and rows that failed its expectations."
    return TableLayout(properties=properties, comment=comment)


def quarantines(model: Model, watched_inputs: Iterable[Watched]) -> bool:
    unwritable = model.write.unavailable is not None
    return (
        unwritable
        or expectations.splits(model.expectations)
        or any(item.policy is OnBadRecord.QUARANTINE and item.once for item in watched_inputs)
    )


def quarantine_of(run: Run, model: Model) -> Quarantine:
    """The quarantine of a model, as it is.

    Raises StateError: `name-taken` if a table of its name is not the model's.
    """
    relation = relation_of(model)
    facts = run.lake.table(relation.schema, relation.name)
    if facts is not None and not ownership.adopted(run, model, relation, facts):
        message = f"{relation} was not made by '{model.name}', which needs a table of that name for its bad records"
        hint = f"Give the model another 'alias', or drop {relation} if nobody needs it."
        raise StateError("name-taken", message, hint, node=model.name)
    return Quarantine(model, facts, descends=descends_in(run, relation))
