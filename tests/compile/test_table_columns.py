"""What readers see of a table whose columns are not those of its query."""

from __future__ import annotations

import pytest

from engine.compile import Model
from tests.project.small_projects import clean, compiled, only

PAST = """/*---
streams: [shop.orders]
unique_key: id
sequence_by: ts
{more}
---*/
select id, ts, amount, item.name as op from {{{{ source('shop', 'orders') }}}}
"""


def past(more: str) -> str:
    return PAST.format(more=more)


def columns(model: Model) -> list[tuple[str, str | None, str]]:
    return [(column.name, column.type, column.sql) for column in model.columns]


def test_the_columns_of_a_history_are_read_and_lead_to_their_origin(tmp_path):
    files = {
        "models/past.sql": past("history: true\nexclude: [op]\ndelete_when: op = 'd'\ncolumns: {valid_to: The end.}"),
        "models/now.sql": "select id, amount, valid_from, valid_to from {{ ref('past') }} where is_current",
    }
    manifest = clean(tmp_path, files)
    model = manifest.nodes["model.past"]
    assert isinstance(model, Model)
    assert columns(model) == [
        ("id", "string", "id"),
        ("ts", "timestamp", "ts"),
        ("amount", "double", "amount"),
        ("valid_from", "timestamp", "ts"),
        ("valid_to", "timestamp", "lead(ts) over (partition by id order by ts)"),
        ("is_current", "boolean", "valid_to is null"),
    ]
    ends = model.columns[4]
    assert ([(o.node, o.column) for o in ends.origins], ends.description) == (
        [("source.shop.orders", "ts")], "The end."
    )  # fmt: skip
    assert [(o.column, o.kind) for o in model.indirect] == [("ts", "sort"), ("item.name", "filter")]
    now = manifest.nodes["model.now"]
    assert isinstance(now, Model)
    assert [(name, type_) for name, type_, _ in columns(now)][2:] == [
        ("valid_from", "timestamp"), ("valid_to", "timestamp"),
    ]  # fmt: skip


@pytest.mark.parametrize(("more", "name"), [("exclude: [op]", "op"), ("", "valid_from")])
def test_a_column_that_the_table_does_not_have_cannot_be_read(tmp_path, more, name):
    files = {"models/past.sql": past(more), "models/now.sql": f"select {name} from {{{{ ref('past') }}}}"}
    found = only(compiled(tmp_path, files).manifest.diagnostics)
    assert (found.code, found.message) == ("unknown-column", f"column '{name}' not found")


def test_settings_name_the_columns_of_the_query(tmp_path):
    star = past("exclude: [op]\ndelete_when: op = 'd'").replace(
        "select id", "select * except (amount) from (select id"
    ) + ")"  # fmt: skip
    clean(tmp_path, {"models/past.sql": star})
