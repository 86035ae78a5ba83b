"""What Spark's checkpoint of a stream says: how far it has read, and what a build that was killed left open.

The sources of a streaming query in the order of its SQL, and what a generation recorded of those it began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from engine.compile import Input, Manifest, Model, Source
from engine.errors import StateError
from engine.plan import source_changes
from engine.plan.source_changes import Recorded, StreamSource
from engine.sources import Place, SourceSpec, kind_of, source_traits
from engine.sources.credentials import identified
from engine.state import TableState
from engine.state import checkpoint as spark_checkpoint
from engine.state.checkpoint import Damage, find_damage
from engine.state.file_log import Logged, accepted_times, file_sources, logged, reaches
from engine.state.first_offsets import has_beginnings
from engine.state.state_path import StatePath


@dataclass(frozen=True, slots=True)
class FileLog:
    """Spark's log of the files of a stream.

    `read_to`: the last entry that a committed micro-batch reads; -1: none. `started_to`: the last entry that the newest
    micro-batch reads that was started.
    """

    source: int
    files: tuple[Logged, ...]
    read_to: int
    started_to: int = -1


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """A checkpoint.

    `query_id` None: never started. `started` and `committed` are the newest such micro-batches, `started_offsets` and
    `offsets` where each source is after them. `has_beginnings`: where its sources begin is fixed; `beginnings`: where,
    if no micro-batch is done. `watermark_moved`: the committed micro-batch moved the watermark with which it began.
    `logs`: of sources that are files; None: they cannot be read. `damage`: a log that a crash of the machine cut off.
    `accepted`: times of files that count instead of those in the logs. `unread`: no record was read; asked of those
    whose table has no commit. `ends`: digests of `offsets/<n>` of the newest started micro-batch and the one before.
    """

    path: StatePath
    query_id: str | None = None
    started: int | None = None
    committed: int | None = None
    has_beginnings: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    offsets: tuple[Mapping[str, Any], ...] = ()
    started_offsets: tuple[Mapping[str, Any], ...] = ()
    watermark_moved: bool = False
    logs: tuple[FileLog, ...] | None = ()
    damage: Damage | None = None
    accepted: Mapping[str, int] = field(default_factory=dict)
    unread: bool = False
    ends: Mapping[int, str] = field(default_factory=dict)
    beginnings: tuple[Mapping[str, Any], ...] = ()

    @property
    def positions(self) -> tuple[Mapping[str, Any], ...]:
        """Where each source is: what is before it was read and committed."""
        return self.beginnings if self.committed is None else self.offsets


def read_checkpoint(
    folder: TableState, generation: int, *, files: bool = True, written: bool = True
) -> CheckpointFacts:
    """Read a checkpoint; one that does not exist says nothing. Raises StateError: `state-unreadable`."""
    path = folder.checkpoint_files(generation)
    committed, started = spark_checkpoint.last_committed(path), spark_checkpoint.last_started(path)
    begins = spark_checkpoint.read_offsets(path, started)
    ends = begins if started == committed else spark_checkpoint.read_offsets(path, committed)
    offsets = () if ends is None else ends.offsets
    started_offsets = offsets if started is None else () if begins is None else begins.offsets
    return CheckpointFacts(
        folder.checkpoint(generation),
        spark_checkpoint.query_id(path),
        started,
        committed,
        has_beginnings(path),
        {} if begins is None else begins.settings,
        offsets,
        started_offsets,
        watermark_moved(path, ends),
        _logs(path, committed, started) if files else None,
        find_damage(path, folder.checkpoint(generation)),
        accepted_times(path.parent),
        not written and spark_checkpoint.is_unread(path),
        _ends(path, started, {started: begins, committed: ends}),
        () if committed is not None else tuple(spark_checkpoint.beginnings(path)),
    )


def _ends(
    path: StatePath, started: int | None, logs: Mapping[int | None, spark_checkpoint.OffsetsLog | None]
) -> dict[int, str]:
    """The digests of the last two logs, of which some have been read."""
    digests = {}
    for batch in () if started is None else (started, started - 1):
        log = logs[batch] if batch in logs else spark_checkpoint.read_offsets(path, batch)
        if log is not None:
            digests[batch] = log.digest
    return digests


def watermark_moved(path: StatePath, newest: spark_checkpoint.OffsetsLog | None) -> bool:
    """Return whether the newest committed micro-batch moved the watermark with which it began."""
    began = newest.watermark if newest is not None else None
    try:
        return began is not None and (spark_checkpoint.next_watermark(path) or 0) > began
    except OSError:
        # What is wrong with the file is found by `find_damage`.
        return False


def _logs(path: StatePath, committed: int | None, started: int | None) -> tuple[FileLog, ...] | None:
    try:
        return tuple(_log(path, number, committed, started) for number in file_sources(path))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _log(path: StatePath, number: int, committed: int | None, started: int | None) -> FileLog:
    read_to = reaches(path, number, committed)
    started_to = read_to if started == committed else reaches(path, number, started)
    return FileLog(number, tuple(logged(path, number)), read_to, started_to)


RECORD = "sources.json"


def read_source_record(folder: TableState, generation: int) -> Recorded | None:
    """What a generation recorded of its sources; None: it was begun by a version that recorded nothing.

    Raises StateError: `state-unreadable`.
    """
    data = folder.note(generation, RECORD)
    try:
        return None if data is None else Recorded.from_json(data)
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        path = folder.generation(generation) / RECORD
        hint = "Restore the file from a backup: it records the position of the checkpoint."
        raise StateError("state-unreadable", f"{path} cannot be read: {error}", hint) from error


def in_text(manifest: Manifest, model: Model, place: Place) -> tuple[StreamSource, ...]:
    views = streams_by_view(model)
    views_in_text = (slot.view.strip("`") for slot in model.slots)
    return tuple(identified_stream(manifest, views[view], place) for view in views_in_text if view in views)


def with_earlier_tables(
    now: Sequence[StreamSource], before: Sequence[StreamSource], uuids: Mapping[str, str]
) -> tuple[StreamSource, ...]:
    """Return streams with the names that their tables had when a generation began; `uuids` by node."""
    tables = {source.identity.get("table") for source in before}
    earlier = {source.identity["uuid"]: source.identity for source in before if source.identity.get("uuid")}

    def with_earlier_table(source: StreamSource) -> StreamSource:
        was = earlier.get(uuids.get(source.node, ""))
        # A table that has the name of before may be another one of that name: that is found out elsewhere.
        renamed = was is not None and source.kind == "table" and source.identity.get("table") not in tables
        return replace(source, identity={**source.identity, "table": was["table"]}) if was and renamed else source

    return tuple(map(with_earlier_table, now))


def streams_by_view(model: Model) -> dict[str, Input]:
    return {item.view.strip("`"): item for item in model.inputs if item.stream}


def identified_stream(manifest: Manifest, item: Input, place: Place) -> StreamSource:
    node = manifest.nodes[item.node]
    if not isinstance(node, Source):
        table = str(node.relation) if isinstance(node, Model) else item.name
        return StreamSource(item.node, item.name, "table", {"table": table})
    spec = node.spec
    known = source_changes.of_source(item.name, spec.format, spec.settings)
    return replace(known, node=item.node, identity={**known.identity, **_placed(spec, place)})


def _placed(spec: SourceSpec, place: Place) -> Mapping[str, Any]:
    placed, kind = source_traits(spec.format).placed, kind_of(spec.format)
    if placed is not None:
        return placed(spec, place)
    return {"location": identified(kind.location(spec), "location")} if kind is not None else {}
