"""A project that attacks whoever compiles, lists, documents or draws it."""

from __future__ import annotations

import base64
import codecs
import json
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.projects import sources_yaml

SECRET = "Zq7-hunter2/Mountain+Lake=42x"
# Modules by the names of what the engine imports: a Python that puts the project's folder on its path would run them.
SHADOWED = (
    "yaml",
    "jinja2",
    "sqlglot",
    "click",
    "rich",
    "msgspec",
    "pyiceberg",
    "sitecustomize",
    "usercustomize",
    "json",
)

# Importing its module opens a page in a browser: an event that the audit records.
CALLABLE = "antigravity.geohash"

_PROJECT = """\
name: "../../../outside/trusted"
version: "{{ env_var('ENGINE_SECRET_DB') }}"
target: dev
vars: {plain: 1}
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: "{{ env_var('ENGINE_SECRET_DB') | reverse }}"
    connections:
      main:
        bootstrap_servers: localhost:1
        security: {password: "{{ env_var('ENGINE_SECRET_DB') }}"}
    schema_registries: {main: {url: "http://127.0.0.1:1/{{ env_var('ENGINE_SECRET_DB') }}"}}
    openlineage: {type: file, path: ../outside/lineage.jsonl}
"""

# What a careful attacker writes: nothing in it is a mistake, so that every later stage gets its turn.
_QUIET_PROJECT = """\
name: shop
target: dev
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: dev
"""

_QUIET_SOURCES = sources_yaml("lake", flights={"path": "landing", "schema": "id string"})

# Each in a model of its own, so that an error in one hides nothing that another prints.
_TEMPLATES = (
    "{{ env_var('ENGINE_SECRET_DB') }}",
    "{{ env_var('ENGINE_SECRET_DB', 'x') | reverse }}",
    "{{ [env_var] | string }}",
    "{{ [env_var, var, ref, source, target, this] | pprint }}",
    "{{ {'a': env_var} | tojson }}",
    "{{ '%s' % (env_var,) }}",
    "{{ '{0}'.format(env_var) }}",
    "{{ '{0.__self__}'.format(env_var) }}",
    "{{ '{0.__globals__}'.format(ref) }}",
    "{{ (env_var ~ '') | upper }}",
    "{{ [target] | string | list | join('|') }}",
    "{{ env_var.__self__._env }}",
    "{{ (env_var | attr('__self__')) }}",
    "{{ self | string }}{{ namespace | string }}{{ [loop] | string }}",
    "{{ [star] | string }}{{ [star.body] | string }}",
    "{% set x = namespace(a=env_var) %}{{ [x] | string }}",
    "{{ [env_var] | map('string') | map('reverse') | join }}",
    "{{ [env_var] | map('attr', '_env') | list }}",
    "{% for k in env_var.environ %}{{ k }}{% endfor %}",
    "{{ log([env_var] | string) }}",
    "{{ exceptions.raise_compiler_error([env_var, target] | string) }}",
    "{{ exceptions.warn([env_var] | string) }}",
    "{{ context }}",
    "{% for e in [env_var, var, ref, source, target] %}{{ [e] | string | urlencode }}{% endfor %}",
)

_ATTACKS_IN_MACROS = """\
{% macro leak() %}{{ [env_var] | string }}{{ varargs | string }}{{ [caller] | string }}{% endmacro %}
{% macro overwrite() %}{% do star.load.func(leak) %}{% endmacro %}
"""

_SOURCES = """\
sources:
  - name: "../../outside"
    tables:
      - name: events
        format: jdbc
        options: {url: "jdbc:postgresql://db/x?user=me&password={{ env_var('ENGINE_SECRET_DB') }}"}
      - name: files
        format: json
        path: "s3a://key:{{ env_var('ENGINE_SECRET_DB') }}@bucket/x"
        schema: "id string"
  - name: lake
    tables: [{name: flights, format: json, path: ../outside, schema: "id string"}]
"""


KINDS = ("names and links", "templates", "tables")


def write(root: Path, outside: Path, kind: str) -> None:
    """Write a project below `root` whose links, names and paths aim at `outside`.

    Args:
        root: its folder.
        outside: what it attacks.
        kind: of `KINDS`. Each leaves out what would end a command before the attacks of the next one: templates are
            rendered and artifacts written where links and names are right, tables are read where templates are.
    """
    quiet = kind != "names and links"
    for folder in ("models", "macros", "sources", "tests"):
        (root / folder).mkdir(parents=True)
    (root / "project.yml").write_text(_QUIET_PROJECT if quiet else _PROJECT)
    (root / "sources" / "all.yml").write_text(_QUIET_SOURCES if quiet else _SOURCES)
    for number, text in enumerate(_TEMPLATES if kind != "tables" else ()):
        sql = text.replace("'", '"')
        (root / "models" / f"m{number}.sql").write_text(f"select 1 as a, '{sql}' as b\n")
        (root / "models" / f"c{number}.sql").write_text(f"select 1 as a -- {text}\n")
        (root / "models" / f"d{number}.sql").write_text(
            f"/*---\ndescription: {json.dumps(text)}\n---*/\nselect 1 as a\n"
        )
    (root / "models" / "fine.sql").write_text("select 1 as a\n")
    for name in ("calls", "over_http", "users"):
        (root / "models" / f"{name}.sql").write_text("select 1 as a\n")
    if kind != "tables":
        (root / "macros" / "leak.sql").write_text(_ATTACKS_IN_MACROS)
        (root / "models" / "leak.sql").write_text("select '{{ leak(env_var) }}' as a\n")
        (root / "models" / "overwrite.sql").write_text("select '{{ overwrite() }}' as a\n")
    for name in SHADOWED:
        (root / f"{name}.py").write_text(f"raise SystemExit('{name} of the project was imported')\n")
    (root / "conftest.py").write_text("raise SystemExit('conftest of the project was imported')\n")
    (root / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    py-io-impl: {CALLABLE}\n    token: x\n")
    _write_catalog(root, outside)
    if not quiet:
        _write_links(root, outside)


def _write_catalog(root: Path, outside: Path) -> None:
    """A catalog whose tables lie elsewhere, or name code in a property."""
    lake = root / ".engine" / "lake"
    (lake / "warehouse").mkdir(parents=True)
    within, beyond = lake / "warehouse" / "fine.metadata.json", outside / "calls.metadata.json"
    within.write_text(json.dumps(_metadata(lake / "warehouse" / "fine")))
    beyond.write_text(json.dumps(_metadata(outside / "calls")))
    locations = {
        "fine": within.as_uri(),
        "calls": beyond.as_uri(),
        "over_http": "http://127.0.0.1:1/x",
        "users": "/etc/passwd",
    }
    with sqlite3.connect(lake / "catalog.db") as db:
        db.execute(
            "create table iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, "
            "previous_metadata_location, iceberg_type)"
        )
        for table, location in locations.items():
            db.execute("insert into iceberg_tables values ('lake', 'dev', ?, ?, null, 'TABLE')", (table, location))
    db.close()


def _metadata(location: Path) -> dict[str, Any]:
    """The metadata of an empty table whose properties name a callable as its reader of files."""
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}]}
    return {
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": location.as_uri(),
        "last-sequence-number": 0, "last-updated-ms": 1, "last-column-id": 1, "current-schema-id": 0,
        "schemas": [schema], "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999, "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"py-io-impl": CALLABLE, "py-location-provider-impl": CALLABLE}, "snapshots": [],
    }  # fmt: skip


def _write_links(root: Path, outside: Path) -> None:
    target = root / "target"
    target.mkdir()
    for name in ("compiled", "docs", "logs", ".cache", "traces", "run"):
        (target / name).symlink_to(outside / "precious")
    for name in ("manifest.json", "run_results.json", "catalog.json", "sources.json", "openlineage.jsonl", "spark.log"):
        (target / name).symlink_to(outside / "precious" / "file.txt")
    (root / "models" / "linked.sql").symlink_to(outside / "precious" / "file.txt")
    (root / "macros" / "linked").symlink_to(outside / "precious")
    (root / "sources" / "linked.yml").symlink_to(outside / "precious" / "file.txt")
    (root / "models" / "loop").symlink_to(root / "models")


def disguises(secret: str) -> dict[str, str]:
    """The forms in which a text may leave a process, by name."""
    plain = secret.encode()
    forms = {
        "plain": secret, "reversed": secret[::-1], "upper": secret.upper(), "lower": secret.lower(),
        "url": quote(secret, safe=""), "url of all": "".join(f"%{byte:02X}" for byte in plain), "hex": plain.hex(),
        "rot13": codecs.encode(secret, "rot13"), "spaced": " ".join(secret), "in bars": "|".join(secret),
        "json": json.dumps(secret)[1:-1], "listed": repr(list(secret))[1:-1], "swapped": secret.swapcase(),
        "title": secret.title(), "capital": secret.capitalize(),
    }  # fmt: skip
    for shift in range(3):
        # What base64 gives of the secret inside other text, without the characters that its neighbours decide.
        text = base64.b64encode(b"." * shift + plain).decode()
        forms[f"base64 at {shift}"] = text[4 if shift else 0 : -4]
    # A part of it is as bad as half of it.
    forms |= {"first half": secret[: len(secret) // 2], "second half": secret[len(secret) // 2 :]}
    return forms
