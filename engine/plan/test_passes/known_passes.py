"""The passes of earlier runs that still count, and those of this one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.compile import DataTest, Manifest, Target, UnitTest
from engine.errors import EngineError
from engine.lake.lake_reader import Lake
from engine.plan.deployed.deployed_facts import DeployedSource
from engine.plan.deployed.read_deployed import read_sources
from engine.plan.test_passes.pass_store import LastPass, read_passes, write_passes
from engine.plan.test_passes.read_positions import ReadPositions
from engine.plan.test_passes.test_keys import data_test_key, kept_key, unit_test_key

Test = DataTest | UnitTest


@dataclass(frozen=True, slots=True)
class PassCache:
    """Where passes are kept; `folder` None: nowhere; `ignored`: every test runs, and passes are still kept."""

    folder: Path | None
    settings: Mapping[str, str]
    version: Callable[[UnitTest], Manifest]
    ignored: bool = False


@dataclass(slots=True)
class KnownPasses:
    """What is known of the passes of tests.

    A data test is looked at twice: before it runs, and when the run has ended. Its pass is kept if all that it read is
    the same both times; else somebody committed while it ran, and nobody knows which rows it saw.

    Attributes:
        sources: what there was of the sources of the tests when the run began, by id.
    """

    manifest: Manifest
    target: Target
    root: Path
    sources: Mapping[str, DeployedSource]
    cache: PassCache
    _recorded: dict[str, LastPass] | None = None
    _before: dict[str, str | None] = field(default_factory=dict)
    _passed: dict[str, str] = field(default_factory=dict)
    _others: set[str] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def counting(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return when each test passed that need not run; a test that would read staged rows is none of them."""
        found = {}
        known, positions = self._known(), self._positions(self.sources)
        for test in (self._test(node) for node in nodes if node in known):
            if test is not None and self._counts(test, self._key(test, positions), positions):
                read = test.depends_on if isinstance(test, DataTest) else ()
                if positions.staged.isdisjoint(read):
                    found[test.id] = known[test.id].at
        return found

    def passed_at(self, test: Test, beside: Iterable[Test] = ()) -> str | None:
        """Return when a test passed with what it would look at now; None: it has to run."""
        with self._guard:
            positions = self._positions(self.sources)
            for one in (test, *beside):
                if one.id not in self._before:
                    self._before[one.id] = self._key(one, positions)
            counts = self._counts(test, self._before[test.id], positions)
            return self._known()[test.id].at if counts else None

    def ended(self, test: Test, at: str, *, passed: bool) -> None:
        """Note how a test ended that ran; `at` in UTC."""
        with self._guard:
            if passed:
                self._passed[test.id] = at
            else:
                self._others.add(test.id)

    def save(self) -> None:
        """Keep the passes of this run; forget those of tests that ended in another way."""
        if self.cache.folder is None or not (self._passed or self._others):
            return
        sources = read_sources(self.manifest, self.target.place(self.root), self._passed)
        positions = self._positions(sources)
        kept = {}
        for test in map(self._test, self._passed):
            key = self._before.get(test.id) if test is not None else None
            if test is not None and key is not None and key == self._key(test, positions):
                kept[test.id] = LastPass(kept_key(key, positions.stored(test)), self._passed[test.id])
        others = self._others | (self._passed.keys() - kept.keys())
        write_passes(self.cache.folder, self.target.name, kept, others, self.manifest.order)

    def _known(self) -> dict[str, LastPass]:
        if self._recorded is None:
            self._recorded = {} if self.cache.ignored else read_passes(self.cache.folder, self.target.name)
        return self._recorded

    def _positions(self, sources: Mapping[str, DeployedSource]) -> ReadPositions:
        return ReadPositions(self.manifest, self.target, Lake(self.target.catalog), sources)

    def _test(self, node_id: str) -> Test | None:
        node = self.manifest.nodes.get(node_id)
        return node if isinstance(node, DataTest | UnitTest) else None

    def _counts(self, test: Test, key: str | None, positions: ReadPositions) -> bool:
        known = self._known().get(test.id)
        return known is not None and key is not None and known.key == kept_key(key, positions.stored(test))

    def _key(self, test: Test, positions: ReadPositions) -> str | None:
        if isinstance(test, DataTest):
            return data_test_key(self.manifest, self.cache.settings, test, positions.of(test.depends_on, test.sql))
        try:
            return unit_test_key(self.cache.version(test), self.cache.settings, test)
        except EngineError:
            # Its overrides are wrong, which the test reports.
            return None
