"""`engine test --watch`: watches the files of a project and reruns what an edit affects."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api import RunOptions, Selection, runnable
from engine.cli.command_setup import CommandSettings, Failed, Warnings, compiled, log_file, selected
from engine.cli.exits import terminable
from engine.compile import DataTest, Manifest, Node, UnitTest
from engine.errors import ProjectError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY = 0.5
_DATA = "landing"

Seen = dict[str, tuple[int, int]]


def watch_tests(chosen: CommandSettings, selection: Selection, options: RunOptions) -> bool:
    """Run the selected tests, and again what each edit affects, in one session, until Ctrl-C; False if one failed."""
    with terminable(), log_file(chosen):
        result = compiled(chosen, warnings=Warnings.SELECTED)
        tests = runnable(result.manifest, chosen.project.select(result.manifest, selection).nodes, "test")
        with chosen.project.session(result, tests) as spark:
            watched = _Watched(chosen, selection, options, spark)
            changes = edits(chosen.root, chosen.target_dir)
            try:
                watched.run([])
                for changed in changes:
                    watched.run(changed)
            except KeyboardInterrupt:
                chosen.out.say("Stopped")
    return not watched.failed


@dataclass(slots=True)
class _Watched:
    """The tests under watch.

    Attributes:
        before: the nodes when tests were run last.
        failed: the tests that failed when they ran last.
    """

    chosen: CommandSettings
    selection: Selection
    options: RunOptions
    spark: SparkSession
    before: Mapping[str, Node] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def run(self, changed: Iterable[str]) -> None:
        """Run what files affect; nothing while the project has errors."""
        for path in changed:
            self.chosen.out.say(f"Changed: {Path(path).relative_to(self.chosen.root)}")
        try:
            result = compiled(self.chosen, warnings=Warnings.SELECTED)
            tests = runnable(result.manifest, selected(self.chosen, result.manifest, self.selection), "test")
        except Failed:
            return
        except (ProjectError, UsageError) as error:
            # A name may be missing in the middle of an edit, but not from the start.
            if not self.before:
                raise
            self.chosen.out.diagnostics(error.diagnostics)
            return
        nodes = affected(self.before, result.manifest, tests)
        # All of them: what is not decoded yet would come from the cache of a later compilation.
        self.before = dict(result.manifest.nodes)
        if nodes:
            out = self.chosen.out
            results = self.chosen.project.execute("test", result, nodes, out.event, self.spark, **self.options)
            self.failed &= set(tests) - set(nodes)
            self.failed |= {r.node for r in results.results if r.status.failed}
            out.summary(results)
        self.chosen.out.say(f"{len(nodes)} of {len(tests)} tests ran; waiting for edits (Ctrl-C ends it)")


def look(root: Path, artifacts: Path) -> Seen:
    """Time and size of the files that a project is read from; not those in the folder of artifacts."""
    seen: Seen = {}
    for folder, folders, names in os.walk(root):
        left_out = {root / _DATA, artifacts}
        folders[:] = [f for f in folders if not f.startswith((".", "_")) and Path(folder, f) not in left_out]
        # Other CSV files are data.
        read = (".sql", ".yml", ".yaml", ".avsc", *((".csv",) if Path(folder).name == "fixtures" else ()))
        for name in names:
            if name.endswith(read):
                path = Path(folder, name)
                try:
                    stat = path.stat()
                except OSError:
                    continue
                seen[str(path)] = (stat.st_mtime_ns, stat.st_size)
    return seen


def edits(root: Path, artifacts: Path) -> Iterator[list[str]]:
    """The files that were written, made or removed, each time that some were."""
    before = look(root, artifacts)
    while True:
        time.sleep(_EVERY)
        now = look(root, artifacts)
        if now == before:
            continue
        # An editor may write several files; what comes right behind belongs to it.
        time.sleep(_EVERY / 5)
        now = look(root, artifacts)
        changed = sorted(p for p in {*before, *now} if before.get(p) != now.get(p))
        before = now
        yield changed


def affected(before: Mapping[str, Node], now: Manifest, tests: Iterable[str]) -> list[str]:
    """The tests that are not what they were, or whose model is not.

    Args:
        before: the nodes of the project when tests were run last.
        now: the project as it is.
        tests: ids of the tests that are watched.
    """
    return [i for i in tests if any(before.get(node) != now.nodes[node] for node in (i, *_tested(now, i)))]


def _tested(manifest: Manifest, test: str) -> tuple[str, ...]:
    node = manifest.nodes[test]
    if isinstance(node, UnitTest):
        return (node.model, *(manifest.parents(node.model) if node.variables or node.macros else ()))
    return (node.model, *node.depends_on) if isinstance(node, DataTest) else ()
