"""A kind of source answers for itself (docs/design/024-layers-and-rooms.md): who asks what it is called has to be found and
edited for each new kind, and what he forgets is found by a user. Ask `engine.sources.source_traits` instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sources import BUILT_IN, KINDS, SPARK_READER, source_traits
from engine.sources.traits import UNKNOWN, SourceTraits
from tests.test_layers import ROOT, imported, imports_in, modules

# Where kinds are, and where the key is declared.
OWN = ("engine/sources/", "engine/schema/")
MOST = 10
# What is left asks for the format of something else: the declaration that an importer writes, the values of records, the
# number of a file's form.
LEFT = {
    "engine_import/flare/import_flare.py": 3,
    "engine/compile/declarations/source_spec.py": 1,
    "engine/state/model_state.py": 1,
}


def is_format(node: ast.AST) -> bool:
    """Whether an expression is the format of a source: `spec.format`, `source.formats`, `known["format"]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return bool(node.args) and is_format(node.args[0])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"get", "lower"}:
        return is_format(node.func.value) if node.func.attr == "lower" else bool(node.args) and is_key(node.args[0])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        return len(node.args) > 1 and is_key(node.args[1])
    if isinstance(node, ast.Attribute):
        return node.attr in {"format", "formats"}
    return (isinstance(node, ast.Subscript) and is_key(node.slice)) or (
        isinstance(node, ast.Name) and node.id in {"format", "format_"}
    )


def is_key(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "format"


def names_a_kind(node: ast.AST) -> bool:
    """Whether an expression is the names of a kind, or the kind of a name that is written down."""
    if isinstance(node, ast.Attribute):
        return node.attr == "FORMATS"
    if isinstance(node, ast.Subscript):
        asked, of = node.slice, node.value
    elif isinstance(node, ast.Call) and node.args:
        asked, of = node.args[0], node.func
    else:
        return False
    return (
        isinstance(of, ast.Name) and of.id in {"KINDS", "kind_of", "source_traits"} and isinstance(asked, ast.Constant)
    )


def questions(tree: ast.AST) -> Iterator[ast.AST]:
    """What asks a source for its name: comparisons with anything but None or another format, and beginnings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            others = [side for side in sides if not is_format(side)]
            nothing = all(isinstance(side, ast.Constant) and side.value is None for side in others)
            if len(others) < len(sides) and not nothing:
                yield node
        elif isinstance(node, ast.Match) and is_format(node.subject):
            yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_format(node.func.value):
            if node.func.attr in {"startswith", "endswith", "removeprefix"}:
                yield node
        elif names_a_kind(node):
            yield node


def asked_by(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    return sum(1 for _ in questions(ast.parse(text))) if "format" in text.lower() or "KINDS" in text else 0


@pytest.mark.slow
def test_nobody_asks_a_source_for_its_name() -> None:
    paths = {path.relative_to(ROOT.parent).as_posix(): path for path in modules()}
    found = {name: asked_by(path) for name, path in paths.items() if not name.startswith(OWN)}
    assert {name: count for name, count in found.items() if count} == LEFT, (
        "ask its kind: engine.sources.source_traits(spec.format), see engine/sources/traits.py"
    )
    assert sum(LEFT.values()) <= MOST


def kinds() -> set[str]:
    """The modules that read sources, and the packages that have more than one module for it."""
    homes = {module.rpartition(".")[0] for module in BUILT_IN.values()} - {"engine.sources"}
    return homes | set(BUILT_IN.values()) | {"engine.sources.spark_reader"}


def imported_kinds(path: Path) -> set[str]:
    names = set(imported(path))
    for node in imports_in(path):
        if isinstance(node, ast.ImportFrom) and node.module == "engine.sources":
            names |= {f"engine.sources.{alias.name}" for alias in node.names}
    return {name for name in names if any(name == kind or name.startswith(f"{kind}.") for kind in kinds())}


@pytest.mark.slow
def test_nobody_imports_a_kind_of_source() -> None:
    outside = [path for path in modules() if not path.relative_to(ROOT.parent).as_posix().startswith(OWN)]
    assert {path: kinds_there for path in outside if (kinds_there := imported_kinds(path))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from engine.sources.kafka.topics import Topics", "from engine.sources.files import local_files",
        "from engine.sources import kafka", "import engine.sources.socket",
        "def f():\n    from engine.sources import rate",
    ],
)  # fmt: skip
def test_the_rule_sees_an_import_of_each_form(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_layers.ROOT", tmp_path / "engine")
    module = tmp_path / "engine" / "plan" / "a.py"
    module.parent.mkdir(parents=True)
    module.write_text(f"{text}\nfrom engine.sources import listing\n", encoding="utf-8")
    assert len(imported_kinds(module)) == 1


@pytest.mark.parametrize(
    "text",
    [
        'spec.format == "kafka"', 'node.spec.format in {"rate", "socket"}', "spec.format not in _TIMED",
        'source.get("format") in BY_NAME', 'source["format"] != "csv"', "stream.kind in kafka.FORMATS",
        'getattr(spec, "format", "") == "iceberg"', 'format_ == "iceberg"', 'str(said.get("format")) == "kafka"',
        "spec.format.startswith(SPARK_READER)", 'KINDS["iceberg"].faults(spec)', 'source_traits("rate").caseless',
        '"iceberg" in source.formats',
        "match spec.format:\n    case 'kafka': pass",
    ],
)  # fmt: skip
def test_the_rule_sees_a_question_of_each_form(text: str) -> None:
    assert len(list(questions(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        'old.get("format") == new.get("format")',
        "format_ is None",
        "source_traits(spec.format).is_table",
        '"{}".format(a) == b',
    ],
)
def test_the_rule_lets_others_pass(text: str) -> None:
    assert list(questions(ast.parse(text))) == []


def test_every_format_has_a_record_of_what_it_answers() -> None:
    formats = [*BUILT_IN, f"{SPARK_READER}xml"]
    assert [name for name in formats if source_traits(name) is UNKNOWN] == []
    own = {name for kind in map(KINDS.__getitem__, formats) for name in kind.TRAITS}  # type: ignore[attr-defined]
    assert own == {*BUILT_IN, SPARK_READER}


def test_a_kind_that_says_nothing_has_the_answers_of_one_of_which_nothing_is_known() -> None:
    assert source_traits("of-nobody") == source_traits("") == SourceTraits()
