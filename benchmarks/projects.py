"""Synthetic projects: the same models for Headrace, dbt and SQLMesh, with joins, CTEs, a macro and columns."""

from __future__ import annotations

from pathlib import Path

_SCHEMA = "id int, at timestamp, kind string, amount double, data struct<a: int, b: string>"
_HEADRACE = """\
/*---
description: Model {i}.
streams:
  {name}: {{watermark: at delay 10 minutes}}
columns:
  id: {{description: the id, tests: [not_null]}}
  kind: what it is
tags: [t{tag}]
---*/
"""
_SQL = """\
with a as (
    select id, at, kind, amount, {money} as dollars
    from {first}
    where kind <> 'x{i}'
),
b as (select id, max(amount) as most from {second} group by id)
select a.id, a.at, a.kind, a.amount, a.dollars, coalesce(b.most, 0) as most,
    case when a.amount > 10 then 'large' else 'small' end as size
from a
left join b on a.id = b.id
"""
_MACRO = "{% macro dollars(c) %}round({{ c }} / 100.0, 2){% endmacro %}\n"


def headrace(count: int, root: Path) -> None:
    """A project of so many models; each reads two earlier ones."""
    tables = "".join(
        f'      - {{name: t{i}, format: json, path: landing/t{i}, schema: "{_SCHEMA}"}}\n' for i in range(10)
    )
    files = {
        "project.yml": "name: big\ntarget: dev\ntargets:\n  dev:\n    catalog: {type: sqlite, name: lake, path: "
        ".engine/lake}\n    schema: big\n",
        "sources/s.yml": "sources:\n  - name: s\n    tables:\n" + tables,
        "macros/m.sql": _MACRO,
    }
    for i in range(count):
        first, second = _read(i, 10), _read(i, 7)
        header = _HEADRACE.format(i=i, tag=i % 7, name=f"m{i - 10}" if i >= 10 else f"s.t{i % 10}")
        files[f"models/f{i % 20}/m{i}.sql"] = header + _sql(i, first, second)
    _write(root, files)


def dbt(count: int, root: Path) -> None:
    """The same for dbt, with its properties files."""
    tables = "".join(f"      - name: t{i}\n" for i in range(10))
    files = {
        "dbt_project.yml": "name: big\nversion: '1.0'\nprofile: big\nconfig-version: 2\n",
        "profiles.yml": "big:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: ':memory:'}\n",
        "models/sources.yml": "version: 2\nsources:\n  - name: s\n    tables:\n" + tables,
        "macros/m.sql": _MACRO,
    }
    for folder in range(20):
        models = "".join(
            f"  - name: m{i}\n    description: Model {i}.\n    columns:\n"
            "      - name: id\n        description: the id\n"
            "        data_tests: [not_null]\n      - name: kind\n        description: what it is\n"
            for i in range(folder, count, 20)
        )
        if models:
            files[f"models/f{folder}/_models.yml"] = "version: 2\nmodels:\n" + models
    for i in range(count):
        config = f"{{{{ config(materialized='table', tags=['t{i % 7}']) }}}}\n"
        files[f"models/f{i % 20}/m{i}.sql"] = config + _sql(i, _read(i, 10), _read(i, 7))
    _write(root, files)


def sqlmesh(count: int, root: Path) -> None:
    """The same for SQLMesh."""
    files = {
        "config.yaml": "gateways:\n  local:\n    connection: {type: duckdb}\ndefault_gateway: local\n"
        "model_defaults: {dialect: spark, start: 2024-01-01}\n",
        "macros/__init__.py": "",
        "models/sources.sql": "",
    }
    del files["models/sources.sql"]
    columns = "".join(
        f"- name: raw.t{i}\n  columns: {{id: int, at: timestamp, kind: string, amount: double}}\n" for i in range(10)
    )
    files["external_models.yaml"] = columns
    for i in range(count):
        header = f"MODEL (name big.m{i}, kind FULL, tags [t{i % 7}], description 'Model {i}.');\n"
        first = f"big.m{i - 10}" if i >= 10 else f"raw.t{i % 10}"
        second = f"big.m{i - 7}" if i >= 10 else f"raw.t{(i + 1) % 10}"
        files[f"models/f{i % 20}/m{i}.sql"] = header + _SQL.format(
            i=i, money="round(amount / 100.0, 2)", first=first, second=second
        )
    _write(root, files)


def _sql(i: int, first: str, second: str) -> str:
    return _SQL.format(i=i, money="{{ dollars('amount') }}", first=first, second=second)


def _read(i: int, back: int) -> str:
    if i >= 10:
        return f"{{{{ ref('m{i - back}') }}}}"
    return f"{{{{ source('s', 't{(i + 10 - back) % 10}') }}}}"


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
