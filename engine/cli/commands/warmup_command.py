"""`engine warmup`: write Java's classes into an archive, from which later sessions start in about half the time.

Which classes a build needs is found by building: a project of a few models in a folder that goes afterwards.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api import Project
from engine.errors import EngineError, SetupError

if TYPE_CHECKING:
    from engine.spark.archive import Classes

_PROJECT = """name: warmup
target: dev
targets: {dev: {schema: warmup, catalog: {type: sqlite, name: lake, path: .engine/lake}, spark: {master: "local[2]"}}}
"""
_SOURCE = """sources:
  - name: shop
    tables:
      - {name: events, format: json, path: landing, schema: "id int, at timestamp, kind string, amount double",
         on_bad_record: quarantine}
"""
_INPUT = "shop.events: {watermark: at delay 10 minutes, max_files_per_trigger: 1"
_FROM = "from {{ source('shop', 'events') }}"
_MODELS = {
    "events": f"""/*---
streams: {{{_INPUT}, dedup: [id]}}}}
columns: {{id: {{tests: [not_null, unique]}}}}
expectations: [{{name: priced, check: amount > 0, on_fail: quarantine}}]
---*/
select id, at, kind, amount {_FROM}
""",
    "hourly": f"""/*---
streams: {{{_INPUT}}}}}
windows: {{hour: 'tumbling(at, 1 hour)'}}
---*/
select hour.start as hour, kind, count(*) as n, sum(amount) as amount {_FROM} group by hour, kind
""",
    "latest": """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
unique_key: kind
sequence_by: at
delete_when: amount < 0
---*/
select kind, at, amount from {{ source('shop', 'events') }}
""",
    "pairs": """/*---
streams: {events: {watermark: at delay 10 minutes}, shop.events: {watermark: at delay 10 minutes}}
---*/
select a.id, b.at from {{ ref('events') }} a
join {{ source('shop', 'events') }} b on a.id = b.id and b.at between a.at and a.at + interval 1 hour
""",
    "kinds": "select kind, max(amount) as amount from {{ ref('events') }} group by kind\n",
}
_EXIT_SECONDS = 180.0


def warm_up(*, force: bool = False, memory: str = "", background: bool = False) -> Path | None:
    """Build the project in a session that writes the archive when it ends; None: another process writes one.

    `force`: also over a sound one. `memory`: of the drivers it is for; 32 GB or more need another archive.
    `background`: take only what others leave.

    Raises EngineError: `class-archive`, or Java, jars or the session cannot be had.
    """
    from engine.spark import archive, archive_writer
    from engine.spark.jars import jar_paths
    from engine.spark.java import find_java

    if background:
        archive_writer.step_back()
    java = find_java()
    jars = jar_paths(("core",), fetch=True, java=java)
    classes = archive.Classes(java, jars, archive.is_wide(memory))
    try:
        with archive_writer.only_writer(wait=not background) as is_writer:
            if not is_writer:
                return None
            if not force and (existing := archive_writer.sound(classes)):
                return existing
            _build(classes)
    except EngineError as error:
        archive_writer.note_failure(classes, error.diagnostic.message)
        raise
    archive_writer.note_written(classes)
    written = archive.archive_path(classes)
    if written is None:
        raise SetupError(
            "class-archive", "the class archive was removed in the meantime", "Run engine warmup once more."
        )
    return written


def _build(classes: Classes) -> None:
    from engine.lake.catalog import catalog_settings
    from engine.spark.archive_writer import writing
    from engine.spark.session import SessionSettings, open_session

    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        project = Project(folder)
        _write_project(project.root)
        compiled = project.compile()
        target, nodes = compiled.target, compiled.manifest.order
        catalog_settings.prepare(target.catalog)
        settings = SessionSettings(classes.java, project.target_dir / "logs", classes.core, target.master)
        settings = replace(settings, conf=catalog_settings.spark_conf(target.catalog))
        with writing(classes) as archiving:
            session = open_session(replace(settings, archiving=archiving))
            try:
                opened = nullcontext(session.spark)
                project.execute("build", compiled, nodes, opening=lambda *_, **__: opened, threads=2)
            finally:
                session.close(_EXIT_SECONDS)


def _write_project(root: Path) -> None:
    texts = {"project.yml": _PROJECT, "sources/shop.yml": _SOURCE}
    texts |= {f"models/{name}.sql": text for name, text in _MODELS.items()}
    for number in range(3):
        rows = [
            {"id": number, "at": f"2024-05-01T1{number}:00:00Z", "kind": "a", "amount": amount} for amount in (1, -1)
        ]
        texts[f"landing/{number}.json"] = "".join(json.dumps(row) + "\n" for row in rows)
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
