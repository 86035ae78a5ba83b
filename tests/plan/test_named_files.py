"""Whether an edit of a file that a project names makes what was built from it due: its content counts, not its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.schema.all_blocks import BLOCKS
from engine.schema.config_key import ValueForm
from tests.project.small_projects import clean
from tests.projects import sources_yaml

KAFKA = sources_yaml(
    events={
        "format": "kafka",
        "connection": "kafka",
        "topic": "events",
        "value": {"format": "avro", "schema_file": "events.avsc"},
    }
)
PROJECT = """
name: lab
targets:
  dev: {schema: s, connections: {kafka: {bootstrap_servers: 'localhost:1'}}}
"""


def avsc(default: str = "x", alias: str = "k", doc: str = "", order: bool = False) -> str:
    fields = [
        {"name": "id", "type": "int"},
        {"name": "kind", "type": "string", "default": default, "aliases": [alias], **({"doc": doc} if doc else {})},
    ]
    return json.dumps({"type": "record", "name": "e", "fields": fields[::-1] if order else fields})


def fingerprint(root: Path, files: dict[str, str | bytes]) -> str:
    return clean(root, {"project.yml": PROJECT, "sources/shop.yml": KAFKA, **files}).model("m").fingerprint


MODEL = "/*---\nstreams: [shop.events]\n---*/\nselect * from {{ source('shop', 'events') }}"
MACRO = {"models/m.sql": "/*---\nmaterialized: table\n---*/\nselect {{ one() }} as id"}
# By the key that names it: files of a project before and after, and whether it makes the model due.
FILES: dict[str, tuple[dict[str, str | bytes], dict[str, str | bytes], bool]] = {
    "paths.models": ({"models/m.sql": MODEL}, {"models/m.sql": MODEL.replace("select *", "select id")}, True),
    "paths.macros": (
        {**MACRO, "macros/a.sql": "{% macro one() %}1{% endmacro %}"},
        {**MACRO, "macros/a.sql": "{% macro one() %}2{% endmacro %}"}, True),
    "paths.macros, another macro": (
        {**MACRO, "macros/a.sql": "{% macro one() %}1{% endmacro %}"},
        {**MACRO, "macros/a.sql": "{% macro one() %}1{% endmacro %}{% macro two() %}2{% endmacro %}"}, False),
    "paths.packages": (
        {"models/m.sql": MACRO["models/m.sql"].replace("one()", "p.one()"), "packages/p/macros/one.sql":  # type: ignore[union-attr]
         "{% macro one() %}1{% endmacro %}"},
        {"models/m.sql": MACRO["models/m.sql"].replace("one()", "p.one()"), "packages/p/macros/one.sql":  # type: ignore[union-attr]
         "{% macro one() %}2{% endmacro %}"}, True),
    "paths.sources": ({"models/m.sql": MODEL}, {"models/m.sql": MODEL, "sources/shop.yml": KAFKA.replace("topic: events", "topic: more")}, True),
    "value.schema_file": ({"models/m.sql": MODEL}, {"models/m.sql": MODEL, "sources/events.avsc": avsc(default="y")}, True),
    "value.schema_file, an alias": ({"models/m.sql": MODEL}, {"models/m.sql": MODEL, "sources/events.avsc": avsc(alias="c")}, True),
    "value.schema_file, another order": ({"models/m.sql": MODEL}, {"models/m.sql": MODEL, "sources/events.avsc": avsc(order=True)}, True),
    "value.schema_file, spaces": (
        {"models/m.sql": MODEL}, {"models/m.sql": MODEL, "sources/events.avsc": json.dumps(json.loads(avsc()), indent=4)}, False),
}  # fmt: skip
# Files of data, which are listed with size and time (`tests/plan/test_actions.py`), and those that no row comes from.
DATA = {"files.path", "spark_reader.path"}
NO_ROWS = {"paths.tests", "target.state", "catalog.path", "openlineage.path", "files.archive_path"}


def test_every_key_that_names_files_is_decided() -> None:
    keys = {f"{b.name}.{k.name}" for b in BLOCKS.values() for k in b.keys if k.form is ValueForm.PATH} | {
        "value.schema_file"
    }
    assert keys == {what.partition(",")[0] for what in FILES} | DATA | NO_ROWS


@pytest.mark.parametrize("what", FILES)
def test_the_content_of_a_named_file_counts(tmp_path: Path, what: str) -> None:
    before, after, due = FILES[what]
    found = [fingerprint(tmp_path, {"sources/events.avsc": avsc(), **files}) for files in (before, after)]
    assert (found[0] != found[1]) is due


def test_the_header_of_a_csv_file_is_its_content(tmp_path: Path) -> None:
    """A file is known by size and time; its columns are declared, and its header is compared when it is read."""
    from engine.sources import listing
    from engine.sources.listing import Listed

    sizes = [Listed("file:/landing/a.csv", size, modified) for size, modified in ((10, 1), (10, 2), (11, 1))]
    assert len({json.dumps(listing.position_of([one])) for one in sizes}) == 3
