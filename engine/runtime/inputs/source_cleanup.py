"""After a stream's last commit: files that were read are archived or deleted, and old ones that were not are counted.

Spark can do the first itself (cleanSource), but it never touches the files of the last micro-batch, archives under the
whole absolute path, and takes a file that was rewritten since for the one it read (measured on 4.1.4).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from engine import kill_points, local_paths
from engine.plan.actions.file_checks import number
from engine.project.project_files import inside
from engine.runtime.inputs.source_file_check import Landed
from engine.sources import SourceSpec
from engine.sources.files import listing
from engine.state import checkpoint as spark_checkpoint
from engine.state.file_log import Logged, file_sources, logged, reaches
from engine.times import duration_seconds


def finish(landed: Landed) -> str:
    """Archive or delete the files that were read, and warn of those skipped for their age; return what was done."""
    kill_points.reach("reading ended", "")
    asked = [spec for spec in landed.specs if {"after_reading", "max_file_age"} & spec.settings.keys()]
    if not asked:
        return ""
    read, listed = _notes(landed)
    done: list[str] = []
    for spec in asked:
        here = listing.listed(landed.session, spec, landed.run.place)
        if age := spec.settings.get("max_file_age"):
            _tell_skipped(landed, spec, [found for found in here if found.uri not in listed], listed.values(), age)
        if after := spec.settings.get("after_reading"):
            times = read.get(spec.name, {})
            same = [found for found in here if found.modified == times.get(found.uri)]
            done += _put_away(landed, spec, same, delete=after == "delete")
    return "; ".join(done)


def _notes(landed: Landed) -> tuple[dict[str, dict[str, int]], dict[str, Logged]]:
    """By source the times of the files that were read and committed, and all that Spark has listed; both by URI."""
    last = spark_checkpoint.last_committed(landed.checkpoint)
    read: dict[str, dict[str, int]] = {}
    listed: dict[str, Logged] = {}
    for stream in file_sources(landed.checkpoint):
        files = {local_paths.decoded(file.uri): file for file in logged(landed.checkpoint, stream)}
        listed |= files
        end = reaches(landed.checkpoint, stream, last)
        times = {uri: landed.time_of(uri, file) for uri, file in files.items() if file.entry <= end}
        for name in {landed.spec_of(uri).name for uri in files}:
            # A query that reads a source twice has two streams of it; both must be done with a file.
            read[name] = {uri: time for uri, time in times.items() if uri in read.get(name, times)}
    return read, listed


def _tell_skipped(
    landed: Landed, spec: SourceSpec, unread: Iterable[listing.Listed], known: Iterable[Logged], age: str
) -> None:
    bound = max((file.modified for file in known), default=0) - duration_seconds(age) * 1000
    skipped = [found.uri for found in unread if found.modified < bound]
    if skipped:
        message = (
            f"{number(len(skipped), 'file')} of '{spec.name}' skipped, being more than {age} older than the newest:"
            f" {landed.some(skipped)}"
        )
        landed.warn("files-skipped", message, "To read files of any age, remove 'max_file_age'.")


def _put_away(landed: Landed, spec: SourceSpec, read: list[listing.Listed], *, delete: bool) -> Iterator[str]:
    failed: Mapping[str, str] = {
        found.uri: reason for found in read if (reason := _gone(landed, spec, found, delete=delete))
    }
    if failed:
        message = f"{number(len(failed), 'file')} of '{spec.name}' cannot be archived or deleted: {landed.some(failed)}"
        hint = f"{next(iter(failed.values()))}. Their rows were read and are not read again; the next build retries."
        landed.warn("after-reading-failed", message, hint)
    if moved := len(read) - len(failed):
        yield f"{number(moved, 'file')} of '{spec.name}' {'deleted' if delete else 'archived'}"


def _gone(landed: Landed, spec: SourceSpec, found: listing.Listed, *, delete: bool) -> str:
    place = landed.run.place
    base = listing.folder(spec, place)
    if found.path is None or base is None:
        return "it is not a local file"
    if not _may_change(landed, found.path.parent):
        return "a link leads to it, and it is outside the project and the target's allow_after_reading"
    inside = found.path.relative_to(base) if base.is_dir() else Path(found.path.name)
    try:
        if delete:
            found.path.unlink()
        else:
            _move(found.path, place.root / str(spec.settings["archive_path"]) / inside, found.modified)
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def _may_change(landed: Landed, folder: Path) -> bool:
    """Whether a folder, links followed, is in the project or in one that the target allows."""
    run = landed.run
    return any(inside(root, folder) for root in (run.place.root, *run.target.allow_after_reading))


def _move(path: Path, target: Path, modified: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # An archive loses nothing: a second file of a name is beside the first.
    shutil.move(path, target.with_name(f"{target.name}.{modified}") if target.exists() else target)
