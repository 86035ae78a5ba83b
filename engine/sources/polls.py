"""Whether there may be new input: values that differ when there is, read each second, without Java.

A poll does not see everything: a file that is rewritten in place changes no folder. The plan, which is made now and
then, does. None means that nobody can tell cheaply.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from engine.errors import EngineError
from engine.sources import kafka
from engine.sources.files import file_source, listing
from engine.sources.spec import Place, SourceSpec

# Times of folders have the resolution of the kernel's clock: the next change may have the same time as the last one.
_COARSE_SECONDS = 0.05


@dataclass(slots=True)
class FolderTimes:
    """The times of folders below some tops; a folder is read only when its time has changed."""

    _inner: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def poll(self, top: str) -> Hashable:
        """Return a value that differs when a file was made, renamed or removed below a folder."""
        newest = 0
        found: list[tuple[str, int]] = []
        waiting = [top]
        while waiting:
            path = waiting.pop()
            try:
                stat = os.stat(path)  # noqa: PTH116 - called each second for every folder
            except OSError:
                found.append((path, -1))
                continue
            found.append((path, stat.st_mtime_ns))
            newest = max(newest, stat.st_mtime_ns)
            waiting += self._folders(path, stat.st_mtime_ns)
        unsure = time.time() - newest / 1e9 < _COARSE_SECONDS
        return (*found, time.monotonic_ns() if unsure else 0)

    def _folders(self, path: str, modified: int) -> tuple[str, ...]:
        known = self._inner.get(path)
        if known is not None and known[0] == modified:
            return known[1]
        try:
            with os.scandir(path) as entries:
                inner = tuple(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            inner = ()
        self._inner[path] = (modified, inner)
        return inner


def top_folder(spec: SourceSpec, place: Place) -> str | None:
    """Return the folder of a source of files on this machine, for `FolderTimes`; None: it is another source."""
    top = listing.folder(spec, place) if spec.format in file_source.FORMATS else None
    return str(top) if top is not None else None


def poll_topics(
    specs: Mapping[str, SourceSpec], place: Place, polled: kafka.PolledTopics
) -> Mapping[str, Hashable | None]:
    """Return where the topics of sources end, by name; None: nobody can tell without Java. May wait for a broker."""
    asked = {name: spec for name, spec in specs.items() if spec.format in kafka.FORMATS}
    try:
        found = polled.ends(asked, place) if asked else {}
    except EngineError:
        found = {}
    return {name: found.get(name) for name in asked}
