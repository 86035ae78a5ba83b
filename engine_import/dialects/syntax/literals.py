"""Strings and names in quotes: what they are in a warehouse, and how Spark writes them."""

from __future__ import annotations

import re

from engine_import.dialects.syntax.sql_tree import Node

_PREFIX = re.compile(r"(?i)(rb|br|r|b|e|n|u&)?('''|\"\"\"|'|\"|\$\w*\$)")


def string_value(node: Node, *, escapes: bool) -> str | None:
    """Return the value of a string without Jinja in it; backslashes stay where they escape."""
    found = _PREFIX.match(node.text)
    if node.kind != "string" or found is None or "{{" in node.text or "{%" in node.text:
        return None
    prefix, quote = (found[1] or "").lower(), found[2]
    inner = node.text[found.end() : -len(quote)]
    if "r" in prefix or quote.startswith("$"):
        return inner
    if prefix == "e" or escapes:
        return re.sub(r"\\(['\"\\/])", r"\1", inner).replace("''", "'" if quote == "'" else "''")
    return inner.replace(quote * 2, quote)


def string_text(text: str, *, escapes: bool) -> str | None:
    """Return a string, with its Jinja, as Spark writes it; None if Spark has none of its kind."""
    found = _PREFIX.match(text)
    if found is None:
        return None
    prefix, quote = (found[1] or "").lower(), found[2]
    inner = text[found.end() : -len(quote)]
    if "b" in prefix or prefix == "u&":
        return None
    if prefix == "r" or quote.startswith("$"):
        return text if len(quote) == 1 and prefix == "r" else quoted(inner)
    if len(quote) > 1:
        return "'" + re.sub(r"(?<!\\)'", r"\\'", inner) + "'"
    if prefix == "e" or escapes or "\\" not in inner:
        return f"{quote}{inner}{quote}"
    return f"{quote}{_outside_jinja(inner)}{quote}"


def _outside_jinja(text: str) -> str:
    """Double the backslashes, except for those in Jinja."""
    parts = re.split(r"(\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z))", text, flags=re.DOTALL)
    return "".join(part if at % 2 else part.replace("\\", "\\\\") for at, part in enumerate(parts))


def quoted(value: str) -> str:
    return "'" + _outside_jinja(value).replace("'", "\\'") + "'"


def name_text(text: str) -> str:
    if not text.startswith('"'):
        return text
    return "`" + text[1:-1].replace('""', '"').replace("`", "``") + "`"
