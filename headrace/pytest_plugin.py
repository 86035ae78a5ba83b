"""`pytest --engine-project DIR`: a project's tests among those of pytest, each an item, all in one session.

pytest loads this module in every repository of the environment. It loads `engine` only when a project is named: the
repository's tests may import a package `engine` of their own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace import check_engine

if TYPE_CHECKING:
    from engine.api import Project, RunTest
    from engine.compile import Compiled, DataTest, UnitTest
    from engine.errors import Diagnostic
    from engine.runtime.data_tests.run_data_test import DataTestVerdict

_FILE = "project.yml"
_OPEN = pytest.StashKey["_Open"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of this plugin."""
    group = parser.getgroup("headrace")
    group.addoption("--engine-project", metavar="DIR", help="also run the tests of the Headrace project in DIR")
    group.addoption("--engine-target", metavar="NAME", help="its target")
    group.addoption(
        "--engine-select",
        metavar="SELECTION",
        default="test_type:unit",
        help="which tests to run; default: unit tests",
    )
    group.addoption(
        "--engine-no-cache",
        action="store_true",
        help="run every unit test, also those that passed with the same model, rows and text",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Add the project to the collected paths.

    Raises:
        UsageError: `import engine` gives another package here.
    """
    if folder := config.getoption("--engine-project"):
        try:
            check_engine()
        except ImportError as error:
            again = f"engine test --project-dir {shlex.quote(str(folder))}"
            raise pytest.UsageError(f"--engine-project: {error}. Run: {again}") from None
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
    """What runs the tests of a project; the session opens for the first of them that runs."""

    project: Project
    compiled: Compiled
    tests: Sequence[str]
    no_cache: bool
    _stack: ExitStack = field(default_factory=ExitStack)
    _run: RunTest | None = None

    def run(self, test: DataTest | UnitTest) -> DataTestVerdict:
        if self._run is None:
            verdicts = self.project.verdicts(self.compiled, self.tests, no_cache=self.no_cache)
            self._run = self._stack.enter_context(verdicts)
        return self._run(test)

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
        from engine.api import Project, Selection, runnable
        from engine.errors import EngineError, ProjectError
        from engine.node_ids import shown_name

        project = Project(self.path.parent, target=self.config.getoption("--engine-target"))
        selection = Selection((self.config.getoption("--engine-select"),))
        try:
            compiled = project.compile()
            if compiled.manifest.errors:
                raise ProjectError.from_diagnostics(compiled.manifest.errors)
            chosen = project.select(compiled.manifest, selection).nodes
        except EngineError as error:
            raise self.CollectError("\n".join(_texts(error.diagnostics))) from None
        tests = runnable(compiled.manifest, chosen, "test")
        self.config.stash[_OPEN] = _Open(project, compiled, tests, self.config.getoption("--engine-no-cache"))
        nodes: Any = [compiled.manifest.nodes[i] for i in tests]
        return [ProjectTest.from_parent(self, name=shown_name(n.id), test=n) for n in nodes]


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
        if verdict.passed_at:
            self.user_properties += [("cached", True), ("passed_at", verdict.passed_at)]
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


def _texts(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    from engine.cli.console.printing import diagnostic_text
    from engine.cli.console.safe_output import plain

    return (plain(*diagnostic_text(d)) for d in diagnostics)
