"""Whether there may be new input: values that differ when there is, read each second, without Java.

A poll does not see everything: a file that is rewritten in place changes no folder. The plan, which is made now and
then, does. None means that nobody can tell cheaply.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from engine.errors import EngineError
from engine.sources import source_traits
from engine.sources.spec import Place, SourceSpec
from engine.sources.traits import Poller

# Times of folders have the resolution of the kernel's clock: the next change may have the same time as the last one.
_COARSE_SECONDS = 0.05


@dataclass(slots=True)
class FolderTimes:
    """The times of folders below some tops; a folder is read only when its time has changed."""

    _inner: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def poll(self, top: str) -> Hashable:
        """Return a value that differs when a file was made, renamed or removed below a folder."""
        newest = 0
        folder_times: list[tuple[str, int]] = []
        waiting = [top]
        while waiting:
            path = waiting.pop()
            try:
                stat = os.stat(path)  # noqa: PTH116 - called each second for every folder
            except OSError:
                folder_times.append((path, -1))
                continue
            folder_times.append((path, stat.st_mtime_ns))
            newest = max(newest, stat.st_mtime_ns)
            waiting += self._folders(path, stat.st_mtime_ns)
        unsure = time.time() - newest / 1e9 < _COARSE_SECONDS
        return (*folder_times, time.monotonic_ns() if unsure else 0)

    def _folders(self, path: str, modified: int) -> tuple[str, ...]:
        noted = self._inner.get(path)
        if noted is not None and noted[0] == modified:
            return noted[1]
        try:
            with os.scandir(path) as entries:
                inner = tuple(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            inner = ()
        self._inner[path] = (modified, inner)
        return inner


def top_folder(spec: SourceSpec, place: Place) -> str | None:
    """Return the folder of a source of files on this machine, for `FolderTimes`; None: it is another source."""
    folder = source_traits(spec.format).folder
    return folder(spec, place) if folder is not None else None


def polled(spec: SourceSpec) -> bool:
    return source_traits(spec.format).poller is not None


@dataclass(frozen=True, slots=True)
class OpenPolls:
    _pollers: dict[str, Poller] = field(default_factory=dict)

    def ends(self, specs: Mapping[str, SourceSpec], place: Place) -> Mapping[str, Hashable | None]:
        """Return where sources end, by name; None: nobody can tell without Java. May wait for a broker."""
        source_ends: dict[str, Hashable | None] = dict.fromkeys(name for name, spec in specs.items() if polled(spec))
        for format_ in dict.fromkeys(specs[name].format for name in source_ends):
            with suppress(EngineError):
                specs_of_format = {name: specs[name] for name in source_ends if specs[name].format == format_}
                source_ends |= self._poller(format_).ends(specs_of_format, place)
        return source_ends

    @property
    def waits(self) -> bool:
        return bool(self._pollers) and all(poller.waits for poller in self._pollers.values())

    def wait(self, seconds: float) -> bool:
        """Return whether something came behind the ends that were returned last, in at most so many seconds."""
        waiting = [poller for poller in self._pollers.values() if poller.waits]
        if not waiting:
            time.sleep(seconds)
        return any(poller.wait(seconds / len(waiting)) for poller in waiting)

    def _poller(self, format_: str) -> Poller:
        new_poller = source_traits(format_).poller
        if format_ not in self._pollers and new_poller is not None:
            self._pollers[format_] = new_poller()
        return self._pollers[format_]
