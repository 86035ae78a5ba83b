"""The JSON Schemas of editors take what the engine takes, and reject what it rejects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from engine.cli.commands.init_command import TEMPLATES, create_project
from engine.compile import compile_project
from engine.compile.artifacts.write_artifacts import write_artifacts
from engine.project import load_project
from engine.project.model_files import open_model
from engine.project.parse_yaml import load_yaml
from engine.schema import ConfigKey, ValueForm
from engine.schema.all_blocks import BLOCKS, FILES_OF_A_PROJECT
from engine.schema.json_schema import json_schema
from tests.lab import REPOSITORY

pytestmark = pytest.mark.slow

FILES = {file.name: file for file in FILES_OF_A_PROJECT}
PROJECTS = sorted(
    path.parent
    for path in [REPOSITORY / "project.yml", *REPOSITORY.glob("docs/**/project.yml"), *REPOSITORY.glob("tests/*/project/project.yml")]
)  # fmt: skip
KEYS = [(block.name, key) for block in BLOCKS.values() for key in block.keys]
IDS = [f"{name}.{key.name}" for name, key in KEYS]


@cache
def of_file(name: str) -> Callable[[Any], Any]:
    return fastjsonschema.compile(json.loads(json_schema(FILES[name])))


# What is read by a format, and rows, are part of another mapping in the schemas.
INSIDE = dict.fromkeys(("files", "kafka", "iceberg", "rate", "socket", "spark_reader"), "reading")
INSIDE |= {"rows": "expect", "term": "definition"}


@cache
def of_block(name: str) -> Callable[[Any], Any]:
    """Takes a mapping with the keys of a block."""
    name, definitions = INSIDE.get(name, name), {}
    for file in FILES_OF_A_PROJECT:
        definitions |= json.loads(json_schema(file))["definitions"]
    own = {key: part for key, part in definitions[name].items() if key != "required"}
    return fastjsonschema.compile({**own, "definitions": definitions})


def accepts(check: Callable[[Any], Any], data: Any) -> bool:
    try:
        check(data)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


def parsed(text: str) -> Any:
    document, problems = load_yaml(text, "x.yml")
    assert not problems
    return document.data


def files(root: Path) -> Iterator[tuple[str, str, Any]]:
    """The kind, name and data of each file of a project."""
    project = load_project(root)
    yield "project", "project.yml", project.doc.data
    for kind, documents in (("sources", project.sources), ("tests", project.tests)):
        for document in documents:
            yield kind, document.file, document.data
    for text in project.models:
        model = open_model(text, [])
        if model.header is not None:
            yield "model", model.file, model.header.data


@pytest.mark.parametrize("root", PROJECTS, ids=lambda root: str(root.relative_to(REPOSITORY)))
def test_projects_of_the_repository_are_valid(root: Path) -> None:
    seen = list(files(root))
    assert seen
    for kind, name, data in seen:
        assert accepts(of_file(kind), data), name


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_are_valid_and_name_schemas_that_a_compilation_writes(tmp_path: Path, template: str) -> None:
    root = tmp_path / "shop"
    create_project(root, template)
    write_artifacts(compile_project(load_project(root)).manifest, root / "target")
    named = 0
    for kind, name, data in files(root):
        file = root / name
        assert accepts(of_file(kind), data), name
        if kind != "model":
            (path,) = re.findall(r"\A# yaml-language-server: \$schema=(\S+)\n", file.read_text())
            assert (file.parent / path).resolve() == (root / "target/schema" / f"{kind}.json").resolve()
            assert json.loads((file.parent / path).read_text()) == json.loads(json_schema(FILES[kind]))
            named += 1
    assert named >= 3


def test_schemas_are_written_again_only_when_they_are_missing_or_changed(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    create_project(root, "files")
    manifest = compile_project(load_project(root)).manifest
    schema = root / "target/schema/project.json"
    write_artifacts(manifest, root / "target")
    before = schema.stat().st_mtime_ns
    write_artifacts(manifest, root / "target")
    assert schema.stat().st_mtime_ns == before
    schema.write_text("{}")
    write_artifacts(manifest, root / "target")
    assert json.loads(schema.read_text())["title"] == "Headrace: project.yml"


@pytest.mark.parametrize(("block", "key"), KEYS, ids=IDS)
def test_every_example_is_valid_where_its_key_is_supported(block: str, key: ConfigKey) -> None:
    data = parsed(key.example)
    assert list(data) == [key.name]
    assert accepts(of_block(block), data) is not key.later


WRONG: dict[ValueForm, Any] = {
    ValueForm.NAME: "No Name", ValueForm.INTEGER: 0, ValueForm.COUNT: -1, ValueForm.BOOLEAN: "maybe",
    ValueForm.DURATION: 10, ValueForm.MAPPING: {"a": [1]}, ValueForm.VALUES: "text", ValueForm.BLOCK: [1],
    ValueForm.BLOCKS: {"a": 1}, ValueForm.BY_NAME: True, ValueForm.TESTS: [{"a": None, "b": None}], ValueForm.TEXTS: [[1]],
    ValueForm.TEXT: [1], ValueForm.SQL: [1], ValueForm.PATH: True, ValueForm.TIME: {"a": 1}, ValueForm.ROWS: 5,
}  # fmt: skip


@pytest.mark.parametrize(("block", "key"), KEYS, ids=IDS)
def test_a_value_of_another_form_is_not_valid(block: str, key: ConfigKey) -> None:
    check = of_block(block)
    if key.choices:
        assert not accepts(check, {key.name: "nonsense"})
        assert all(accepts(check, {key.name: choice}) for choice in key.choices)
    elif key.form is not ValueForm.TREE and ValueForm.TREE not in key.also:
        assert not accepts(check, {key.name: WRONG[key.form]})


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS.values() if not block.open and block.name != "term"],
    ids=lambda block: block.name,
)
def test_a_key_that_a_block_does_not_have_is_not_valid(block: Any) -> None:
    assert not accepts(of_block(block.name), {"bogus": 1})


@pytest.mark.parametrize("block", [block for block in BLOCKS.values() if any(key.required for key in block.keys)], ids=lambda block: block.name)  # fmt: skip
def test_a_block_without_what_it_needs_is_not_valid(block: Any) -> None:
    definitions: dict[str, Any] = {}
    for file in FILES_OF_A_PROJECT:
        definitions |= json.loads(json_schema(file))["definitions"]
    needed = [key.name for key in block.keys if key.required]
    assert block.name in INSIDE or definitions[block.name].get("required") == needed


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("project", "name: shop\nmodels: {+tgas: [a]}"),
        ("project", "name: shop\nmodels: {marts: {+output_mode: apend}}"),
        ("project", "name: shop\ntargets: {dev: {spark: {packages: [a]}}}"),
        ("project", "target: dev"),
        ("sources", "sources: [{name: s, tables: [{name: t, format: json, pth: x}]}]"),
        ("sources", "sources: [{name: s, tables: [{name: t, format: json, targets: {dev: {pth: x}}}]}]"),
        ("sources", "sources: [{name: s, tables: [{name: t, format: kafka, path: x}]}]"),
        ("sources", "sources: [{name: s, tables: [{name: t, format: spark.x, topic: x}]}]"),
        ("sources", "sources: [{name: s}]"),
        ("tests", "unit_tests: [{name: t, model: m, config: {bogus: 1}}]"),
        ("tests", "unit_tests: [{name: t, model: m, steps: [{gvien: {}}]}]"),
        ("model", "streams: {a: {watermrak: x}}"),
        ("model", "columns: {id: {tests: [{unique: {severity: fatal}}]}}"),
        ("exposures", "exposures: [{name: a, type: chart, owner: {name: b}}]"),
        ("selectors", "selectors: [{name: a, definition: tag:x, default: 7}]"),
    ],
)
def test_wrong_files_are_not_valid(kind: str, text: str) -> None:
    assert not accepts(of_file(kind), parsed(text))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("project", "name: shop\nmodels: {+tags: [a], marts: {+enabled: \"{{ target.name == 'prod' }}\", inner: null}}"),
        ("sources", "sources: [{name: s, tables: [{name: t, format: of_a_plugin, key_of_a_plugin: 1}]}]"),
        ("sources", "sources: [{name: s, tables: [{name: t, format: kafka, value: avro, dedup: null, columns: [{name: id}]}]}]"),
        ("sources", "sources: [{name: s, tables: [{name: t, format: kafka, path: x, targets: {dev: {format: csv}}}]}]"),
        ("tests", "unit_tests: [{name: t, model: m, given: [{input: ref('a'), rows: []}], expect: [{id: 1}], steps: [flush, {given: {a: \"id\\n1\"}}]}]"),
        ("model", "streams: [a, {b: {watermark: {column: x, delay: 1 minute}}}]\ncolumns: [{name: a, tests: [unique, {kit.even: null}]}]"),
        ("model", "format_version: 3\ntrigger: once\ncontract: {enforced: true}\npersist_docs: false"),
        ("selectors", "selectors: [{name: a, definition: {union: [{tag: x}, {method: fqn, value: y, children_depth: 1}, {exclude: [tag:z]}]}}]"),
    ],
)  # fmt: skip
def test_every_form_that_the_engine_takes_is_valid(kind: str, text: str) -> None:
    assert accepts(of_file(kind), parsed(text))
