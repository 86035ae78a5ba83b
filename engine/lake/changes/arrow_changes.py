"""The rows by which two snapshots of a table differ, compared in this process: no job of Spark is started for them.

PyIceberg plans and reads the files, Arrow nets the rows. It is for few rows of plain columns; everything else, and
whatever PyIceberg cannot read (equality deletes, for example), is left to Spark (see `snapshot_changes`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.lake.lake_reader import Lake

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table

# A million rows of a few columns take tens of megabytes, and half a second; long texts take more.
_MAX_ROWS = 1_000_000
_MAX_BYTES = 256 * 1024 * 1024
# Planning takes a fifth of a millisecond for each file.
_MAX_FILES = 20_000
# Types of Iceberg that Arrow groups by, without their parameters. Floats are compared by their bits.
_COMPARABLE = frozenset(
    {"boolean", "int", "long", "float", "double", "string", "binary", "date", "timestamp", "timestamptz", "decimal"}
)
_SIDE = "__side"
_log = logging.getLogger("engine.lake")


@dataclass(frozen=True, slots=True)
class NetRows:
    removed: pa.Table
    added: pa.Table

    @property
    def none(self) -> bool:
        return not self.removed.num_rows and not self.added.num_rows

    def sides(self, name: str) -> pa.Table:
        """Both in one table, with a last column that is below 0 in removed rows and above 0 in added ones."""
        import pyarrow as pa

        parts = (self.removed, -1), (self.added, 1)
        return pa.concat_tables([_with_side(rows, side, name) for rows, side in parts])


@dataclass(frozen=True, slots=True)
class DifferingFiles:
    """`rows` counts both sides, deleted rows included; `total` counts the rows of the newer snapshot's files."""

    before: tuple[FileScanTask, ...]
    after: tuple[FileScanTask, ...]
    rows: int
    total: int
    _table: Table
    _lake: Lake
    _place: tuple[str, str]

    @property
    def none(self) -> bool:
        return not self.before and not self.after

    def net_rows(self, columns: Sequence[str]) -> NetRows | None:
        """Compare the rows by some columns, or count them by the first column if there are none; None: Spark has to."""
        size = sum(int(task.file.file_size_in_bytes) for task in (*self.before, *self.after))
        if self.rows > _MAX_ROWS or size > _MAX_BYTES:
            return None
        try:
            with self._lake.reading_errors(*self._place):
                table_schema = self._table.schema()
                read_columns = columns or [table_schema.fields[0].name]
                schema = table_schema.select(*read_columns)
                return (
                    _net_rows(self._table, schema, self.before, self.after, read_columns)
                    if _is_comparable(schema)
                    else None
                )
        except EngineError as error:
            _log.debug("%s is compared by Spark: %s", self._table.metadata_location, error)
            return None


def differing_files(lake: Lake, schema: str, name: str, older: int, newer: int) -> DifferingFiles | None:
    """Compare the file plans of two snapshots, which need not be ancestors of each other; None: Spark has to."""
    try:
        with lake.opened(schema, name) as table:
            if table is None:
                return None
            sides = snapshot_manifests(table, older), snapshot_manifests(table, newer)
            if sum(_files(manifest) for side in differing_manifests(*sides) for manifest in side) > _MAX_FILES:
                return None
            old, new = (file_tasks(table, side) for side in differing_manifests(*sides))
            total = sum(_rows(manifest) for manifest in sides[1] if not _of_deletes(manifest))
    # A snapshot has expired, or PyIceberg does not know what is in its manifests: Spark says so, or does.
    except EngineError as error:
        _log.debug("%s.%s is compared by Spark: %s", schema, name, error)
        return None
    removed_tasks = tuple(old[key] for key in old.keys() - new.keys())
    added_tasks = tuple(new[key] for key in new.keys() - old.keys())
    rows = sum(int(task.file.record_count) for task in (*removed_tasks, *added_tasks))
    return DifferingFiles(removed_tasks, added_tasks, rows, total, table, lake, (schema, name))


def snapshot_manifests(table: Table, snapshot: int) -> list[ManifestFile]:
    facts = table.snapshot_by_id(snapshot)
    if facts is None:
        raise LookupError(f"no snapshot {snapshot}")
    return facts.manifests(table.io)


def differing_manifests(
    old: Sequence[ManifestFile], new: Sequence[ManifestFile]
) -> tuple[Sequence[ManifestFile], Sequence[ManifestFile]]:
    """The manifests of two snapshots without those of data files that both have, if the deletes are the same."""
    paths = [{manifest.manifest_path for manifest in side} for side in (old, new)]
    shared_paths = paths[0] & paths[1]
    if any(_of_deletes(manifest) and manifest.manifest_path not in shared_paths for manifest in (*old, *new)):
        return old, new
    differing = [
        [manifest for manifest in side if _of_deletes(manifest) or manifest.manifest_path not in shared_paths]
        for side in (old, new)
    ]
    return differing[0], differing[1]


def _of_deletes(manifest: ManifestFile) -> bool:
    from pyiceberg.manifest import ManifestContent

    return manifest.content == ManifestContent.DELETES


def _files(manifest: ManifestFile) -> int:
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)


def _rows(manifest: ManifestFile) -> int:
    return (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)


def file_tasks(table: Table, manifests: Sequence[ManifestFile]) -> dict[tuple[str, frozenset[str]], FileScanTask]:
    """Return the tasks of the data files of some manifests, by data file and files of deletes.

    PyIceberg (0.12) gives each deletion vector to all files of a partition: the files of the vectors name the right
    one.
    """
    from pyiceberg.manifest import FileFormat
    from pyiceberg.table import FileScanTask, ManifestGroupPlanner

    referenced: dict[str, frozenset[str]] = {}

    def applies(deletes: DataFile, data: DataFile) -> bool:
        if deletes.file_format != FileFormat.PUFFIN:
            return True
        if deletes.file_path not in referenced:
            referenced[deletes.file_path] = _referenced(table, deletes.file_path)
        return data.file_path in referenced[deletes.file_path]

    by_file = {}
    for task in ManifestGroupPlanner(table.metadata, table.io).plan_files(manifests):
        deletes = {delete_file for delete_file in task.delete_files if applies(delete_file, task.file)}
        key = task.file.file_path, frozenset(delete_file.file_path for delete_file in deletes)
        by_file[key] = FileScanTask(task.file, deletes, task.residual)
    return by_file


def _referenced(table: Table, path: str) -> frozenset[str]:
    from pyiceberg.table.puffin import PuffinFile

    with table.io.new_input(path).open() as file:
        blobs = PuffinFile(file.read()).footer.blobs
    return frozenset(blob.properties["referenced-data-file"] for blob in blobs)


def _is_comparable(schema: Schema) -> bool:
    """Whether Arrow compares all columns; a value that files before the column stand for is Spark's to fill in."""
    return all(
        str(field.field_type).partition("(")[0] in _COMPARABLE and field.initial_default is None
        for field in schema.fields
    )


def _net_rows(
    table: Table,
    schema: Schema,
    removed_tasks: Sequence[FileScanTask],
    added_tasks: Sequence[FileScanTask],
    columns: Sequence[str],
) -> NetRows:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    parts = []
    for tasks, side in ((removed_tasks, -1), (added_tasks, 1)):
        rows = ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_table(tasks).select(list(columns))
        parts.append(_with_side(rows, side, _SIDE))
    both_sides = pa.concat_tables(parts)
    summed = both_sides.group_by(list(columns), use_threads=False).aggregate([(_SIDE, "sum")])
    side = summed[f"{_SIDE}_sum"]
    net = summed.select(list(columns))
    return NetRows(net.filter(pc.less(side, 0)), net.filter(pc.greater(side, 0)))


def _with_side(rows: pa.Table, side: int, name: str) -> pa.Table:
    import pyarrow as pa

    return rows.append_column(name, pa.repeat(pa.scalar(side, pa.int64()), rows.num_rows))
