"""Personal data is followed from its mark to every column that is computed from it."""

from __future__ import annotations

from pathlib import Path

from engine.compile import compile_project
from engine.compile.nodes.personal_data import personal_columns
from engine.project import load_project
from tests.lab import Lab
from tests.projects import sources_yaml

SOURCES = sources_yaml(
    "app",
    users={
        "path": "landing",
        "schema": "id bigint, email string, place struct<street string, city string>, amount decimal(8,2), at timestamp",
        "columns": {"email": {"meta": {"pii": True}}},
    },
)
USERS = """/*---
materialized: table
columns:
  size: {meta: {pii: false}}
  place.street: {meta: {pii: yes}}
---*/
select id, email, lower(email) as login, length(email) as size, place, place.city as city, amount, at
from {{ source('app', 'users') }}
"""
LATER = "/*---\nmaterialized: table\n---*/\nselect id, login as name, city, count(*) as n from {{ ref('users') }} group by all"
PRIVATE = "/*---\nmaterialized: table\nmeta: {pii: true}\n---*/\nselect 1 as id"


def test_personal_data_is_followed_through_the_lineage(tmp_path: Path) -> None:
    lab = Lab(tmp_path, None, None, schema="app")
    lab.write("sources/app.yml", SOURCES)
    for name, text in (("users", USERS), ("later", LATER), ("private", PRIVATE)):
        lab.model(name, text)
    found = personal_columns(compile_project(load_project(lab.root)).manifest)
    assert found["source.app.users"] == {"email"}
    assert found["model.users"] == {"email", "login", "place.street"}
    assert found["model.later"] == {"name"}
    assert found["model.private"] == {"id"}
