"""Spark's pipes (`FROM t |> ..`): what compile finds of them is what it finds of the same query with SELECT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlglot.errors import ParseError

from engine.compile import Model
from engine.compile.sql.dialect import parse_text
from tests.fixtures import read_rows
from tests.project.small_projects import clean, model
from tests.projects import sources_yaml

FIXTURE = Path(__file__).parent / "fixtures/pipes.txt"
SOURCES = sources_yaml(events={"path": "events", "schema": "id bigint, at timestamp, kind string, amount double"})
STREAM = "streams: {shop.events: {watermark: at delay 10 minutes}}"
HOUR = f"{STREAM}\nwindows: {{hour: 'tumbling(at, 1 hour)'}}"
SAME = read_rows(FIXTURE, "same", 3)
# A pipe, and the query that its tree is of.
WRITTEN_OUT = read_rows(FIXTURE, "written_out", 2)


@pytest.mark.parametrize(("pipe", "select"), WRITTEN_OUT)
def test_steps_are_applied_in_their_order(pipe: str, select: str) -> None:
    piped, written = (parse_text(text).sql("spark", identify=True) for text in (pipe, select))
    assert piped == written


@pytest.mark.parametrize(
    ("pipe", "word"),
    [
        ("from t |> keep a", "keep"),
        ("from t |> set a", "a"),
        ("from t |> as u, v", "as"),
        ("from t |> drop b.c", "."),
        ("from t |> aggregate", "aggregate"),
        ("from t |> aggregate group by all", "aggregate"),
        ("from t |> aggregate group by 1", "1"),
        ("(select a from t) |> aggregate group by 1", "1"),
        ("select a + 1 from t |> aggregate group by 1", "1"),
        ("select a from t |> aggregate group by 2", "2"),
    ],
)
def test_what_is_no_step_of_spark(pipe: str, word: str) -> None:
    with pytest.raises(ParseError, match=f"invalid step of a pipe: {word}"):
        parse_text(pipe)


@pytest.mark.parametrize(("header", "select", "pipe"), SAME)
def test_columns_lineage_and_state_of_a_pipe(tmp_path: Path, header: str, select: str, pipe: str) -> None:
    files: dict[str, Any] = {"project.yml": "name: lab\n", "sources/shop.yml": SOURCES}
    for name, sql in (("classic", select), ("piped", pipe)):
        files |= model(header, sql.replace("T", "{{ source('shop', 'events') }}"), name)
    manifest = clean(tmp_path, files)
    assert _found(manifest.model("piped")) == _found(manifest.model("classic"))


def _found(one: Model) -> tuple[Any, ...]:
    columns = [(column.name, column.type, set(column.origins)) for column in one.columns]
    rows = {(origin.node, origin.column) for origin in one.indirect}
    return columns, rows, one.stateful, one.write.output_mode, one.write.unique_key
