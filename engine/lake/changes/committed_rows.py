"""The rows that commits added to a table and took out of it, in bounded Arrow batches, without Spark.

Files are read by path and rows counted before deletes: a place is the same in each process. A commit's files come from
its own manifests; where it takes rows out, two snapshots' file plans are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.lake.catalog.iceberg_types import spark_type
from engine.lake.changes.arrow_changes import differing_manifests, file_tasks, snapshot_manifests
from engine.lake.lake_reader import Lake, TableColumn

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.snapshots import Snapshot

# Files of deletes that are held at the same time; one may be about many data files.
_DELETES_HELD = 8


class CommitKind(StrEnum):
    """What a commit does to rows: it adds some (APPENDS), moves them (KEEPS), or may take some out (CHANGES)."""

    APPENDS = "appends"
    KEEPS = "keeps"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Commit:
    """A snapshot and what it is compared with; None: with a table without rows."""

    snapshot: int
    base: int | None
    kind: CommitKind
    operation: str


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Some rows of a data file; `row` is the number of its rows up to the last of them, deleted ones included."""

    rows: pa.RecordBatch
    file: str
    row: int


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a data file: those at positions in `of` that are in none of `without`; `of` None: all."""

    file: DataFile
    without: frozenset[DataFile] = frozenset()
    only_in: frozenset[DataFile] | None = None


@dataclass(slots=True)
class CommittedTable:
    """A table as it was when it was opened: commits that come later are not in it.

    Reading raises SetupError as `Lake.opened` does.

    Attributes:
        until: an older snapshot at which the table ends here; None: its current one.
    """

    _table: Table
    _lake: Lake
    _place: tuple[str, str]
    until: int | None = None
    _deletes: dict[str, dict[str, pa.ChunkedArray]] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        return str(self._table.metadata.table_uuid)

    @property
    def current(self) -> int | None:
        """The newest snapshot that readers see."""
        snapshot = self._newest()
        return None if snapshot is None else snapshot.snapshot_id

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        return tuple(TableColumn(f.name, spark_type(f.field_type), f.doc or "") for f in self._table.schema().fields)

    def has(self, snapshot: int) -> bool:
        return self._table.snapshot_by_id(snapshot) is not None

    def commits_after(self, snapshot: int | None) -> list[Commit] | None:
        """The commits behind a snapshot, the oldest first; None: it is not in the history of the current one."""
        commits: list[Commit] = []
        current = self._newest()
        while current is not None and current.snapshot_id != snapshot:
            commits.append(_commit(current))
            parent = current.parent_snapshot_id
            current = None if parent is None else self._table.snapshot_by_id(parent)
            if current is None and parent is not None and parent != snapshot:
                return None
        return None if current is None and snapshot is not None else commits[::-1]

    def is_past_end(self, snapshot: int | None) -> bool:
        """Whether a snapshot is newer than `until`, so that nothing up to there is missing."""
        newer = self._table.current_snapshot() if self.until is not None and snapshot is not None else None
        while newer is not None and newer.snapshot_id != self.until:
            if newer.snapshot_id == snapshot:
                return True
            parent = newer.parent_snapshot_id
            newer = None if parent is None else self._table.snapshot_by_id(parent)
        return False

    def _newest(self) -> Snapshot | None:
        return self._table.current_snapshot() if self.until is None else self._table.snapshot_by_id(self.until)

    def added(self, commit: Commit, columns: Sequence[str], behind: tuple[str, int] = ("", 0)) -> Iterator[RowsRead]:
        """The rows that are there since a commit, behind a place in its files."""
        with self._lake.reading_errors(*self._place):
            yield from self._read(self._added(commit), columns, behind)

    def removed(self, commit: Commit, columns: Sequence[str]) -> Iterator[RowsRead]:
        """The rows that are gone since a commit; those that it wrote to other files are among them, too."""
        if commit.kind is CommitKind.CHANGES and commit.base is not None:
            with self._lake.reading_errors(*self._place):
                before, after = self._plans(commit.base, commit.snapshot)
                yield from self._read(_only_in(before, after), columns, ("", 0))

    def rows_added(self, commit: Commit) -> int:
        """How many rows the files of a commit have, deleted ones included."""
        with self._lake.reading_errors(*self._place):
            return sum(int(part.file.record_count) for part in self._added(commit))

    def _added(self, commit: Commit) -> list[_Part]:
        if commit.kind is CommitKind.KEEPS:
            return []
        if commit.kind is CommitKind.APPENDS and commit.base is not None:
            return [_Part(file) for file in self._appended(commit.snapshot)]
        if commit.base is None:
            file_scans = file_tasks(self._table, snapshot_manifests(self._table, commit.snapshot)).values()
            return [_Part(task.file, frozenset(task.delete_files)) for task in file_scans]
        before, after = self._plans(commit.base, commit.snapshot)
        return _only_in(after, before)

    def _appended(self, snapshot: int) -> Iterator[DataFile]:
        from pyiceberg.manifest import ManifestContent, ManifestEntryStatus

        for manifest in snapshot_manifests(self._table, snapshot):
            if manifest.content == ManifestContent.DATA and manifest.added_snapshot_id == snapshot:
                for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=True):
                    if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot:
                        yield entry.data_file

    def _plans(self, before: int, after: int) -> tuple[dict[str, FileScanTask], dict[str, FileScanTask]]:
        sides = differing_manifests(snapshot_manifests(self._table, before), snapshot_manifests(self._table, after))
        old, new = (
            {task.file.file_path: task for task in file_tasks(self._table, manifests).values()} for manifests in sides
        )
        return old, new

    def _read(self, parts: list[_Part], columns: Sequence[str], behind: tuple[str, int]) -> Iterator[RowsRead]:
        schema = self._table.schema().select(*columns)
        for part in sorted(parts, key=lambda one: one.file.file_path):
            path = part.file.file_path
            if path >= behind[0]:
                yield from self._read_file(part, schema, behind[1] if path == behind[0] else 0)

    def _read_file(self, part: _Part, schema: Schema, skipped: int) -> Iterator[RowsRead]:
        import pyarrow as pa
        import pyarrow.compute as pc

        without = self._positions(part.without, part.file.file_path)
        only = None if part.only_in is None else self._positions(part.only_in, part.file.file_path)
        row = 0
        for batch in _batches(self._table, part.file, schema):
            begin, row = row, row + batch.num_rows
            if row <= skipped:
                continue
            wanted_rows = batch.slice(max(0, skipped - begin))
            if without or only is not None:
                numbers = pa.array(range(row - wanted_rows.num_rows, row), pa.int64())
                mask = pc.invert(pc.is_in(numbers, value_set=pa.chunked_array(without, pa.int64())))
                if only is not None:
                    mask = pc.and_(mask, pc.is_in(numbers, value_set=pa.chunked_array(only, pa.int64())))
                wanted_rows = wanted_rows.filter(mask)
            yield RowsRead(wanted_rows, part.file.file_path, row)

    def _positions(self, deletes: frozenset[DataFile], path: str) -> list[pa.Array]:
        """The positions in a data file that files of deletes name."""
        from pyiceberg.io.pyarrow import _read_deletes

        chunks: list[pa.Array] = []
        for one in sorted(deletes, key=lambda file: file.file_path):
            if one.file_path not in self._deletes:
                while len(self._deletes) >= _DELETES_HELD:
                    self._deletes.pop(next(iter(self._deletes)))
                self._deletes[one.file_path] = _read_deletes(self._table.io, one)
            positions = self._deletes[one.file_path].get(path)
            chunks += positions.chunks if positions is not None else []
        return chunks


def committed_table(lake: Lake, schema: str, name: str, until: int | None = None) -> CommittedTable | None:
    """Return a table as it is now, or was at a snapshot; None: there is none. Raises SetupError: as `Lake.opened`."""
    with lake.opened(schema, name) as table:
        return None if table is None else CommittedTable(table, lake, (schema, name), until)


def _commit(snapshot: Snapshot) -> Commit:
    summary = snapshot.summary
    operation = summary.operation.value if summary is not None else ""
    kind = CommitKind.CHANGES
    if operation == "append":
        kind = CommitKind.APPENDS
    elif operation == "replace" and _moves_rows(summary.additional_properties if summary is not None else {}):
        kind = CommitKind.KEEPS
    return Commit(snapshot.snapshot_id, snapshot.parent_snapshot_id, kind, operation)


def _moves_rows(summary: dict[str, str]) -> bool:
    """Whether a rewrite of files has as many rows as what it replaces; an erasure has fewer."""
    added, deleted = (int(summary.get(f"{change}-records", 0)) for change in ("added", "deleted"))
    return added == deleted - int(summary.get("removed-position-deletes", 0))


def _only_in(plan: dict[str, FileScanTask], other_plan: dict[str, FileScanTask]) -> list[_Part]:
    parts = []
    for path, task in plan.items():
        deletes, other = frozenset(task.delete_files), other_plan.get(path)
        if other is None:
            parts.append(_Part(task.file, deletes))
        elif more := frozenset(other.delete_files) - deletes:
            parts.append(_Part(task.file, deletes, more))
    return parts


def _batches(table: Table, file: DataFile, schema: Schema) -> Iterator[pa.RecordBatch]:
    """All rows of a data file with some of today's columns, deleted ones included."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.table import FileScanTask

    scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
    yield from scan._record_batches_from_scan_tasks_and_deletes([FileScanTask(file)], {})  # noqa: SLF001
