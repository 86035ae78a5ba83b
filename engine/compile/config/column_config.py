"""Reading `columns:`, data tests and `partition_by:`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.compile.config.test_options import TestOptions, is_option, read_options
from engine.compile.nodes.manifest import Column
from engine.compile.sql.schema_text import read_type
from engine.errors import Location
from engine.project.yaml_section import Section, is_name
from engine.schema.data_test_keys import COLUMN


@dataclass(frozen=True, slots=True)
class TestConfig:
    kind: str
    column: str | None
    arguments: Mapping[str, Any]
    options: TestOptions
    location: Location


@dataclass(frozen=True, slots=True)
class Described:
    columns: tuple[Column, ...] = ()
    places: Mapping[str, Section] | None = None
    tests: tuple[TestConfig, ...] = ()


def read_columns(section: Section) -> Described:
    """Read `columns:` as a mapping or as dbt's list; a column has one entry, whatever the letter case of its name."""
    columns: dict[str, Column] = {}
    listed: set[str] = set()
    places: dict[str, Section] = {}
    tests: list[TestConfig] = []
    for name, body in _entries(section):
        if name.lower() in listed:
            body.report("duplicate-name", f"the column '{name}' is listed twice", "Keep one of them.")
            continue
        listed.add(name.lower())
        places[name] = body
        columns[name] = _column(name, body)
        if isinstance(body.value, dict):
            tests += [*read_tests(body.child("tests"), name), *read_tests(body.child("data_tests"), name)]
    return Described(tuple(columns.values()), places, tuple(tests))


def _entries(section: Section) -> Iterator[tuple[str, Section]]:
    if not isinstance(section.value, list):
        yield from section.mapping()
        return
    for item in section.items():
        name = item.child("name")
        if name is None:
            item.report("missing-key", "a column has no 'name'", "Write '- name: origin'.")
        else:
            yield name.text(), item


def _column(name: str, body: Section) -> Column:
    if isinstance(body.value, str) or body.empty:
        return Column(name, body.value or "")
    body.check_keys(COLUMN, f"column '{name}'")
    text, meta = body.child("description"), body.child("meta")
    kind = body.child("type") or body.child("data_type")
    type_ = read_type(kind, name) if kind else None
    earlier = body.child("renamed_from")
    return Column(
        name, text.text() if text else "", type_, read_meta(meta), renamed_from=earlier.text() if earlier else ""
    )


def column_places(described: Described) -> Iterator[tuple[str, Location]]:
    for name, body in (described.places or {}).items():
        listed = body.child("name") if isinstance(body.path[-1], int) else None
        yield name, listed.place if listed else body.key_place
        kind = body.child("type") or body.child("data_type")
        if kind:
            yield f"{name}.type", kind.place
        if earlier := body.child("renamed_from"):
            yield f"{name}.renamed_from", earlier.place


def read_meta(section: Section | None) -> dict[str, Any]:
    return {key: part.value for key, part in section.mapping()} if section else {}


def read_tags(section: Section | None) -> tuple[str, ...]:
    return tuple(text for item in section.items() if (text := read_tag(item))) if section else ()


def read_tag(item: Section) -> str:
    """Read one tag; a comma is part of none, for a selection reads it as an intersection."""
    text = item.text()
    if "," in text:
        listed = ", ".join(part.strip() for part in text.split(",") if part.strip())
        item.report("bad-value", f"the tag '{text}' contains a comma", f"Write a list: tags: [{listed}].")
        return ""
    return text


def check_version(top: Section) -> None:
    """Check dbt's `version:` of a file's form: there is one form here, that of version 2."""
    part = top.child("version")
    if part is not None and part.text() not in {"", "2"}:
        part.report("bad-value", f"'version' cannot be {part.text()}", "Write 'version: 2', or remove it.")


def read_tests(section: Section | None, column: str | None) -> list[TestConfig]:
    tests = (_test(item, column) for item in section.items()) if section else ()
    return [test for test in tests if test]


def _test(item: Section, column: str | None) -> TestConfig | None:
    if not isinstance(item.value, dict):
        name = item.text()
        if name and not all(is_name(part) for part in name.split(".", 1)):
            item.report("bad-name", f"'{name}' is not the name of a test", "Write a name such as not_null.")
            return None
        return TestConfig(name, column, {}, TestOptions(), item.place) if name else None
    if len(item.value) != 1:
        item.expected("one test, such as 'accepted_values: {values: [a, b]}'")
        return None
    ((kind, body),) = item.mapping()
    if not body.empty and not isinstance(body.value, dict):
        body.expected("a mapping of arguments")
        return None
    return TestConfig(kind, column, _arguments(body), read_options(body), body.key_place)


def _arguments(body: Section) -> dict[str, Any]:
    """The macro's arguments, given directly or, as dbt has it now, under `arguments:`."""
    arguments: dict[str, Any] = {}
    for key, part in body.mapping():
        if key == "arguments" and isinstance(part.value, dict):
            arguments.update(part.value)
        elif not is_option(key):
            arguments[key] = part.value
    return arguments
