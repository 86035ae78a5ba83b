"""What a stream has not read of its inputs, as far as files and the catalog tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from engine import local_paths
from engine.characters import whole_number
from engine.compile import Manifest, Model, Source
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan import source_changes
from engine.plan.actions.action import Action, ActionKind, Unread, UnreadRecords
from engine.plan.deployed.checkpoint_facts import CheckpointFacts, FileLog
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.source_changes import StreamSource
from engine.sources import source_traits
from engine.sources.listing import Listed

_NAMES = 3


def unread_inputs(
    manifest: Manifest,
    model: Model,
    kind: ActionKind,
    deployed: Deployed,
    upstream: Mapping[str, Action],
) -> tuple[Unread, ...]:
    if kind is ActionKind.EMPTY:
        return ()
    deployed_model = deployed.models.get(model.id, DeployedModel())
    checkpoint = deployed_model.checkpoint if kind is ActionKind.RESUME else None
    numbers = _source_numbers(deployed_model, deployed.streams.get(model.id, ()))
    unread_items = []
    for item in model.inputs:
        node = manifest.nodes[item.node]
        if not item.stream:
            continue
        source = deployed.sources.get(item.node)
        table = deployed.models.get(item.node, DeployedModel()).table
        if kind is ActionKind.RESET:
            unread_items.append(Unread(item.name))
        elif isinstance(node, Source) and source is not None and source.files is not None:
            # None: it is not known which files a stream that resumes has read. Empty: a new one has read none.
            not_logged = None if kind is ActionKind.RESUME else ()
            logs = _logs(checkpoint, numbers, item.node) if checkpoint is not None else not_logged
            unread_items.append(_files(item.name, source.files, logs))
        elif isinstance(node, Source) and source is not None and source.topics is not None:
            unread = source_traits(node.spec.format).unread
            offsets = tuple(checkpoint.offsets) if checkpoint is not None else ()
            count = unread(source.topics, offsets) if checkpoint is not None else None
            records = UnreadRecords(node.spec, offsets, source.topics) if count else None
            unread_items.append(Unread(item.name, "offsets", count, records=records))
        elif isinstance(node, Source):
            unread_items.append(_snapshots(item.name, source.table if source is not None else None, checkpoint))
        elif (before := upstream.get(item.node)) is not None and not before.unchanged:
            present = _snapshots(item.name, table, checkpoint)
            unread_items.append(Unread(item.name, "snapshots", present=present.count, oldest_at=present.oldest_at))
        else:
            unread_items.append(_snapshots(item.name, table, checkpoint))
    return tuple(unread_items)


def _source_numbers(deployed_model: DeployedModel, now: Sequence[StreamSource]) -> Mapping[str, set[int]] | None:
    """The numbers of each source in a checkpoint, by the node that it is now; None: they are not recorded."""
    recorded_sources = deployed_model.writer.recorded_sources if deployed_model.writer is not None else None
    if recorded_sources is None:
        return None
    numbers: dict[str, set[int]] = {}
    for stream in source_changes.with_present_names(recorded_sources.streams, now):
        numbers.setdefault(stream.node, set()).add(stream.number)
    return numbers


def _logs(checkpoint: CheckpointFacts, numbers: Mapping[str, set[int]] | None, node: str) -> Sequence[FileLog] | None:
    """The logs of a source's files, one a relation that reads it; None: they cannot be told from those of others."""
    if numbers is None or checkpoint.logs is None:
        return None
    return [log for log in checkpoint.logs if log.source in numbers.get(node, ())]


def _files(name: str, files: Collection[Listed], logs: Sequence[FileLog] | None) -> Unread:
    if logs is None:
        return Unread(name, "files")
    read = [{local_paths.decoded(f.uri) for f in log.files if f.entry <= log.read_to} for log in logs]
    new = [file for file in files if not read or any(file.uri not in uris for uris in read)]
    oldest = min((file.modified / 1000 for file in new), default=None)
    names = tuple(file.uri.rpartition("/")[2] for file in new[:_NAMES])
    return Unread(name, "files", len(new), names, oldest_at=oldest)


def _snapshots(name: str, table: TableFacts | None, checkpoint: CheckpointFacts | None) -> Unread:
    if table is None:
        return Unread(name)
    if checkpoint is None:
        new = _with_rows(table.history)
        return Unread(name, "snapshots", len(new), rows=table.rows, oldest_at=_first_at(new))
    ids = [snapshot.id for snapshot in table.history]
    positions_behind_head = [ids.index(i) for i in snapshots_read(checkpoint) if i in ids]
    if positions_behind_head:
        since = [snapshot for snapshot in table.history[: min(positions_behind_head)] if not snapshot.rewrites_files]
        new = _with_rows(since)
        return Unread(name, "snapshots", len(new), rows=_added(since), oldest_at=_first_at(new))
    return Unread(name, "snapshots", 0 if not ids else None)


def _added(snapshots: Sequence[SnapshotFacts]) -> int | None:
    """How many rows some commits add, by their summaries; None: one does not say."""
    added = [whole_number(snapshot.summary.get("added-records", "0")) for snapshot in snapshots]
    return None if None in added else sum(number or 0 for number in added)


def _with_rows(snapshots: Sequence[SnapshotFacts]) -> list[SnapshotFacts]:
    """Those of some commits that may bring rows: a compaction brings none, nor a takeover's fence or an erasure."""
    bring = (s for s in snapshots if not s.rewrites_files and not s.erases)
    return [snapshot for snapshot in bring if snapshot.marker("fence") is None]


def _first_at(snapshots: Sequence[SnapshotFacts]) -> float | None:
    """When the first of some commits came, in seconds; None: there is none, or its time is not known."""
    return min((snapshot.at / 1000 for snapshot in snapshots if snapshot.at), default=None)


def snapshots_read(checkpoint: CheckpointFacts) -> Iterator[int]:
    for offset in checkpoint.offsets:
        if isinstance(snapshot_id := offset.get("snapshot_id"), int):
            yield snapshot_id
