"""Ask tests about one fault, in a process of its own that has it in place of the engine's own code.

A fault inside of a function is put into a fork of a process that has collected all tests: its code takes the place of the
function's. One of a module itself, such as a default of a dataclass, is read instead of the file by a process that has
imported nothing of the engine yet.
"""

from __future__ import annotations

import ast
import gc
import inspect
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import NoReturn

import pytest

from tests.mutants.callers import ROOT, Instead, module_name
from tests.mutants.mutations import Mutant

# A test hangs that takes so many seconds, and so many times what it took alone.
_SECONDS, _TIMES = 60, 20
_NOT_PUT_IN = 70
# Where pytest rewrites assertions its own finder comes first, for the engine too, and gives the file as it is.
OPTIONS = ("-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist")

# Runs some tests in a process that has a fault, and ends it: 0 if none of them fails.
Run = Callable[[Mutant, list[str], Path], NoReturn]


def noticed(one: Mutant, tests: list[str], run: Run, seconds: Mapping[str, float]) -> tuple[bool, str]:
    """Whether a test fails in a process that has the fault, and which one.

    Args:
        one: the fault.
        tests: to ask, in this order.
        run: what the process does.
        seconds: that each test took without a fault.
    """
    place = Path(tempfile.mkdtemp(prefix="mutants-"))
    told = place / "told"
    try:
        process = os.fork()
        if process == 0:
            _begin(place)
            run(one, tests, told)
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            now = told.read_text(encoding="utf-8") if told.exists() else ""
            if ended:
                code = os.waitstatus_to_exitcode(status)
                if code == _NOT_PUT_IN:
                    raise LookupError(f"{one.path}:{one.line}: {one.shown} was not put in")
                return code != 0, now
            began = told.stat().st_mtime if now else place.stat().st_mtime
            if time.time() - began > _SECONDS + _TIMES * seconds.get(now, 0 if now else _SECONDS):
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
                return True, now
            time.sleep(0.01)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _begin(place: Path) -> None:
    os.setsid()
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(place)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)


def run_from_the_start(one: Mutant, tests: list[str], told: Path) -> NoReturn:
    """In a process that has imported nothing of the engine yet."""
    sys.meta_path.insert(0, Instead({module_name(one.path): one.path}, lambda _: ast.parse(one.source)))
    code = 1
    try:
        code = int(pytest.main([*OPTIONS, "-x", *tests], plugins=[_Told(told)]))
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
    os._exit(code)


def collected(files: list[str], marks: str, ask: Callable[[Run], None]) -> None:
    """Collect the tests of files, and have their runs asked for in place of them."""
    code = pytest.main([*OPTIONS, "-s", "-m", marks, *files], plugins=[_Collected(ask)])
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        raise SystemExit(f"the tests cannot be collected: {code}")


class _Told:
    """Notes the test that runs: the last one is the one that failed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._file.write_text(nodeid, encoding="utf-8")


class _Collected:
    """Runs no test but those that are asked for."""

    def __init__(self, ask: Callable[[Run], None]) -> None:
        self._ask = ask

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = _functions()

        def run(one: Mutant, tests: list[str], told: Path) -> NoReturn:
            code = _NOT_PUT_IN
            try:
                _put_in(one, functions)
                code = 1
                session.config.pluginmanager.register(_Told(told))
                session.config.pluginmanager.register(_Ends())
                asked = [items[test] for test in tests if test in items]
                for item, following in zip(asked, [*asked[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                code = 0
            except BaseException:  # noqa: BLE001 - the process ends here
                traceback.print_exc()
            os._exit(code)

        self._ask(run)
        return True


class _Ends:
    """Ends the process with the first test that fails."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os._exit(1)


_Functions = dict[tuple[str, int, str], list[FunctionType]]


def _functions() -> _Functions:
    """All functions that there are, by file, first line and name."""
    found: _Functions = defaultdict(list)
    gc.unfreeze()
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            code = one.__code__
            found[code.co_filename, code.co_firstlineno, code.co_name].append(one)
    gc.freeze()
    return found


def _put_in(one: Mutant, functions: _Functions) -> None:
    """Give a function its code with the fault; a module that is not imported yet is read with it."""
    if module_name(one.path) not in sys.modules:
        sys.meta_path.insert(0, Instead({module_name(one.path): one.path}, lambda _: ast.parse(one.source)))
        return
    path = str(one.path)
    before = list(_codes(compile(one.path.read_text(encoding="utf-8"), path, "exec")))
    after = list(_codes(compile(one.source, path, "exec")))
    for old, new in zip(before, after, strict=True):
        if old.co_firstlineno == one.function:
            changed = functions[path, old.co_firstlineno, old.co_name]
            if not changed:
                raise LookupError(f"{one.path}:{one.function} is no function")
            for function in changed:
                function.__code__ = new


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module and of its classes, not those inside of others, in their order."""
    for inner in code.co_consts:
        if not isinstance(inner, CodeType):
            continue
        # A class, or what a function or class with type parameters is made in.
        if inner.co_flags & inspect.CO_OPTIMIZED and not inner.co_name.startswith("<generic"):
            if not inner.co_name.startswith("<"):
                yield inner
        else:
            yield from _codes(inner)
