"""No message of compile shows names that only the engine or its parser knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.errors import Diagnostic
from tests.compile.queries import BATCH, FOREIGN, STREAMS
from tests.compile.test_many_errors import FILES
from tests.compile.test_queries import files
from tests.project.small_projects import compiled
from tests.projects import sources_yaml

pytestmark = pytest.mark.slow

# Placeholders of references, hidden words of the parser, its classes, and Python's own.
INTERNAL = re.compile(
    r"@(?:ref|source|REF|SOURCE|this)\b|\bw1nd0w\b|\b__tmp\d+|\bexp\.|\bsqlglot\b|<class|\bargs\b|\bNoneType\b|Traceback"
)
SOURCES = sources_yaml(
    "s",
    wa={"path": "a", "schema": "id int, v int, ts timestamp, s string"},
    wb={"path": "b", "schema": "id int, v int, ts timestamp, s string"},
)


def texts(found: tuple[Diagnostic, ...]) -> list[str]:
    return [f"{d.code} {d.location} {d.message} | {d.hint}" for d in found]


def streamed(sql: str) -> str:
    names = [name for name in ("wa", "wb") if re.search(rf"\b(?:from|join) {name}\b", sql)]
    header = ", ".join(f"s.{name}: {{watermark: ts delay 10 minutes}}" for name in names)
    text = re.sub(r"\b(from|join) (wa|wb)\b(?! \w+ on)", lambda m: f"{m[1]} {{{{ source('s', '{m[2]}') }}}}", sql)
    return f"/*---\nstreams: {{{header}}}\n---*/\n{text}\n"


@pytest.mark.parametrize("queries", ["batch", "foreign", "streams", "faults"])
def test_no_message_shows_internal_names(queries: str, tmp_path: Path) -> None:
    if queries == "faults":
        made: dict[str, str | bytes] = dict(FILES)
    elif queries == "streams":
        every = [sql for sql in [*STREAMS.refused_texts, *STREAMS.accepted] if " from wa" in sql or " from wb" in sql]
        made = {"sources/s.yml": SOURCES, **{f"models/m{i}.sql": streamed(sql) for i, sql in enumerate(every)}}
    else:
        made = files((BATCH if queries == "batch" else FOREIGN).refused_texts)
    told = texts(compiled(tmp_path, made).manifest.diagnostics)
    assert [text for text in told if INTERNAL.search(text)] == []
    assert len(told) > 20
