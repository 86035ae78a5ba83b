"""`pytest --engine-project DIR`: a project's tests among those of pytest, each an item, all in one session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.compile import Compiled, DataTest, UnitTest
    from engine.errors import Diagnostic
    from engine.runtime.testing.run_data_test import DataTestVerdict
    from engine.runtime.testing.source_rows import SourceRows
    from engine.runtime.turns import RunUnit

_FILE = "project.yml"
_OPEN = pytest.StashKey["_Open"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of this plugin."""
    group = parser.getgroup("headrace")
    group.addoption("--engine-project", metavar="DIR", help="run the tests of the Headrace project in DIR too")
    group.addoption("--engine-target", metavar="NAME", help="its target")
    group.addoption(
        "--engine-select",
        metavar="SELECTION",
        default="test_type:unit",
        help="its tests to run; unit tests if left out",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Add the project to what is collected."""
    if folder := config.getoption("--engine-project"):
        config.args.append(str(Path(folder).resolve() / _FILE))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The project's file stands for its tests."""
    folder = parent.config.getoption("--engine-project")
    if folder and file_path == Path(folder).resolve() / _FILE:
        return ProjectTests.from_parent(parent, path=file_path)
    return None


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the session."""
    if _OPEN in config.stash:
        config.stash[_OPEN].close()
        del config.stash[_OPEN]


@dataclass(slots=True)
class _Open:
    """What runs the tests of a project; the session opens at the first of them."""

    result: Compiled
    root: Path
    target: str | None
    _stack: ExitStack = field(default_factory=ExitStack)
    _spark: SparkSession | None = None
    _unit: RunUnit | None = None
    _rows: SourceRows | None = None

    def run(self, test: DataTest | UnitTest) -> DataTestVerdict:
        from engine.cli.unit_test_session import run_units
        from engine.compile import UnitTest
        from engine.runtime.build import spark_session
        from engine.runtime.context.needed_jars import jar_sets
        from engine.runtime.testing.run_data_test import run_test
        from engine.runtime.testing.source_rows import SourceRows

        if self._spark is None or self._unit is None:
            sets = jar_sets(self.result.manifest, self.result.manifest.tests)
            self._spark = self._stack.enter_context(spark_session(self.result.target, self.root / "target", sets=sets))
            self._unit = self._stack.enter_context(run_units(self.result.manifest, self.root, self.target, {}))
        if isinstance(test, UnitTest):
            return self._unit(self._spark, test)
        if self._rows is None:
            self._rows = SourceRows(self._spark, self.result.manifest, self.result.target.place(self.root))
        return run_test(self._rows.session(test), test, test.sql)

    def close(self) -> None:
        """End the session."""
        self._stack.close()


class ProjectTests(pytest.File):
    """The tests of a project."""

    def collect(self) -> Sequence[pytest.Item]:
        """Compile the project and give its tests.

        Raises:
            CollectError: it has errors.
        """
        from engine.compile import DataTest, UnitTest, compile_project
        from engine.compile.selection.select_nodes import select
        from engine.errors import EngineError
        from engine.project import load_project

        target = self.config.getoption("--engine-target")
        try:
            result = compile_project(load_project(self.path.parent), target=target)
            choice = select(result.manifest, [self.config.getoption("--engine-select")])
        except EngineError as error:
            raise self.CollectError("\n".join(_texts(error.diagnostics))) from None
        if result.manifest.errors:
            raise self.CollectError("\n".join(_texts(result.manifest.errors)))
        if choice.unmatched:
            raise self.CollectError("\n".join(_texts(choice.unmatched)))
        self.config.stash[_OPEN] = _Open(result, self.path.parent, target)
        nodes = (result.manifest.nodes[i] for i in choice.nodes)
        return [
            ProjectTest.from_parent(self, name=n.id.partition(".")[2], test=n)
            for n in nodes
            if isinstance(n, DataTest | UnitTest)
        ]


class ProjectTest(pytest.Item):
    """One data test or unit test."""

    def __init__(self, *, test: DataTest | UnitTest, **rest: Any) -> None:
        super().__init__(**rest)
        self.test = test
        for tag in test.tags:
            self.extra_keyword_matches.add(tag)

    def runtest(self) -> None:
        """Run it."""
        verdict = self.config.stash[_OPEN].run(self.test)
        if verdict.status.failed:
            raise _FailedError(verdict)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is wrong, without a traceback."""
        if isinstance(excinfo.value, _FailedError):
            verdict = excinfo.value.verdict
            return "\n".join(_texts(verdict.findings)) or verdict.message
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the user wrote it."""
        place = self.test.location
        return self.path.parent / self.test.file, place.line - 1 if place else None, self.name


class _FailedError(Exception):
    def __init__(self, verdict: DataTestVerdict) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict


def _texts(found: Sequence[Diagnostic]) -> Iterator[str]:
    from engine.cli.console.printing import diagnostic_text
    from engine.cli.console.terminal import plain

    return (plain(*diagnostic_text(d)) for d in found)
