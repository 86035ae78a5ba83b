"""The passes of earlier runs that still count, and those of this one: hashes and times, no text and no row.

One file a target in the user's cache of the project, for its owner only: a file of the project is not believed.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from engine.bounds.regular_file import MOST_OF_A_CACHE, read_regular
from engine.compile import DataTest, Manifest, Model, Source, Target, UnitTest
from engine.compile.artifacts.node_json import digest
from engine.errors import EngineError, ProjectError
from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts, names_refs
from engine.plan.actions.state_checks import waits
from engine.plan.deployed.deployed_facts import DeployedSource
from engine.plan.deployed.read_deployed import read_sources
from engine.plan.deployed.state_folder import table_state
from engine.plan.refresh.batch_inputs import volatile
from engine.plan.test_passes.test_keys import data_test_key, kept_key, unit_test_key
from engine.state import Phase
from engine.target_folder import TargetFolder
from engine.user_cache import is_own

Position = Mapping[str, Any]


@dataclass(slots=True)
class ReadPositions:
    """What data tests would read now; each table is looked at once. `staged`: models of which rows are staged."""

    manifest: Manifest
    target: Target
    lake: Lake
    sources: Mapping[str, DeployedSource]
    staged: set[str] = field(default_factory=set)
    _position_by_read: dict[tuple[str, bool], Position | None] = field(default_factory=dict)

    def find(self, nodes: Iterable[str], sql: str) -> dict[str, Position | None]:
        """Return the positions of what a query reads, by id; None: its rows may differ and nobody can tell."""
        refs = names_refs(sql)
        for node in nodes:
            if (node, refs) not in self._position_by_read:
                try:
                    self._position_by_read[node, refs] = self._position(node, refs=refs)
                except EngineError:
                    # What is wrong with it is reported by the test.
                    self._position_by_read[node, refs] = None
        return {node: self._position_by_read[node, refs] for node in nodes}

    def failing_rows_position(self, test: DataTest | UnitTest) -> Position | None:
        """Return where the table of a test's failing rows is; None: the test keeps none."""
        if not isinstance(test, DataTest) or test.stored is None:
            return None
        try:
            table = self.lake.table(test.stored.schema, test.stored.name)
        except EngineError:
            table = None
        return table.position() if table is not None else {}

    def _position(self, node_id: str, *, refs: bool) -> Position | None:
        node = self.manifest.nodes[node_id]
        if isinstance(node, Source):
            return self._source(node)
        if not isinstance(node, Model):
            return None
        if node.computed_when_read:
            return self._view(node)
        table = self._table(node)
        return table.position(refs=refs) if table is not None else None

    def _source(self, source: Source) -> Position | None:
        deployed_source = self.sources.get(source.id)
        # What a connection sets is rendered when the source is read.
        if deployed_source is None or deployed_source.fault is not None or "connection" in source.spec.settings:
            return None
        return deployed_source.position()

    def _table(self, model: Model) -> TableFacts | None:
        relation = model.relation
        if not waits(model):
            return self.lake.table(relation.schema, relation.name)
        unpublished = table_state(self.target, model).unpublished()
        table = self.lake.table(relation.schema, relation.name, STAGED)
        whole = unpublished is not None and unpublished.phase is Phase.STAGED
        if whole or (table is not None and STAGED in table.branches):
            self.staged.add(model.id)
        # A refresh that waits is another table, and becomes this one when it is published.
        return None if whole else table

    def _view(self, view: Model) -> Position | None:
        state = table_state(self.target, view).load()
        view_facts = self.lake.view(view.relation.schema, view.relation.name)
        if (
            view_facts is None
            or state is None
            or state.fingerprint != view.fingerprint
            or volatile(self.manifest, view)
        ):
            return None
        inner = self.find([item.node for item in view.inputs], view.sql)
        if any(position is None for position in inner.values()):
            return None
        self.staged.update({view.id} if self.staged.intersection(inner) else ())
        return {"view": view_facts.version, **inner}


FOLDER = "passes"
_LOCK = "lock"
_FORM = 1


@dataclass(frozen=True, slots=True)
class LastPass:
    """The last pass of a test: a hash of all that decided on it, and its time in UTC."""

    key: str
    at: str


class _Content(msgspec.Struct, frozen=True):
    form: int
    passes: dict[str, LastPass]


def read_passes(cache: Path | None, target: str) -> dict[str, LastPass]:
    """Return the passes for a target by the ids of their tests; none if there is no file of ours that can be read."""
    if cache is None or not is_own(cache / FOLDER, private=True):
        return {}
    path = cache / FOLDER / _name(target)
    with suppress(OSError, ValueError, RecursionError, msgspec.MsgspecError):
        if is_own(path, private=True):
            content = msgspec.json.decode(read_regular(path, MOST_OF_A_CACHE), type=_Content)
            return content.passes if content.form == _FORM else {}
    return {}


def write_passes(
    cache: Path, target: str, passed: Mapping[str, LastPass], not_passed: Collection[str], tests: Collection[str]
) -> None:
    """Keep passes beside those of other runs, of the project's `tests` only; a failed write is not an error."""
    with suppress(OSError, ProjectError), TargetFolder(cache / FOLDER) as folder:
        folder.make("")
        with _alone(cache / FOLDER):
            before = read_passes(cache, target)
            merged = {**before, **passed}
            merged = {test: merged[test] for test in sorted(merged) if test in tests and test not in not_passed}
            if merged != before:
                folder.write(_name(target), msgspec.json.encode(_Content(_FORM, merged)))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / _LOCK, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _name(target: str) -> str:
    # What is asked for by --target need not be a file's name.
    return f"{target if re.fullmatch(r'[a-z][a-z0-9_]{0,60}', target) else digest(target)}.json"


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

    `sources`: what there was of the sources of the tests when the run began, by id.
    """

    manifest: Manifest
    target: Target
    root: Path
    sources: Mapping[str, DeployedSource]
    cache: PassCache
    _stored_passes: dict[str, LastPass] | None = None
    _before: dict[str, str | None] = field(default_factory=dict)
    _passed: dict[str, str] = field(default_factory=dict)
    _not_passed: set[str] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def counting(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return when each test passed that need not run; a test that would read staged rows is none of them."""
        passed_at = {}
        last_passes, positions = self._last_passes(), self._positions(self.sources)
        for test in (self._test(node) for node in nodes if node in last_passes):
            if test is not None and self._counts(test, self._key(test, positions), positions):
                read = test.depends_on if isinstance(test, DataTest) else ()
                if positions.staged.isdisjoint(read):
                    passed_at[test.id] = last_passes[test.id].at
        return passed_at

    def passed_at(self, test: Test, beside: Iterable[Test] = ()) -> str | None:
        """Return when a test passed with what it would look at now; None: it has to run."""
        with self._guard:
            positions = self._positions(self.sources)
            for one in (test, *beside):
                if one.id not in self._before:
                    self._before[one.id] = self._key(one, positions)
            counts = self._counts(test, self._before[test.id], positions)
            return self._last_passes()[test.id].at if counts else None

    def ended(self, test: Test, at: str, *, passed: bool) -> None:
        """Note how a test ended that ran; `at` in UTC."""
        with self._guard:
            if passed:
                self._passed[test.id] = at
            else:
                self._not_passed.add(test.id)

    def save(self) -> None:
        """Keep the passes of this run; forget those of tests that ended in another way."""
        if self.cache.folder is None or not (self._passed or self._not_passed):
            return
        sources = read_sources(self.manifest, self.target.place(self.root), self._passed)
        positions = self._positions(sources)
        passes = {}
        for test in map(self._test, self._passed):
            key = self._before.get(test.id) if test is not None else None
            if test is not None and key is not None and key == self._key(test, positions):
                passes[test.id] = LastPass(kept_key(key, positions.failing_rows_position(test)), self._passed[test.id])
        not_passed = self._not_passed | (self._passed.keys() - passes.keys())
        write_passes(self.cache.folder, self.target.name, passes, not_passed, self.manifest.order)

    def _last_passes(self) -> dict[str, LastPass]:
        if self._stored_passes is None:
            self._stored_passes = {} if self.cache.ignored else read_passes(self.cache.folder, self.target.name)
        return self._stored_passes

    def _positions(self, sources: Mapping[str, DeployedSource]) -> ReadPositions:
        return ReadPositions(self.manifest, self.target, Lake(self.target.catalog), sources)

    def _test(self, node_id: str) -> Test | None:
        node = self.manifest.nodes.get(node_id)
        return node if isinstance(node, DataTest | UnitTest) else None

    def _counts(self, test: Test, key: str | None, positions: ReadPositions) -> bool:
        last_pass = self._last_passes().get(test.id)
        return (
            last_pass is not None
            and key is not None
            and last_pass.key == kept_key(key, positions.failing_rows_position(test))
        )

    def _key(self, test: Test, positions: ReadPositions) -> str | None:
        if isinstance(test, DataTest):
            return data_test_key(self.manifest, self.cache.settings, test, positions.find(test.depends_on, test.sql))
        try:
            return unit_test_key(self.cache.version(test), self.cache.settings, test)
        except EngineError:
            # Its overrides are wrong, which the test reports.
            return None
