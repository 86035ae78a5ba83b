"""A table of a lake while a query reads it: one snapshot, some of its columns, a batch of rows at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.lake.catalog.iceberg_types import spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table

    from engine.lake.lake_reader import Lake

# The type, and not a field of this name.
_VARIANT = re.compile(r"\bvariant\b(?! *:)")


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table as it was when it was opened: later commits do not change what is read."""

    place: tuple[str, str]
    columns: tuple[tuple[str, str], ...]
    version: str
    _table: Table

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @property
    def only_spark_reads(self) -> bool:
        """Whether a column holds VARIANTs; of its files PyIceberg (0.12) does not read the other columns either."""
        return any(_VARIANT.search(type_) for _, type_ in self.columns)

    def schema(self) -> pa.Schema:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return schema_to_pyarrow(self._table.schema(), include_field_ids=False)

    def rows(self, columns: Sequence[str], limit: int | None) -> pa.RecordBatchReader:
        """Read rows; deletes are applied.

        Args:
            columns: that are read, at least one.
            limit: of rows; None: all.
        """
        return self._table.scan(selected_fields=tuple(columns), limit=limit).to_arrow_batch_reader()

    def count(self) -> int:
        return int(self._table.scan().count())

    @property
    def snapshot(self) -> int | None:
        """The snapshot that is read; None: nothing was written yet."""
        now = self._table.current_snapshot()
        return now.snapshot_id if now else None

    def comments(self) -> list[tuple[str, str]]:
        return [(field.name, field.doc) for field in self._table.schema().fields if field.doc]


@contextmanager
def opened(lake: Lake, schema: str, name: str) -> Iterator[OpenTable | None]:
    """Open a table; None: there is none. What goes wrong while it is read is an error of the catalog."""
    with lake.opened(schema, name) as table:
        if table is None:
            yield None
            return
        columns = tuple((field.name, spark_type(field.field_type)) for field in table.schema().fields)
        yield OpenTable((schema, name), columns, table.metadata_location, table)


class KeptFailure:
    """Hands batches on, and keeps what reading them raised: a library in between makes a text of it."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.error: Exception | None = None
        self._last: pa.RecordBatch | None = None

    def batches(self) -> Iterator[Any]:
        try:
            for batch in self._reader:
                self._last = batch
                yield batch
        except Exception as error:
            self.error = error
            raise

    def invalid_text(self) -> str | None:
        """Return the first column of the last batch with text that is not UTF-8; Arrow checks it on request only."""
        import pyarrow as pa

        for name, column in zip(self._last.schema.names, self._last.columns, strict=True) if self._last else ():
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                return str(name)
        return None
