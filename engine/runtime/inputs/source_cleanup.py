"""After a stream's last commit: files that were read are archived or deleted, and old ones that were not are counted.

Spark's cleanSource never touches the last micro-batch's files, archives under the absolute path, and takes a file that
was rewritten since for the one it read (measured on 4.1.4).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from engine import kill_points, local_paths
from engine.plan.actions.file_checks import number
from engine.project.project_files import inside
from engine.runtime.inputs.source_file_check import Landed
from engine.sources import SourceSpec, listing
from engine.state import checkpoint as spark_checkpoint
from engine.state.file_log import Logged, file_sources, logged, reaches
from engine.times import duration_seconds, in_words


def clean_up_files(landed: Landed) -> str:
    """Archive or delete the files that were read, and warn of those skipped for their age; return what was done."""
    kill_points.reach("reading ended", "")
    cleaned_specs = [spec for spec in landed.specs if {"after_reading", "max_file_age"} & spec.settings.keys()]
    if not cleaned_specs:
        return ""
    read_times, listed_by_uri = _read_and_listed(landed)
    notes: list[str] = []
    for spec in cleaned_specs:
        current_files = listing.listed(landed.session, spec, landed.run.place)
        if age := spec.settings.get("max_file_age"):
            _warn_of_skipped(
                landed,
                spec,
                [file for file in current_files if file.uri not in listed_by_uri],
                listed_by_uri.values(),
                age,
            )
        if after_reading := spec.settings.get("after_reading"):
            times = read_times.get(spec.name, {})
            unchanged_files = [file for file in current_files if file.modified == times.get(file.uri)]
            notes += _archive_or_delete(landed, spec, unchanged_files, delete=after_reading == "delete")
    return "; ".join(notes)


def _read_and_listed(landed: Landed) -> tuple[dict[str, dict[str, int]], dict[str, Logged]]:
    """By source the times of the files that were read and committed, and all that Spark has listed; both by URI."""
    last = spark_checkpoint.last_committed(landed.checkpoint)
    read_times: dict[str, dict[str, int]] = {}
    listed: dict[str, Logged] = {}
    for stream in file_sources(landed.checkpoint):
        files = {local_paths.decoded(file.uri): file for file in logged(landed.checkpoint, stream)}
        listed |= files
        end = reaches(landed.checkpoint, stream, last)
        times = {uri: landed.time_of(uri, file) for uri, file in files.items() if file.entry <= end}
        for name in {landed.spec_of(uri).name for uri in files}:
            # A query that reads a source twice has two streams of it; both must be done with a file.
            read_times[name] = {uri: time for uri, time in times.items() if uri in read_times.get(name, times)}
    return read_times, listed


def _warn_of_skipped(
    landed: Landed, spec: SourceSpec, unread: Iterable[listing.Listed], listed_files: Iterable[Logged], age: str
) -> None:
    bound = max((file.modified for file in listed_files), default=0) - duration_seconds(age) * 1000
    skipped = [unread_file.uri for unread_file in unread if unread_file.modified < bound]
    if skipped:
        message = (
            f"{number(len(skipped), 'file')} of '{spec.name}' skipped, being more than {in_words(age)} older than the "
            f"newest: {landed.some(skipped)}"
        )
        landed.warn("files-skipped", message, "To read files of any age, remove 'max_file_age'.")


def _archive_or_delete(
    landed: Landed, spec: SourceSpec, read_files: list[listing.Listed], *, delete: bool
) -> Iterator[str]:
    failures: Mapping[str, str] = {
        file.uri: reason for file in read_files if (reason := _move_or_delete(landed, spec, file, delete=delete))
    }
    if failures:
        message = (
            f"{number(len(failures), 'file')} of '{spec.name}' cannot be archived or deleted: {landed.some(failures)}"
        )
        hint = f"{next(iter(failures.values()))}. Their rows were read and are not re-read; the next build retries."
        landed.warn("after-reading-failed", message, hint)
    if moved := len(read_files) - len(failures):
        yield f"{number(moved, 'file')} of '{spec.name}' {'deleted' if delete else 'archived'}"


def _move_or_delete(landed: Landed, spec: SourceSpec, file: listing.Listed, *, delete: bool) -> str:
    place = landed.run.place
    base = listing.folder(spec, place)
    if file.path is None or base is None:
        return "it is not a local file"
    if not _may_change(landed, file.path.parent):
        return "a link leads to it, and it is outside the project and the target's allow_after_reading"
    inside = file.path.relative_to(base) if base.is_dir() else Path(file.path.name)
    try:
        if delete:
            file.path.unlink()
        else:
            _archive(file.path, place.root / str(spec.settings["archive_path"]) / inside, file.modified)
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def _may_change(landed: Landed, folder: Path) -> bool:
    """Whether a folder, links followed, is in the project or in one that the target allows."""
    run = landed.run
    return any(inside(root, folder) for root in (run.place.root, *run.target.allow_after_reading))


def _archive(path: Path, target: Path, modified: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # An archive loses nothing: a second file of a name is beside the first.
    shutil.move(path, target.with_name(f"{target.name}.{modified}") if target.exists() else target)
