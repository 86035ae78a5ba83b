"""The files that small projects are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.project.small_projects import PROJECT, SOURCES

__all__ = ["LAB", "PROJECT", "SMALL", "SOURCES", "sources_yaml", "write_files"]

_CATALOG = "catalog: {type: sqlite, name: lake, path: .engine/lake}"
LAB = f"name: lab\ntargets: {{dev: {{{_CATALOG}, schema: s}}}}\n"
SMALL = f"name: small\ntargets:\n  dev:\n    {_CATALOG}\n    schema: small\n"


def sources_yaml(source: str = "shop", /, **tables: str | Mapping[str, Any]) -> str:
    """Return the file that declares the tables of a source.

    A table is the text of its columns (JSON files in `landing/NAME`), or a mapping of its keys.
    """
    lines = [f"sources:\n  - name: {source}\n    tables:\n"]
    for name, keys in tables.items():
        given = {"schema": keys} if isinstance(keys, str) else keys
        defaults = {"format": "json", "path": f"landing/{name}"} if given.get("format", "json") == "json" else {}
        table = {"name": name, **defaults, **given}
        lines.append(f"      - {{{', '.join(f'{key}: {_flow(value)}' for key, value in table.items())}}}\n")
    return "".join(lines)


def _flow(value: Any) -> str:
    return value if isinstance(value, str) and value.replace("/", "").isalnum() else json.dumps(value)


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder, and the folders that they need."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
