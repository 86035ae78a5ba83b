"""The polls of `engine start`: which sources may have something new since they were looked at last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.sources.polls import FolderTimes, OpenPolls, polled, top_folder

if TYPE_CHECKING:
    from engine.compile import Manifest, Source
    from engine.sources import Place, SourceSpec

# Sources that nobody can ask cheaply (buckets, catalogs of servers, Spark's readers) get turns by the clock.
UNKNOWN_EVERY = 10.0
TOPICS_EVERY = 0.5
# Topics to which nothing came for so many seconds are asked half as often; where a broker says when something comes,
# they are asked for what it does not say: partitions, topics that were recreated.
QUIET_SECONDS = 60.0
NOTIFIED_EVERY = 2.0
# Topics to which records come all the time are asked at most so often.
_LEAST_SECONDS = 0.2
# How long the end of the thread may take.
_STEP_SECONDS = 0.5


@dataclass(slots=True)
class SourcePolls:
    """Looks at the sources of a project; topics in a thread of their own, as a broker may take its time.

    `arrived`: gets the id of a source whose topics have moved, from another thread.
    """

    place: Place
    arrived: Callable[[str], None]
    _sources: dict[str, Source] = field(default_factory=dict)
    _last_values: dict[str, Hashable] = field(default_factory=dict)
    _asked_at: dict[str, float] = field(default_factory=dict)
    _folders: FolderTimes = field(default_factory=FolderTimes)
    _topics: TopicThread | None = None
    # Which folder a path means is decided by what exists: asked now and then.
    _top_folders: dict[str, str | None] = field(default_factory=dict)
    _top_folders_read: float = 0.0

    def follow(self, manifest: Manifest, sources: Iterable[str], place: Place) -> None:
        from engine.compile import Source

        self.close()
        self.place = place
        self._sources = {i: node for i in sources if isinstance(node := manifest.nodes[i], Source)}
        self._top_folders = {}
        self._last_values = {i: last_values for i, last_values in self._last_values.items() if i in self._sources}
        topics = {i: source for i, source in self._sources.items() if polled(source.spec)}
        self._topics = (
            TopicThread({i: source.spec for i, source in topics.items()}, place, self.arrived) if topics else None
        )

    def changed(self, now: float) -> list[str]:
        changed_sources = []
        if not self._top_folders or now - self._top_folders_read >= UNKNOWN_EVERY:
            self._top_folders = {i: top_folder(source.spec, self.place) for i, source in self._sources.items()}
            self._top_folders_read = now
        for id_, top in self._top_folders.items():
            if self._topics is not None and self._topics.knows(id_):
                continue
            value = self._folders.poll(top) if top is not None else None
            if value is None:
                if now - self._asked_at.get(id_, now - UNKNOWN_EVERY) >= UNKNOWN_EVERY:
                    self._asked_at[id_] = now
                    changed_sources.append(id_)
            elif self._last_values.get(id_) != value:
                if id_ in self._last_values:
                    changed_sources.append(id_)
                self._last_values[id_] = value
        return changed_sources

    def close(self) -> None:
        if self._topics is not None:
            self._topics.close()
            self._topics = None


class TopicThread:
    """Asks where topics end, without Java, and remembers which of them can be asked so."""

    def __init__(self, specs: dict[str, SourceSpec], place: Place, last_arrival: Callable[[str], None]) -> None:
        self._specs = specs
        self._place, self._arrived = place, last_arrival
        self._pollable: set[str] = set(self._specs)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="topics", daemon=True)
        self._thread.start()

    def knows(self, id_: str) -> bool:
        return id_ in self._pollable

    def close(self) -> None:
        """End the thread; one that waits for a broker ends with the process."""
        self._closed.set()
        self._thread.join(0.1)

    def _follow(self) -> None:
        last_values: dict[str, Hashable] = {}
        polls, last_arrival = OpenPolls(), time.monotonic()
        while self._wait_until_due(polls, time.monotonic() - last_arrival):
            begin = time.monotonic()
            for id_, value in polls.ends(self._specs, self._place).items():
                if value is None:
                    self._pollable.discard(id_)
                    continue
                self._pollable.add(id_)
                if last_values.get(id_, value) != value:
                    last_arrival = begin
                    self._arrived(id_)
                last_values[id_] = value
            # A slow broker is asked less often.
            self._closed.wait(min(max(time.monotonic() - begin, _LEAST_SECONDS), 30.0))

    def _wait_until_due(self, polls: OpenPolls, quiet: float) -> bool:
        """Wait until topics should be asked, `quiet` seconds after something came last; False: the thread ends."""
        pause = TOPICS_EVERY if quiet < QUIET_SECONDS else 2 * TOPICS_EVERY
        deadline = time.monotonic() + (NOTIFIED_EVERY if polls.waits else pause)
        while not self._closed.is_set() and (seconds_left := deadline - time.monotonic()) > 0:
            if polls.wait(min(seconds_left, _STEP_SECONDS)):
                break
        return not self._closed.is_set()
