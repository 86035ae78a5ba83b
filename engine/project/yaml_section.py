"""Typed, checked access to a part of a YAML document.

A `Section` is a value and its path. Reading it wrongly typed adds a diagnostic with the exact place and
continues, so that one run shows every fault of a file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from msgspec import Struct

from engine.errors import Diagnostic, Location, near
from engine.project.parse_yaml import Path, Yaml
from engine.schema import ConfigBlock
from engine.times import duration_seconds, parse_duration

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
# Targets of continuous integration are called pr-12 or feature.x.
_TARGET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_SHOWN = 60
_DIGITS = re.compile(r"[0-9]{1,18}")
RESERVED_PREFIXES = ("branch_", "tag_", "__")
RESERVED_SUFFIXES = ("__quarantine", "__deleted")
# What a value whose Jinja failed is read as: the failure is reported already, and nothing else is.
UNKNOWN: Any = type("Unknown", (str,), {})("")


class Section(Struct, frozen=True):
    """The value at a path of a document; findings go to the shared list `diagnostics`."""

    doc: Yaml
    path: Path
    value: Any
    diagnostics: list[Diagnostic]
    node: str | None = None

    @staticmethod
    def of_document(doc: Yaml, diagnostics: list[Diagnostic], node: str | None = None) -> Section:
        return Section(doc, (), doc.data, diagnostics, node)

    @property
    def place(self) -> Location:
        return self.doc.value_at(self.path)

    @property
    def key_place(self) -> Location:
        return self.doc.key_at(self.path)

    @property
    def name(self) -> str:
        return str(self.path[-1]) if self.path else ""

    @property
    def empty(self) -> bool:
        return self.value is None

    def report(self, code: str, message: str, hint: str = "", *, at_key: bool = False) -> None:
        place = self.key_place if at_key else self.place
        self.diagnostics.append(Diagnostic(code, message, hint, node=self.node, location=place))

    def holding(self, value: Any) -> Section:
        return Section(self.doc, self.path, value, self.diagnostics, self.node)

    def child(self, key: str) -> Section | None:
        """The value under a key, or None if it is not there or empty."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if value is None:
            return None
        return Section(self.doc, (*self.path, key), value, self.diagnostics, self.node)

    def mapping(self) -> Iterator[tuple[str, Section]]:
        """Keys and values; a finding if this is not a mapping."""
        if self.value is None:
            return
        if not isinstance(self.value, dict):
            self.expected("a mapping (key: value)")
            return
        for key, value in self.value.items():
            yield key, Section(self.doc, (*self.path, key), value, self.diagnostics, self.node)

    def items(self) -> Iterator[Section]:
        """The items of a list; one plain value counts as a list of one."""
        if self.value is None:
            return
        if isinstance(self.value, list):
            for i, value in enumerate(self.value):
                yield Section(self.doc, (*self.path, i), value, self.diagnostics, self.node)
        elif isinstance(self.value, dict):
            self.expected("a list")
        else:
            yield self

    def check_keys(self, block: ConfigBlock, block_name: str = "", *, more: Collection[str] = ()) -> None:
        """Report every key that a block does not have, with the nearest one that it has, or that is not supported yet.

        Args:
            block: the keys.
            block_name: the mapping in messages, where the block's own word is not exact.
            more: further keys that are accepted.
        """
        for key, section in self.mapping():
            if key in block.later:
                section.not_supported()
            elif key not in block.names and key not in more:
                message = f"{block_name or block.what} has no key '{key}'"
                section.report("unknown-key", message, near(key, (*block.names, *more)), at_key=True)

    def not_supported(self) -> None:
        message = f"'{self.name}' is not supported in this version"
        self.report("not-supported", message, "Remove it.", at_key=True)

    def expected(self, expected_form: str) -> None:
        """Report a wrong type, unless the value could not be rendered, which is reported already."""
        if self.value is UNKNOWN:
            return
        name = f"'{self.name}'" if self.path else "the file"
        if self.path and isinstance(self.path[-1], int):
            name = f"item {self.path[-1] + 1}"
        self.report("wrong-type", f"{name} must be {expected_form}, not {_kind(self.value)}")

    def text(self) -> str:
        """The value as text; numbers are accepted as written."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, (int, float)) and not isinstance(self.value, bool):
            return self.doc.written.get(self.path, str(self.value))
        self.expected("text")
        return ""

    def option(self) -> str:
        """The value as text for Spark or Iceberg: booleans become true and false."""
        return str(self.value).lower() if isinstance(self.value, bool) else self.text()

    def boolean(self, *, otherwise: bool = False) -> bool:
        if isinstance(self.value, bool):
            return self.value
        if isinstance(self.value, str) and self.value.lower() in {"true", "false"}:
            return self.value.lower() == "true"
        if self.value is not UNKNOWN:
            self.expected("true or false")
        return otherwise

    def integer(self, *, least: int = 1) -> int:
        value = self.value
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if value < least:
                hint = f"Write {least} or more."
                self.report("bad-value", f"'{self.name}' must be at least {least}, not {value}", hint)
            return max(value, least)
        if value is not UNKNOWN:
            self.expected("a whole number")
        return least

    def choice(self, *allowed: str) -> str:
        value = self.text()
        if value and value not in allowed:
            hint = near(value, allowed)
            self.report("bad-value", f"'{self.name}' cannot be '{value}'", hint or f"Allowed: {', '.join(allowed)}.")
        return value

    def identifier(self) -> str:
        """The value as a name: lower-case letters, digits, underscores; empty if it is none, for it becomes a path."""
        value = self.text()
        if value and not is_name(value):
            self.report(
                "bad-name",
                f"{quote_text(value)} is not a valid name",
                "Use lower-case letters, digits and underscores.",
            )
            return ""
        return value

    def namespace(self) -> str:
        """The value as the name of a namespace, whose levels have dots between them; empty if it is none."""
        value = self.text()
        if value and not all(is_name(level) for level in value.split(".")):
            hint = "Use lower-case letters, digits and underscores, and dots between levels: sales.staging."
            self.report("bad-name", f"{quote_text(value)} is not a valid name", hint)
            return ""
        return value

    def duration(self) -> str:
        value = self.text()
        if not value:
            return ""
        parsed = parse_duration(value)
        if parsed is None:
            self.report(
                "bad-duration",
                f"{quote_text(value)} is not a duration",
                "Write a number and a unit: 30 seconds, 10 minutes, 1 hour, 7 days.",
            )
            return ""
        return parsed

    def positive_duration(self) -> str:
        """The value as a duration that is longer than zero; empty if it is none."""
        parsed = self.duration()
        if parsed and not duration_seconds(parsed):
            key = self.name.lstrip("+")
            self.report("bad-value", f"'{key}' must be greater than zero", f"Write for example {key}: 10 minutes.")
            return ""
        return parsed


def quote_text(text: str) -> str:
    """A user's text inside a message: quoted, on one line, not too long."""
    line = " ".join(text.split())
    return f"'{line[:57]}...'" if len(line) > _SHOWN else f"'{line}'"


def is_plain(value: Any) -> bool:
    return value is not UNKNOWN and isinstance(value, (str, int, float))


def is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text))


def is_target_name(text: str) -> bool:
    """Whether a target, a connection or a schema registry may have the name: it is part of commands and hints."""
    return bool(_TARGET.fullmatch(text))


def is_table_name(text: str) -> bool:
    """Whether a model or its table may have the name: some are the engine's own, some Iceberg's."""
    return is_name(text) and not text.startswith(RESERVED_PREFIXES) and not text.endswith(RESERVED_SUFFIXES)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return quote_text(value) if isinstance(value, str) else f"the number {value}"
