"""Reading `columns:`, data tests and `partition_by:`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from engine.compile.nodes.manifest import Column, Severity
from engine.compile.sql.schema_text import read_type
from engine.errors import Location
from engine.project.yaml_section import UNKNOWN, Section, is_name
from engine.schema.data_test_keys import COLUMN, DATA_TEST, TEST_CONFIG

_NOT_ARGUMENTS = DATA_TEST.names - {"arguments"}
_BOUND = re.compile(r"(?P<sign>=|==|!=|<>|<=|>=|<|>)\s*(?P<number>[0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class TestOptions:
    """How a test is run and judged; at most `limit` failing rows are counted."""

    severity: Severity = Severity.ERROR
    where: str = ""
    warn_if: str = ""
    error_if: str = ""
    limit: int | None = None
    store_failures: bool = False
    tags: tuple[str, ...] = ()
    name: str = ""
    enabled: bool = True
    description: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)


def read_options(body: Section) -> TestOptions:
    config = body.child("config")
    keys: dict[str, Section] = {}
    for key, part in chain(body.mapping(), _config(config) if config else ()):
        if key in TEST_CONFIG.later:
            part.not_supported()
        elif key in TEST_CONFIG.names and not part.empty:
            keys[key] = part

    def flag(key: str, *, otherwise: bool) -> bool:
        return keys[key].boolean(otherwise=otherwise) if key in keys else otherwise

    return TestOptions(
        severity=_severity(keys.get("severity")),
        where=keys["where"].text() if "where" in keys else "",
        warn_if=_bound(keys.get("warn_if")),
        error_if=_bound(keys.get("error_if")),
        limit=keys["limit"].integer() if "limit" in keys else None,
        store_failures=flag("store_failures", otherwise=False),
        tags=tuple(item.text() for item in keys["tags"].items()) if "tags" in keys else (),
        name=keys["name"].identifier() if "name" in keys else "",
        enabled=flag("enabled", otherwise=True),
        description=keys["description"].text() if "description" in keys else "",
        meta={key: part.value for key, part in keys["meta"].mapping()} if "meta" in keys else {},
    )


def is_option(key: str) -> bool:
    return key in _NOT_ARGUMENTS


def _config(section: Section) -> Iterator[tuple[str, Section]]:
    section.check_keys(TEST_CONFIG)
    return ((key, part) for key, part in section.mapping() if key not in TEST_CONFIG.later)


def _severity(part: Section | None) -> Severity:
    level = part.text().lower() if part else ""
    if part is not None and level and level not in set(Severity):
        part.choice(*Severity)
    return Severity(level) if level in set(Severity) else Severity.ERROR


def _bound(part: Section | None) -> str:
    if part is None or part.value is UNKNOWN:
        return ""
    match = _BOUND.fullmatch(part.text().strip())
    if match is None:
        part.report(
            "bad-value",
            f"'{part.text()}' is not a condition on the number of failures",
            "Write it as '> 10' or '!= 0'.",
        )
        return ""
    return f"{match['sign']} {match['number']}"


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
            item.report("bad-name", f"'{name}' is not a valid test name", "Write a name such as not_null.")
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
