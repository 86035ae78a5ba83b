"""A writer that is stopped anywhere before its commit, taken over, and woken, commits nothing: in every way of writing.

The run that takes over comes right after each look that the writer takes at its lease and at the table, also in
between Iceberg's own look and its commit: what stops the writer then is the catalog, which compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from engine.errors import StateError
from engine.lake import staging_branch
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import STAGED
from engine.lake.merge_statement import Merge, merge
from engine.lake.staging_branch import stage_replacement
from engine.lake.table_fence import Fence, fence_of
from engine.lake.table_layout import TableLayout
from engine.relations import Relation
from engine.runtime.context.ownership import raise_fence
from engine.state.blob_store import Folder
from engine.state.lease import Holder, Lease, LeaseClock, leased, take_lease
from engine.state.lock_holder import process
from tests.catalogs.conftest import CatalogLab

pytestmark = pytest.mark.spark
FOLDER = "lake/shop/paid"
LAYOUT = TableLayout()


@dataclass
class Writer:
    """A run with a lease, and the table that it writes.

    Attributes:
        relation: of a table with the rows 1 and 2, made for each attempt.
        lease: of the run.
    """

    lab: CatalogLab
    relation: Relation
    lease: Lease

    @property
    def spark(self) -> Any:
        assert self.lab.session is not None
        return self.lab.session.spark

    @property
    def markers(self) -> dict[str, str]:
        return {"model": "paid", "run-id": "woken", "lease": self.lease.token}

    def frame(self, *ids: int) -> Any:
        return self.spark.createDataFrame([(number, "new") for number in ids], "id int, said string")

    def make(self) -> None:
        lake.create_table(self.spark, self.relation.sql, self.frame(), LAYOUT)
        lake.append(lake.stage(self.frame(1, 2), self.relation.sql), {"run-id": "first"})

    def expected(self) -> ExpectedTable:
        table = lake.load(self.spark, self.relation.sql)
        return ExpectedTable("paid", str(table.uuid()), int(table.currentSnapshot().snapshotId()))

    def written(self, *names: str) -> list[str]:
        """The runs whose commits are in main or wait for tests."""
        table = lake.load(self.spark, self.relation.sql)
        table.refresh()
        found = []
        for name in names or ("main", STAGED):
            snapshot = table.snapshot(name)
            while snapshot is not None:
                found.append(str(snapshot.summary().get("engine.run-id") or ""))
                snapshot = table.snapshot(snapshot.parentId()) if snapshot.parentId() is not None else None
        return [run for run in found if run]


def append(writer: Writer) -> None:
    lake.append(lake.stage(writer.frame(3), writer.relation.sql), writer.markers, None, writer.expected())


def append_without_history(writer: Writer) -> None:
    lake.append(lake.stage(writer.frame(3), writer.relation.sql), writer.markers)


def append_staged(writer: Writer) -> None:
    staging_branch.ensure_branch(writer.spark, writer.relation.sql, {"run-id": "first"})
    lake.append(lake.stage(writer.frame(3), writer.relation.sql), writer.markers, STAGED)


def overwrite(writer: Writer) -> None:
    lake.overwrite(lake.stage(writer.frame(3), writer.relation.sql), writer.markers, writer.expected())


def overwrite_partitions(writer: Writer) -> None:
    lake.overwrite_partitions(lake.stage(writer.frame(3), writer.relation.sql), writer.markers)


def merge_rows(writer: Writer) -> None:
    how = Merge(("id",))
    merge(writer.frame(2, 3), writer.relation.sql, how, writer.markers, None, writer.expected())


def merge_staged(writer: Writer) -> None:
    staging_branch.ensure_branch(writer.spark, writer.relation.sql, {"run-id": "first"})
    merge(writer.frame(2, 3), writer.relation.sql, Merge(("id",)), writer.markers, STAGED)


def replace(writer: Writer) -> None:
    lake.replace(writer.frame(3), writer.relation.sql, LAYOUT, writer.markers)


def replace_staged(writer: Writer) -> None:
    stage_replacement(writer.frame(3), writer.relation.sql, LAYOUT, writer.markers, {})


WAYS: tuple[Callable[[Writer], None], ...] = (
    append, append_without_history, append_staged, overwrite, overwrite_partitions, merge_rows, merge_staged, replace, replace_staged,
)  # fmt: skip


@contextmanager
def taken_over_after(look: int, act: Callable[[], None]) -> Iterator[list[int]]:
    """Do something right after the writer has looked so many times, at its lease or at the table."""
    looks: list[int] = []

    def looked(kind: Callable[..., Any], fence: Any, *arguments: Any) -> Any:
        found = kind(fence, *arguments)
        looks.append(len(looks) + 1)
        if len(looks) == look:
            act()
        return found

    with ExitStack() as stack:
        for owner, name in ((Fence, "is_behind"), (Lease, "check")):
            stack.enter_context(patch.object(owner, name, partial_method(looked, getattr(owner, name))))
        yield looks


def partial_method(call: Callable[..., Any], kind: Callable[..., Any]) -> Callable[..., Any]:
    return lambda fence, *arguments: call(kind, fence, *arguments)


# A REST catalog compares least; one that compares the whole table needs to be seen for each kind of commit only.
CASES = [*(("rest", way) for way in WAYS), *(("jdbc", way) for way in (append, merge_rows, replace))]


@pytest.mark.gate
@pytest.mark.parametrize(
    ("shared", "write"), CASES, indirect=["shared"], ids=[f"{name}-{way.__name__}" for name, way in CASES]
)
def test_a_writer_that_wakes_up_commits_nothing(
    shared: CatalogLab, tmp_path: Path, write: Callable[[Writer], None]
) -> None:
    store = Folder(tmp_path / "leases")
    lake.create_namespace(shared.session.spark, shared.catalog.name, shared.schema)  # type: ignore[union-attr]
    for look in range(1, 20):
        with leased(store, "there", [FOLDER]) as (lease,):
            relation = Relation(shared.catalog.name, shared.schema, f"paid{look}")
            writer = Writer(shared, relation, lease)
            writer.make()
            act = partial(take_over, writer, store)
            if ended(writer, write, look, act):
                assert "woken" in writer.written()
                assert look > 2, "the writer was stopped at several places"
                return
            assert "woken" not in writer.written()
            refs = [str(name) for name in lake.load(writer.spark, relation.sql).refs()]
            if look > 1:
                continue
            # Whoever took over writes as ever.
            with leased(store, "there", [FOLDER]) as (next_one,):
                later = Writer(shared, relation, next_one)
                raise_fence(writer.spark, [relation.sql], next_one)
                write(later)
                assert "woken" in later.written(), refs
                assert not [
                    n for n in lake.load(writer.spark, relation.sql).refs() if str(n).startswith("engine_lease")
                ]
    raise AssertionError("the writer never got through")


def staged_rows(writer: Writer) -> None:
    staging_branch.ensure_branch(writer.spark, writer.relation.sql, {"run-id": "first"})
    lake.append(lake.stage(writer.frame(9), writer.relation.sql), {"run-id": "woken"}, STAGED)


def staged_table(writer: Writer) -> None:
    stage_replacement(writer.frame(9), writer.relation.sql, LAYOUT, {"run-id": "woken"}, {})


@pytest.mark.gate
@pytest.mark.parametrize("shared", ["rest"], indirect=True)
@pytest.mark.parametrize("stage", [staged_rows, staged_table], ids=lambda way: way.__name__)
def test_a_writer_that_wakes_up_publishes_nothing(
    shared: CatalogLab, tmp_path: Path, stage: Callable[[Writer], None]
) -> None:
    store = Folder(tmp_path / "leases")
    lake.create_namespace(shared.session.spark, shared.catalog.name, shared.schema)  # type: ignore[union-attr]

    def publish(writer: Writer) -> None:
        staging_branch.publish(writer.spark, writer.relation.sql, fence_of(writer.markers))

    for look in range(1, 20):
        with leased(store, "there", [FOLDER]) as (lease,):
            writer = Writer(shared, Relation(shared.catalog.name, shared.schema, f"paid{look}"), lease)
            writer.make()
            stage(writer)
            through = ended(writer, publish, look, partial(take_over, writer, store))
            assert ("woken" in writer.written("main")) == through
            if through:
                assert look > 2, "the writer was stopped at several places"
                return
            assert "woken" in writer.written(STAGED)
        with leased(store, "there", [FOLDER]) as (next_one,):
            later = Writer(shared, writer.relation, next_one)
            publish(later)
            assert "woken" in later.written("main")
    raise AssertionError("the writer never got through")


def take_over(writer: Writer, store: Folder) -> None:
    """What another machine does: it takes the lease, raises the fence, and is done."""
    holder = Holder(store, "there", "other", process())
    holder.begin()
    stopped = iter([0.0, 0.0, 100.0, 200.0])
    lease = take_lease(holder, FOLDER, LeaseClock(lambda: next(stopped), lambda _: None))
    assert not lease.fenced
    raise_fence(writer.spark, [writer.relation.sql], lease)
    holder.release()


def ended(writer: Writer, write: Callable[[Writer], None], look: int, act: Callable[[], None]) -> bool:
    """Let the writer write, and another run take over after so many looks; whether it wrote before that."""
    with taken_over_after(look, act) as looks:
        found = None
        try:
            write(writer)
        except StateError as error:
            found = error
    if found is None:
        assert len(looks) < look, "it committed after it was taken over"
        return True
    assert found.diagnostic.code == "lease-lost", found
    assert len(looks) >= look, found
    return False
