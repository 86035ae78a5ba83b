"""The options of every data test, beside the arguments of its macro."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from engine.compile.nodes.manifest import Severity
from engine.project.yaml_section import UNKNOWN, Section
from engine.schema.data_test_keys import DATA_TEST, TEST_CONFIG

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
