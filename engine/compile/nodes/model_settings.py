"""The typed settings of a model: how its rows reach the table, what is expected of them, how it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.relations import Partition, SortColumn
from engine.times import duration_seconds


class OutputMode(StrEnum):
    APPEND = "append"
    UPDATE = "update"
    COMPLETE = "complete"


class Overwrite(StrEnum):
    TABLE = "table"
    PARTITIONS = "partitions"


class History(StrEnum):
    NONE = ""
    VERSIONS = "versions"
    CHANGES = "changes"

    @property
    def columns(self) -> tuple[str, ...]:
        return _OF_HISTORY[self]

    @property
    def header(self) -> bool | str:
        """What `history:` says in a header; versions came first, and are `true`."""
        return self is History.VERSIONS or self.value


_OF_HISTORY = {
    History.NONE: (),
    History.VERSIONS: ("valid_from", "valid_to", "is_current"),
    History.CHANGES: ("change_type", "changed_at"),
}


class Deletes(StrEnum):
    IGNORE = "ignore"
    CLOSE = "close"


class OnEmptyExtract(StrEnum):
    FAIL = "fail"
    CLOSE = "close"


class Refresh(StrEnum):
    AUTO = "auto"
    INCREMENTAL = "incremental"
    FULL = "full"


class OnSchemaChange(StrEnum):
    FAIL = "fail"
    APPEND_COLUMNS = "append_columns"
    IGNORE = "ignore"


class Publish(StrEnum):
    IMMEDIATELY = "immediately"
    ON_TESTS_PASS = "on_tests_pass"  # noqa: S105 (no password)


class OnFail(StrEnum):
    WARN = "warn"
    DROP = "drop"
    QUARANTINE = "quarantine"
    FAIL = "fail"


class OnNull(StrEnum):
    """What becomes of a row whose event time is NULL where a stateful step uses it; counted in any case."""

    BAD_RECORD = "bad_record"
    DROP = "drop"


class OnUpstreamDelete(StrEnum):
    """What a stream does at a snapshot of its upstream table that only deletes."""

    FAIL = "fail"
    IGNORE = "ignore"


class StateProvider(StrEnum):
    ROCKSDB = "rocksdb"
    HDFS = "hdfs"


class TriggerKind(StrEnum):
    """When `start` begins a micro-batch; `once` is for build and run too."""

    FAST = "as fast as it goes"
    EVERY = "every"
    ONCE = "once"


@dataclass(frozen=True, slots=True)
class Trigger:
    """When micro-batches begin; the interval belongs to `every`."""

    kind: TriggerKind = TriggerKind.FAST
    interval: str | None = None

    @property
    def seconds(self) -> float:
        return float(duration_seconds(self.interval)) if self.interval else 0.0


@dataclass(frozen=True, slots=True)
class UnavailableValues:
    """Where the rows of a change feed say which values were not sent, as they did not change.

    Attributes:
        column: of the query, with the names of the source's columns; NULL: all values were sent.
        insert_when: SQL over the output row; true for a row that was not there before.
        computed_from: the source's columns that each column of the query has its values from.
    """

    column: str
    insert_when: str
    computed_from: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Write:
    """How rows reach the table.

    `output_mode` None: a batch model. `unique_key`: columns by which the write is a MERGE; empty: rows are added; in
    update mode never empty. `sequence_by`: which of two rows of a key is newer. `delete_when`: where it is true of an
    output row the key is deleted. `check`: of a history of full extracts, the columns compared with the current
    version. `deletes`: what becomes of a key that an extract does not have any more. `deletes_remembered`: for how long
    a deleted key cannot be revived by an older row. `format_version` None: the engine's default. `unavailable`:
    values that the source did not send, for which the table's are taken; None: all are sent. `truncate_when`: a row for
    which it is true deletes all older rows and has no key.
    """

    output_mode: OutputMode | None = None
    partition_by: tuple[Partition, ...] = ()
    table_properties: Mapping[str, str] = field(default_factory=dict)
    unique_key: tuple[str, ...] = ()
    sequence_by: tuple[str, ...] = ()
    delete_when: str | None = None
    history: History = History.NONE
    check: tuple[str, ...] = ()
    check_all: bool = False
    deletes: Deletes = Deletes.IGNORE
    on_empty_extract: OnEmptyExtract = OnEmptyExtract.FAIL
    exclude: tuple[str, ...] = ()
    deletes_remembered: str = "7 days"
    overwrite: Overwrite = Overwrite.TABLE
    refresh: Refresh = Refresh.AUTO
    sort_by: tuple[SortColumn, ...] = ()
    write_options: Mapping[str, str] = field(default_factory=dict)
    format_version: int | None = None
    on_schema_change: OnSchemaChange = OnSchemaChange.FAIL
    publish: Publish = Publish.IMMEDIATELY
    unavailable: UnavailableValues | None = None
    truncate_when: str | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What every output row should meet; only TRUE passes. The description is for people."""

    name: str
    check: str
    on_fail: OnFail = OnFail.WARN
    description: str = ""

    @property
    def takes_rows_out(self) -> bool:
        return self.on_fail in {OnFail.DROP, OnFail.QUARANTINE}


@dataclass(frozen=True, slots=True)
class PersistDocs:
    relation: bool = True
    columns: bool = True


@dataclass(frozen=True, slots=True)
class Operation:
    """How a model is run; nothing of it changes what its rows mean.

    `trigger` and `schedule` (cron) are for `start`. `stalled_after` None: as the target has it. `full_refresh` False
    protects the table from --full-refresh. `keep_previous`: for how long what a full refresh replaces can be restored.
    `state_provider` None: the engine's default.
    """

    trigger: Trigger = Trigger()
    schedule: str | None = None
    stalled_after: str | None = None
    full_refresh: bool | None = None
    keep_previous: str = "7 days"
    pre_hook: tuple[str, ...] = ()
    post_hook: tuple[str, ...] = ()
    explain: bool = False
    persist_docs: PersistDocs = PersistDocs()
    renamed_from: str = ""
    state_provider: StateProvider | None = None


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A declared window of time: tumbling, sliding or session.

    `size` is a length such as `1 hours`; of a session the gap that ends it. `slide` empty: by its size. `start` shifts
    all windows.
    """

    kind: str
    time: str
    size: str
    slide: str = ""
    start: str = ""
    varies: bool = False

    @property
    def function(self) -> str:
        return "session_window" if self.kind == "session" else "window"

    @property
    def sql(self) -> str:
        slide = self.slide or (self.size if self.start else "")
        lengths = [self.size] if self.varies else [f"'{text}'" for text in (self.size, slide, self.start) if text]
        return f"{self.function}({self.time}, {', '.join(lengths)})"
