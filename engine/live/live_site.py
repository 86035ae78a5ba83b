"""The data of the documentation site as they are now, for the pages that `engine start` serves.

Nothing is read before a page asks, and then only what has changed since: tables and checkpoints of the models that ran.
A page learns from the version, which comes with each status, that there is something new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from engine.compile import Compiled, Manifest
from engine.docs.site.freshness_status import FILE as FRESHNESS
from engine.docs.site.freshness_status import read_freshness
from engine.docs.site.last_run import LastRun, last_run, read_results, read_watermarks
from engine.docs.site.shared_page_data import Facts
from engine.docs.site.table_statistics import StoredTable, read_tables
from engine.docs.site.write_site import data_record, data_script
from engine.events import (
    BatchCommitted,
    Event,
    MaintenanceFinished,
    ModelFinished,
    NodeTurnFinished,
    TestFinished,
    fold,
)
from engine.node_ids import TESTS
from engine.runtime.context.run_results import FILE as RESULTS
from engine.runtime.context.run_results import as_dict
from engine.secrets.scrubber import scrub_record, scrubber
from engine.target_folder import TargetFolder

# Data of pages that ask all the time take this part of the time, at most.
_SHARE = 0.05
# Tables that others have changed are seen after this many seconds, if a page asks.
_ALL_TABLES = 60.0
# What does not change with a run.
_OF_THE_PROJECT = frozenset({"lineage", "texts", "macros"})
_Value = TypeVar("_Value")


@dataclass(slots=True)
class LiveSite:
    """The data of the site of a project that is kept running; any thread may ask.

    Attributes:
        compiled: gives the project as it is used now.
        running_ids: gives the ids of what is kept running: of these the results of earlier commands are not shown.
    """

    compiled: Callable[[], Compiled]
    running_ids: Callable[[], Iterable[str]]
    target_dir: Path
    # What has happened; held for microseconds, because events wait for it.
    _noting: threading.Lock = field(default_factory=threading.Lock)
    _current: Compiled | None = None
    _project: int = 0
    _runs: int = 0
    _stamps: tuple[Any, ...] = ()
    _tests: dict[str, TestFinished] = field(default_factory=dict)
    # Models whose tables and checkpoints are read before the next answer; None: all.
    _changed: set[str] | None = None
    # What was made of it, one at a time.
    _making: threading.Lock = field(default_factory=threading.Lock)
    _facts: Facts | None = None
    _version: str = ""
    _made_at: float = 0.0
    _took: float = 0.0
    _all_at: float = 0.0
    _scripts: dict[str, bytes] = field(default_factory=dict)

    def on_event(self, event: Event) -> None:
        """Note what has to be read again; nothing is read yet."""
        match event:
            case BatchCommitted() | ModelFinished() | MaintenanceFinished() | TestFinished() | NodeTurnFinished():
                with self._noting:
                    self._runs += 1
                    if isinstance(event, TestFinished):
                        self._tests[event.node] = event
                    elif self._changed is not None:
                        self._changed.add(event.node)
            case _:
                pass

    @property
    def version(self) -> str:
        """The version of the data: of the project, a dot, and of its runs."""
        compiled = self.compiled()
        with TargetFolder(self.target_dir) as folder:
            stamps = tuple(folder.file_stamp(name) for name in (RESULTS, FRESHNESS))
        with self._noting:
            if compiled is not self._current:
                self._current, self._changed = compiled, None
                self._project += 1
                project_nodes = compiled.manifest.nodes
                self._tests = {test: ended for test, ended in self._tests.items() if test in project_nodes}
            if stamps != self._stamps:
                self._stamps = stamps
                self._runs += 1
            return f"{self._project}.{self._runs}"

    def script(self, name: str, project: str = "") -> bytes | None:
        """Return a data file as it is now; None: the site has no such file.

        Args:
            name: without its ending.
            project: version of the project whose data the page has, whose nodes have other numbers than those of
                another version; empty: it has none yet.
        """
        with self._making:
            version = self.version
            if project and project != _project(version):
                return f'headrace.stale("{name}");\n'.encode() if name.isalnum() else None
            self._refresh(version)
            if (script := self._scripts.get(name)) is None and (script := self._script(name)) is not None:
                self._scripts[name] = script
            return script

    def _refresh(self, version: str) -> None:
        """Read what has changed, unless that was done just now."""
        begin = time.monotonic()
        same = _project(version) == _project(self._version)
        if (
            self._facts is not None
            and same
            and (version == self._version or begin - self._made_at < self._took / _SHARE)
        ):
            return
        with self._noting:
            changed, self._changed = self._changed, set()
        if begin - self._all_at > _ALL_TABLES:
            changed = None
        if changed is None:
            self._all_at = begin
        self._scripts = {name: script for name, script in self._scripts.items() if same and name in _OF_THE_PROJECT}
        self._facts = self._read(self._facts if same else None, changed)
        self._version, self._made_at = version, time.monotonic()
        self._took = self._made_at - begin

    def _read(self, previous_facts: Facts | None, changed: Collection[str] | None) -> Facts:
        compiled = self.compiled()
        tables: Mapping[str, StoredTable] = read_tables(compiled.manifest, compiled.target.catalog, changed)
        marks: Mapping[str, datetime] = read_watermarks(compiled.manifest, compiled.target, changed)
        if previous_facts is not None and changed is not None:
            tables = {**_without(previous_facts.tables, changed), **tables}
            marks = {**_without(previous_facts.watermarks, changed), **marks}
        run, fresh = self._last_run(compiled.manifest), read_freshness(self.target_dir)
        return Facts(compiled.manifest, run, tables, fresh, datetime.now(UTC), marks)

    def _last_run(self, manifest: Manifest) -> LastRun:
        """How tests ended here, and how what is not kept running ended in other commands."""
        with self._noting:
            ended = tuple(self._tests.values())
        own_results = read_results(as_dict(fold(ended), manifest.project)).nodes
        last_results, running_nodes = last_run(self.target_dir), frozenset(self.running_ids())
        other_results = {
            id_: run for id_, run in last_results.nodes.items() if not _is_running(manifest, id_, running_nodes)
        }
        return replace(last_results, nodes={**other_results, **own_results})

    def _script(self, name: str) -> bytes | None:
        if self._facts is None or (record := data_record(self._facts, name)) is None:
            return None
        if name == "index":
            record = {**record, "live": self._version}
        return data_script(name, scrub_record(record, scrubber()))


def _project(version: str) -> str:
    return version.partition(".")[0]


def _without(values: Mapping[str, _Value], ids: Collection[str]) -> dict[str, _Value]:
    return {id_: value for id_, value in values.items() if id_ not in ids}


def _is_running(manifest: Manifest, id_: str, running_nodes: Collection[str]) -> bool:
    values = getattr(manifest.nodes.get(id_), "model", id_)
    return not {values, f"{TESTS}{values}"}.isdisjoint(running_nodes)
