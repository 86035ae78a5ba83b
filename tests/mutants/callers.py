"""Which tests call which functions, and how long they take: pytest with this plugin notes it, one process at a time.

python -m pytest -p tests.mutants.callers --callers FILE ...

A profiler would be asked at every call of every library. Here each function of the modules that faults are put into
begins with one statement that notes it, which costs nearly nothing.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNDER = (
    "engine/plan", "engine/compile/stateful", "engine/compile/streaming", "engine/lake", "engine/state",
    "engine/runtime/lifecycle", "engine/runtime/writer",
)  # fmt: skip
_NOTE = "_this_function_runs"


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives code of ours in the place of some modules.

    Args:
        modules: the file of each, by its name.
        code: what a file is compiled to.
        names: that the modules find beside their own.
    """

    def __init__(self, modules: dict[str, Path], code: Callable[[Path], ast.Module], **names: object) -> None:
        self._modules, self._code, self._names = modules, code, names

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        path = self._modules.get(name)
        if path is None:
            return None
        package = path.name == "__init__.py"
        spec = spec_from_loader(name, self, origin=str(path), is_package=package)
        if spec is not None and package:
            spec.submodule_search_locations = [str(path.parent)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        path = self._modules[module.__name__]
        module.__file__ = str(path)
        module.__dict__.update(self._names)
        exec(compile(self._code(path), str(path), "exec"), module.__dict__)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def first_line(function: ast.FunctionDef) -> int:
    """Decorators count, as in what Python says of a function."""
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def noting(path: Path) -> ast.Module:
    """A module whose functions begin with a note of their file and first line; not those inside of others."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in _outermost(tree):
        place = f"{path.relative_to(ROOT)}:{first_line(function)}"
        call = ast.Expr(ast.Call(ast.Name(_NOTE, ast.Load()), [ast.Constant(place)], []))
        has_docstring = ast.get_docstring(function) is not None
        function.body.insert(1 if has_docstring else 0, ast.copy_location(call, function.body[0]))
    return ast.fix_missing_locations(tree)


def _outermost(node: ast.AST) -> Iterator[ast.FunctionDef]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef):
            yield inner
        else:
            yield from _outermost(inner)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--callers", type=Path)
    parser.addoption("--callers-under", action="append", default=[])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before the first conftest, as that imports some of the modules."""
    options = early_config.known_args_namespace
    if options.callers is not None:
        early_config.pluginmanager.register(_Callers(options.callers, options.callers_under or list(UNDER)))


class _Callers:
    """Notes for each function, by file and first line, the tests in which it ran, and the seconds of each test."""

    def __init__(self, file: Path, under: list[str]) -> None:
        self._file = file
        self._called: dict[str, list[str]] = defaultdict(list)
        self._seconds: dict[str, float] = {}
        self._seen: set[str] = set()
        modules = {module_name(path): path for one in under for path in python_files(one)}
        if loaded := sorted(set(modules) & set(sys.modules)):
            raise pytest.UsageError(f"modules were imported before they could be watched: {loaded}")
        sys.meta_path.insert(0, Instead(modules, noting, **{_NOTE: self._seen.add}))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._seen.clear()
        try:
            return (yield)
        finally:
            for place in self._seen:
                self._called[place].append(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._seconds[report.nodeid] = round(report.duration, 3)

    def pytest_sessionfinish(self) -> None:
        noted = {"called": self._called, "seconds": self._seconds}
        self._file.write_text(json.dumps(noted), encoding="utf-8")


def python_files(under: str) -> list[Path]:
    return [ROOT / under] if under.endswith(".py") else sorted((ROOT / under).rglob("*.py"))
