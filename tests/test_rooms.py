"""The packages inside a stage import one way too, and no module hides behind a name that its package exports."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.test_layers import IMPORTERS, ROOT, imported, imports_in, modules

pytestmark = pytest.mark.slow


def name_of(path: Path) -> str:
    """The full name of a module."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports of the engine and of the importers; `from package import module` is the module."""
    known = {name_of(path): path for path in modules()}
    found = {}
    for name, path in known.items():
        asked = {node for node in imported(path) if node in known}
        for node in imports_in(path):
            if isinstance(node, ast.ImportFrom) and node.module in known:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                asked |= inner & known.keys()
                if inner <= known.keys():
                    asked.discard(node.module)
        found[name] = asked - {name}
    return found


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of nodes that can all be reached from each other (Tarjan, SIAM J. Comput. 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in number:
            visit(node)
    return found


def test_no_modules_import_each_other_in_a_circle():
    graph = dict(imports())
    # `engine.Project` and the magics of notebooks are loaded when somebody asks for them.
    graph["engine"] = graph["engine"] - {"engine.api", "engine.notebook"}
    assert circles(graph) == []


def test_the_rooms_of_a_stage_import_one_way():
    packages = {name_of(path) for path in modules() if path.name == "__init__.py"}

    def room(name: str) -> str:
        return name if name in packages else name.rpartition(".")[0]

    def stage(parts: list[str]) -> list[str]:
        """The importers are one."""
        return parts[: 1 if parts[0] == IMPORTERS.name else 2]

    graph: dict[str, set[str]] = defaultdict(set)
    for name, asked in imports().items():
        for other in asked:
            here, there = room(name), room(other)
            # The package of a stage itself is its face: it names what others may use.
            ours, theirs = here.split("."), there.split(".")
            inside = min(len(ours), len(theirs)) > len(stage(ours))
            if stage(ours) == stage(theirs) and here != there and inside:
                graph[here].add(there)
    assert circles(graph) == []


def test_no_room_has_a_module_with_the_name_of_something_that_it_gives():
    """Whichever is loaded last would be the other."""
    twice = []
    for path in modules():
        if path.name != "__init__.py":
            continue
        inside = {other.stem for other in path.parent.glob("*.py")}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            given = {node.name} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else set()
            if isinstance(node, ast.ImportFrom) and node.module != name_of(path):
                given = {alias.asname or alias.name for alias in node.names}
            twice += [f"{name_of(path)}.{name}" for name in given & inside]
    assert twice == []
