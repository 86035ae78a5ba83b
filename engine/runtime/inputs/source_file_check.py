"""The files that a stream reads: what Spark has noted of them against what is there.

All measured on Spark 4.1.4, without a word: rows of a file that was rewritten or appended to after it was read never
come; one that was deleted between listing and reading is skipped, and one that was rewritten then is read as it is by
then. See docs/design/012-changed-files.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine import local_paths
from engine.compile import Model, Source
from engine.errors import Diagnostic, EngineError, Level, RunError, StateError
from engine.events import Diagnosed
from engine.plan.actions.file_checks import changed_files, compared, missing_files, number, some_files
from engine.runtime.context.run_context import Run
from engine.sources import KINDS, SourceSpec, file_traits, listing
from engine.state import TableState
from engine.state import checkpoint as spark_checkpoint
from engine.state.file_log import ACCEPTED, Logged, accepted_times, file_sources, logged, reaches
from engine.state.state_path import StatePath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN = 3


@dataclass(slots=True)
class Landed:
    """The files of the streams of one query.

    `specs` empty: no stream of files. `accepted`: by URI, the time of a file that differs from Spark's note and that
    its rows are of. `folders`: by source, columns in folder names, where those are fixed. `fitting`: files whose schema
    was compared, with the time that they had.
    """

    run: Run
    model: Model
    session: SparkSession
    specs: tuple[SourceSpec, ...]
    checkpoint: StatePath
    accepted: dict[str, int] = field(default_factory=dict)
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fitting: set[tuple[str, int]] = field(default_factory=set)

    def refused(self, batch: int) -> EngineError | None:
        changed_uris, unfit = [], []
        files = {local_paths.decoded(file.uri): file for file in self._of_batch(batch)}
        elsewhere = {uri for uri in files if listing.local(uri) is None}
        remote_times = listing.times_now(elsewhere, self.specs, self.run.place)
        for uri, file in files.items():
            path = listing.local(uri)
            if path is None and remote_times is None:
                continue
            if path is not None and (faults := listing.faults_of(spec := self.spec_of(uri), self.run.place, [path])):
                return file_traits(spec).unreadable(spec.name, faults)
            if (modified(path) if path is not None else (remote_times or {}).get(uri)) != self.time_of(uri, file):
                changed_uris.append(uri)
            elif (uri, self.time_of(uri, file)) not in self.fitting:
                unfit += self.misfits(uri)
        if changed_uris:
            return _changed_meanwhile(self, changed_uris)
        if unfit:
            return file_traits(self.specs[0]).unfit(unfit)
        late = [uri for uri in files if self._has_late_folder(uri)]
        return _late_folder(self, late) if late else None

    def misfits(self, uri: str) -> list[str]:
        spec = self.spec_of(uri)
        faults = file_traits(spec).misfits(listing.local(uri) or uri, spec, self.run.place)
        return [f"{self.some([uri])}: {misfit}" for misfit in faults]

    def _has_late_folder(self, uri: str) -> bool:
        spec = self.spec_of(uri)
        known_columns = self.folders.get(spec.name)
        return known_columns is not None and not set(
            file_traits(spec).columns_in_folders([uri], spec, self.run.place)
        ) <= {*known_columns}

    def _of_batch(self, batch: int) -> Iterator[Logged]:
        for source in file_sources(self.checkpoint) if self.specs else ():
            begin, end = (reaches(self.checkpoint, source, number) for number in (batch - 1, batch))
            yield from logged(self.checkpoint, source, after_entry=begin, to=end)

    def time_of(self, uri: str, file: Logged) -> int:
        """The time of a file that its rows are of, in milliseconds."""
        return self.accepted.get(uri, file.modified)

    def spec_of(self, uri: str) -> SourceSpec:
        def length(spec: SourceSpec) -> int:
            folder = listing.folder(spec, self.run.place)
            begin = local_paths.hadoop(folder) if folder is not None else listing.base(str(spec.settings["path"]))
            return len(begin) if uri.startswith(begin) else 0

        return max(self.specs, key=length)

    def some(self, uris: Iterable[str]) -> str:
        return some_files(uris, self.run.place.root)

    def warn(self, code: str, message: str, hint: str) -> None:
        self.run.emit(Diagnosed(Diagnostic(code, message, hint, Level.WARNING, self.model.name)))


def verify(
    run: Run,
    model: Model,
    session: SparkSession,
    folder: TableState,
    generation: int,
    reached: int | None,
    folders: Mapping[str, tuple[str, ...]],
) -> Landed:
    """Compare what Spark has noted of the files with what is there, before a query starts.

    `reached`: the last micro-batch that is in the table, whatever Spark has noted.

    Raises:
        RunError: `source-unreadable`, the schema of a file does not fit.
        StateError: `file-missing` or `file-changed`; nothing was read or written.
    """
    nodes = [node for item in model.inputs if item.stream and isinstance(node := run.manifest.nodes[item.node], Source)]
    specs = tuple(node.spec for node in nodes if "max_files_per_trigger" in KINDS[node.spec.format].KEYS)
    of_generation = folder.generation(generation)
    landed = Landed(run, model, session, specs, folder.checkpoint(generation), accepted_times(of_generation), folders)
    if specs:
        accepted_before = dict(landed.accepted)
        _compare(landed, reached)
        if landed.accepted != accepted_before:
            folder.save_note(generation, ACCEPTED, landed.accepted)
        _check_unread(landed)
    return landed


def _check_unread(landed: Landed) -> None:
    """Check the schemas of files that are still to be read: Spark reads others wrong, or with errors of its own."""
    read_uris: set[str] | None = None
    unfit: list[str] = []
    for spec in landed.specs:
        if not file_traits(spec).has_schemas(spec):
            continue
        if read_uris is None:
            logs = (logged(landed.checkpoint, source) for source in file_sources(landed.checkpoint))
            read_uris = {local_paths.decoded(file.uri) for log in logs for file in log}
        for file in listing.listed(landed.session, spec, landed.run.place):
            if file.uri not in read_uris:
                unfit += landed.misfits(file.uri)
                landed.fitting.add((file.uri, file.modified))
    if unfit:
        raise file_traits(landed.specs[0]).unfit(unfit)


def _compare(landed: Landed, reached: int | None) -> None:
    last = spark_checkpoint.last_committed(landed.checkpoint)
    newest_batch = max((batch for batch in (last, reached) if batch is not None), default=None)
    current_times = _Times(landed)
    missing_uris: list[str] = []
    gone_by_time: dict[int, str] = {}
    changed_by_source: dict[str, list[tuple[str, int, int]]] = {}
    for source in file_sources(landed.checkpoint):
        read_to, written_to = (reaches(landed.checkpoint, source, batch) for batch in (last, newest_batch))
        comparison = compared(
            logged(landed.checkpoint, source), landed.accepted, current_times.modified_at, read_to, written_to
        )
        missing_uris += comparison.missing
        for uri, noted in comparison.deleted:
            gone_by_time.setdefault(noted, uri)
        for file in comparison.changed:
            changed_by_source.setdefault(landed.spec_of(file[0]).name, []).append(file)
        # Nothing of them is in the table: they are read as they are now.
        landed.accepted |= comparison.unwritten
    if missing_uris:
        raise StateError.from_diagnostics((missing_files(landed.model, landed.run.place.root, missing_uris),))
    for spec in landed.specs:
        if files := changed_by_source.pop(spec.name, None):
            _report_changed(landed, spec, files)
    if gone_by_time:
        _warn_of_renamed(landed, gone_by_time)


def _report_changed(landed: Landed, spec: SourceSpec, files: list[tuple[str, int, int]]) -> None:
    fault = changed_files(landed.model, spec, landed.run.place.root, files)
    if fault.is_error:
        raise StateError.from_diagnostics((fault,))
    landed.run.emit(Diagnosed(fault))


def _warn_of_renamed(landed: Landed, gone_by_time: Mapping[int, str]) -> None:
    """Warn of new files with the time of one that was read and is gone: Spark's log has no sizes to know a file by."""
    known_uris = {
        local_paths.decoded(f.uri)
        for source in file_sources(landed.checkpoint)
        for f in logged(landed.checkpoint, source)
    }
    for spec in landed.specs:
        files = listing.listed(landed.session, spec, landed.run.place)
        new = [
            (file.uri, gone_by_time[file.modified])
            for file in files
            if file.modified in gone_by_time and file.uri not in known_uris
        ]
        if new:
            examples = ", ".join(f"{landed.some([uri])} (was {landed.some([old])})" for uri, old in new[:_SHOWN])
            more = f" and {len(new) - _SHOWN:,} more" if len(new) > _SHOWN else ""
            message = (
                f"{number(len(new), 'file')} of '{spec.name}' {'has' if len(new) == 1 else 'have'} the modification "
                f"time of a file that was read and no longer exists: {examples}{more}; if it was renamed, its rows "
                "are read twice"
            )
            hint = (
                "Do not rename files that were read: a stream identifies files by name. To remove duplicates, "
                f"rebuild the table: engine build -f -s {landed.model.name}"
            )
            landed.warn("file-renamed", message, hint)


def _late_folder(landed: Landed, uris: list[str]) -> RunError:
    message = f"{landed.some(uris)} landed in a folder whose name is a column, as the first file, while the query began"
    return RunError("source-unreadable", message, "Nothing of the micro-batch was written; build again.")


def _changed_meanwhile(landed: Landed, uris: list[str]) -> RunError:
    message = f"{number(len(uris), 'file')} changed while being read: {landed.some(uris)}"
    hint = (
        "Nothing of the micro-batch was written; build again. Write each file under a name that starts with '_' or "
        "'.', and rename it when it is complete."
    )
    return RunError("file-changed", message, hint)


class _Times:
    """The times of files as they are now; a place that is not on this machine is listed once."""

    def __init__(self, landed: Landed) -> None:
        self._landed = landed
        self._elsewhere: dict[str, int] | None = None

    def modified_at(self, uri: str) -> int | None:
        """Milliseconds since 1970; None if there is no such file."""
        path = listing.local(uri)
        if path is not None:
            return modified(path)
        if self._elsewhere is None:
            landed = self._landed
            files = (listing.listed(landed.session, spec, landed.run.place) for spec in landed.specs)
            self._elsewhere = {file.uri: file.modified for some in files for file in some}
        return self._elsewhere.get(uri)


def modified(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None
