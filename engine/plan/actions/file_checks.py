"""The files that a stream has listed or read, against those that are there.

Spark notes a file's name and time when it lists it, and does not look again. A plan compares the two for what it can
see without Spark, and `engine.runtime.inputs.source_file_check` before a query starts, for files on other machines too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from engine import local_paths
from engine.compile import Manifest, Model, Source
from engine.errors import Diagnostic, Level, Location
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.deployed.generations import committed_batch
from engine.plan.source_changes import with_present_names
from engine.sources import SourceSpec
from engine.state.file_log import Logged

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class FileDifferences:
    """How the files that are there differ from those of a log.

    `missing`: listed to be read, and gone. `deleted`: all that are gone, with the noted time. `changed`: rows in the
    table are of another time than the file's: both times. `unwritten`: changed since listed (URI and time), with
    nothing in the table.
    """

    missing: list[str] = field(default_factory=list)
    deleted: list[tuple[str, int]] = field(default_factory=list)
    changed: list[tuple[str, int, int]] = field(default_factory=list)
    unwritten: dict[str, int] = field(default_factory=dict)


def file_faults(
    manifest: Manifest, model: Model, deployed_model: DeployedModel, deployed: Deployed
) -> Iterator[Diagnostic]:
    checkpoint, recorded_sources = (
        deployed_model.checkpoint,
        deployed_model.writer.recorded_sources if deployed_model.writer is not None else None,
    )
    if checkpoint is None or recorded_sources is None:
        return
    written = _written(deployed_model, checkpoint)
    numbers: dict[str, list[int]] = {}
    for stream in with_present_names(recorded_sources.streams, deployed.streams.get(model.id, ())):
        numbers.setdefault(stream.node, []).append(stream.number)
    for node_id, some in numbers.items():
        node, deployed_source = manifest.nodes.get(node_id), deployed.sources.get(node_id)
        if not isinstance(node, Source) or deployed_source is None or deployed_source.files is None:
            continue
        now = {file.uri: file.modified for file in deployed_source.files}
        differences_by_log = [
            compared(log.files, checkpoint.accepted, now.get, log.read_to, log.started_to if written else log.read_to)
            for log in checkpoint.logs or ()
            if log.source in some
        ]
        if missing := [uri for one in differences_by_log for uri in one.missing]:
            yield missing_files(model, deployed.root, missing)
        changed = [file for one in differences_by_log for file in one.changed]
        if changed and (fault := changed_files(model, node.spec, deployed.root, changed)).is_error:
            yield fault


def _written(deployed_model: DeployedModel, checkpoint: CheckpointFacts) -> bool:
    state, table = deployed_model.state, deployed_model.written
    if state is None or table is None or checkpoint.started is None:
        return False
    reached = committed_batch(table.history, state)
    return max(-1 if n is None else n for n in (reached, state.batch)) >= checkpoint.started


def compared(
    files: Iterable[Logged],
    accepted: Mapping[str, int],
    now: Callable[[str], int | None],
    read_to: int,
    written_to: int,
) -> FileDifferences:
    """Compare the files of a log with those that are there.

    `accepted`: times that count instead of the log's, by URI. `now`: the time of a file in milliseconds; None: there is
    none. `read_to`: the last entry of a committed micro-batch. `written_to`: the last one whose rows are in the table.
    """
    differences = FileDifferences()
    for file in files:
        uri = local_paths.decoded(file.uri)
        time, noted = now(uri), accepted.get(uri, file.modified)
        if time is None:
            differences.deleted.append((uri, noted))
            if file.entry > read_to:
                differences.missing.append(uri)
        elif time != noted and file.entry <= written_to:
            differences.changed.append((uri, noted, time))
        elif time != noted:
            differences.unwritten[uri] = time
    return differences


def missing_files(model: Model, root: Path, uris: Sequence[str]) -> Diagnostic:
    message = f"{number(len(uris), 'file')} removed before being read: {some_files(uris, root)}"
    hint = (
        "Restore the file; or, to continue without its rows, put an empty file of the same name there; or rebuild "
        f"the table: engine build -f -s {model.name}"
    )
    return Diagnostic("file-missing", message, hint, node=model.name, location=Location(model.file))


def changed_files(model: Model, spec: SourceSpec, root: Path, files: Sequence[tuple[str, int, int]]) -> Diagnostic:
    """Return the finding on files changed after they were read; a warning where the source accepts that."""
    uri, noted, now = files[0]
    message = (
        f"{number(len(files), 'file')} of '{spec.name}' changed after being read: "
        f"{some_files((f[0] for f in files), root)} ({some_files([uri], root)} was modified {_times(noted, now)})"
    )
    if spec.settings.get("on_changed_file") == "ignore":
        hint = "With 'on_changed_file: ignore' the changes are not read."
        return Diagnostic("file-changed", message, hint, Level.WARNING, model.name, Location(model.file))
    hint = (
        "A stream reads each file once: rows added later would be missing. Restore or remove the file, and land "
        "new rows as a new file; or rebuild the table from the current files: engine build -f -s "
        f"{model.name}; or ignore such changes: 'on_changed_file: ignore' of the source."
    )
    return Diagnostic("file-changed", message, hint, node=model.name, location=Location(model.file))


def some_files(uris: Iterable[str], root: Path) -> str:
    short_names = [uri.removeprefix(f"{local_paths.hadoop(root)}/") for uri in uris]
    more = f" and {len(short_names) - _SHOWN:,} more" if len(short_names) > _SHOWN else ""
    return ", ".join(short_names[:_SHOWN]) + more


def number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _times(noted: int, now: int) -> str:
    """Both modification times, to the millisecond where they fall into one second: Spark's log has no other facts."""
    unit = "milliseconds" if noted // 1000 == now // 1000 else "seconds"
    then, later = (
        datetime.fromtimestamp(time // 1000, UTC).replace(microsecond=time % 1000 * 1000, tzinfo=None)
        for time in (noted, now)
    )
    return f"{then.isoformat(' ', unit)} when it was read, and {later.isoformat(' ', unit)} now (UTC)"
