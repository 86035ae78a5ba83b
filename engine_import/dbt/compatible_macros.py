"""Macros and tests of dbt and its most used packages that imported projects call, in files of their own, for Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from engine_import.dbt.manifest.read_manifest import DbtManifest
from engine_import.dialects.translate import WAREHOUSES
from engine_import.templates.template_parts import in_code

PACKAGES: Final = ("dbt", "dbt_utils", "dbt_date", "dbt_expectations")
_FOLDER: Final = Path(__file__).parent / "packages"
_MACRO = re.compile(r"^\{%-? macro (\w+)\(", re.MULTILINE)
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_DISPATCH = re.compile(r"""adapter\.dispatch\(\s*(['"])(\w+)\1(?:\s*,[^()]*)?\)""")


@cache
def package_text(package: str) -> str:
    files = [f"{package}.sql", *sorted(path.name for path in _FOLDER.glob(f"{package}_of_*.sql"))]
    return "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in files)


@cache
def provided(package: str) -> frozenset[str]:
    return frozenset(_MACRO.findall(package_text(package))) if package in PACKAGES else frozenset()


def qualified(template: str, needed: Mapping[str, set[str]], manifest: DbtManifest) -> str:
    """A template whose calls of dbt's own macros name their package, and that dispatches to nothing.

    Args:
        template: with Jinja.
        needed: what is called of each package is added here.
        manifest: with the macros of the project, which win over those of dbt.
    """
    own = {macro.name for macro in manifest.macros.values() if macro.package == manifest.project}

    def change(code: str) -> str:
        code = _DISPATCH.sub(lambda found: _implementation(found, own, manifest.adapter), code)
        if names := [name for name in provided("dbt") - own if name in code]:
            calls = re.compile(rf"{_STRING}|(\|\s*)?(?<![\w.])({'|'.join(names)})\s*\(")
            code = calls.sub(lambda found: f"dbt.{found[2]}(" if found[2] and not found[1] else found[0], code)
        for package in PACKAGES:
            called = re.findall(rf"(?<![\w.]){package}\.(\w+)\s*\(", code)
            needed[package].update(provided(package).intersection(called))
        return code

    return in_code(template, change)


def _implementation(found: re.Match[str], own: set[str], adapter: str) -> str:
    """Return the macro a dispatch leads to: Spark's, that of a translated warehouse, or the default."""
    prefixes = ("spark", "databricks", *((adapter,) if adapter in WAREHOUSES else ()), "default", adapter)
    names = (f"{prefix}__{found[2]}" for prefix in prefixes)
    return next((name for name in names if name in own), found[0])
