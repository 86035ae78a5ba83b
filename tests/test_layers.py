"""Imports point one way (docs: how data flows through the engine), checked on the text of every module."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import engine
import engine_import
from engine.state import operations

pytestmark = pytest.mark.slow

ROOT = Path(engine.__file__).parent
# The importers of dbt's and Flare's projects, a package beside the engine.
IMPORTERS = Path(engine_import.__file__).parent
# The one module of the engine that imports them, when its commands run.
USES_IMPORTERS = ROOT / "cli" / "migration_commands.py"
STAGES = (
    "project",
    "compile",
    "plan",
    "runtime",
    "unit_tests",
    "docs",
    "live",
    "api",
    "lsp",
    "mcp",
    "notebook",
    "cli",
)
FOUNDATIONS = (
    "addresses", "bounds", "characters", "control", "diagnostics", "errors", "events", "kill_points", "local_paths", "node_ids", "relations", "secrets", "jinja", "spark",
    "spark_master", "lake",
    "object_store", "package_source",
    "sinks", "sources", "state", "schema", "ignored_file_names", "spark_options", "target_folder", "times", "user_cache",
)  # fmt: skip
# What touches Spark, tables or state; project and compile answer from files alone.
OUTSIDE = ("spark", "lake", "state")
HEAVY = ("pyspark", "pyiceberg", "pyarrow", "py4j")


def modules() -> list[Path]:
    """Of the engine and of the importers."""
    return [*sorted(ROOT.rglob("*.py")), *sorted(IMPORTERS.rglob("*.py"))]


def modules_with(words: str) -> list[tuple[Path, str]]:
    """The modules in whose text a pattern is found, with their text: to parse all of them takes many seconds."""
    asked = re.compile(words)
    texts = ((path, path.read_text(encoding="utf-8")) for path in modules())
    return [(path, text) for path, text in texts if asked.search(text)]


def part(path: Path) -> str:
    """The stage or foundation a module belongs to, or `engine_import`; empty for engine/__init__.py."""
    package, first, *_ = path.relative_to(ROOT.parent).parts
    if package == IMPORTERS.name:
        return package
    return first.removesuffix(".py") if first != "__init__.py" else ""


@cache
def imports_in(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """What a file imports, also inside functions; a thousand files are parsed once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))


def imported(path: Path) -> Iterator[str]:
    """The full names of all modules that a file imports, also inside functions."""
    package = path.relative_to(ROOT.parent).parts[:-1]
    for node in imports_in(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield module
            if module == "engine":
                yield from (f"engine.{alias.name}" for alias in node.names)


def parts_imported(path: Path) -> set[str]:
    names = [name.split(".") for name in imported(path)]
    parts = {name[1] for name in names if name[0] == "engine" and len(name) > 1 and name[1] != "__version__"}
    return parts | {name[0] for name in names if name[0] == IMPORTERS.name}


def allowed(owner: str) -> set[str]:
    if owner == "":
        # `from engine import Project`, loaded when it is asked for, and `%load_ext engine`.
        return {"api", "notebook"}
    if owner == IMPORTERS.name:
        # What they write is compiled, and neither built nor planned.
        return {owner, "project", "compile", "api"} | set(FOUNDATIONS) - set(OUTSIDE)
    if owner not in STAGES:
        return set(FOUNDATIONS)
    left = set(STAGES[: STAGES.index(owner) + 1])
    return left | set(FOUNDATIONS) - (set(OUTSIDE) if owner in {"project", "compile"} else set())


def test_a_module_imports_only_what_is_left_of_it():
    owners = {path: part(path) for path in modules()}
    assert set(owners.values()) - {"", *STAGES, *FOUNDATIONS, IMPORTERS.name, "__main__"} == set()
    wrong = {
        path.relative_to(ROOT.parent).as_posix(): right
        for path, owner in owners.items()
        if (right := parts_imported(path) - allowed(owner if owner != "__main__" else "cli"))
    }
    # The importers use the engine, which therefore imports them at one place, when a command is run.
    assert wrong == {USES_IMPORTERS.relative_to(ROOT.parent).as_posix(): {IMPORTERS.name}}


def test_the_importers_are_loaded_by_their_commands_alone():
    at_once = [
        node
        for node in ast.parse(USES_IMPORTERS.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.Import, ast.ImportFrom)) and IMPORTERS.name in ast.unparse(node)
    ]
    assert at_once == []
    code = "import sys, engine.cli.main, engine.api, engine.notebook, engine.lsp, engine.mcp; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert IMPORTERS.name not in {name.split(".")[0] for name in done.stdout.split()}


def test_the_check_sees_imports_of_every_form(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path / "engine")
    module = tmp_path / "engine" / "compile" / "a.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "import engine.runtime.context.run_context\nfrom engine import docs\nfrom ..plan import x\n"
        "def f():\n    from engine.lake.table_facts import y\n    from engine_import import dbt\n"
    )
    assert parts_imported(module) == {"runtime", "docs", "plan", "lake", "engine_import"}


def test_compiling_loads_no_spark_and_no_arrow():
    code = "import sys, engine.project, engine.compile, engine.compile.pipeline.incremental; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint(HEAVY)
    assert "sqlglot" in loaded


def test_what_is_compiled_already_is_read_without_parsers_and_networks():
    code = "import sys, engine.compile, engine.compile.declarations.target, engine.project; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"sqlglot", "jinja2", "ssl", "http", "gzip", "multiprocessing"})


def test_pyiceberg_is_used_in_the_lake_alone_which_keeps_its_configuration_out() -> None:
    users = {part(path) for path in modules() if any(name.split(".")[0] == "pyiceberg" for name in imported(path))}
    assert users == {"lake"}


def test_nothing_in_the_product_listens_at_the_points_of_faults():
    calls = [
        path
        for path in modules()
        if "listen" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "listen" and getattr(node.value, "id", "") == "kill_points"
    ]
    names = {name for path in modules() for name in imported(path) if name.startswith("engine.kill_points.")}
    assert (calls, names) == ([], set())


def test_every_point_is_described_and_reached():
    text = (ROOT / "kill_points.py").read_text(encoding="utf-8")
    documented = set(re.findall(r"^    (\w+(?: \w+)?)  +\w", text.split('"""')[1], re.MULTILINE))
    # A step of an operation reaches the point of its name.
    calls = {"kill_points.reach", "_reach", "Step"}
    names = {
        node.value if isinstance(node, ast.Constant) else getattr(operations, node.id, None)
        for _, code in modules_with(r"\b(reach|Step)\(")
        for call in ast.walk(ast.parse(code))
        if isinstance(call, ast.Call) and call.args and ast.unparse(call.func) in calls
        for node in ast.walk(call.args[0])
        if isinstance(node, (ast.Constant, ast.Name))
    }
    assert documented == {name for name in names if isinstance(name, str)}
