"""The code of docs/python-api.md runs as it is written; that of an orchestrator where it is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import pytest

from tests.lab import REPOSITORY, Lab

pytestmark = pytest.mark.spark

PAGE = REPOSITORY / "docs" / "python-api.md"
ORCHESTRATORS = ("airflow", "dagster")


def test_the_code_of_the_page(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.model("orders", "/*---\nstreams: [shop.events]\n---*/\nselect id, amount from {{ source('shop', 'events') }}\n")
    lab.model(
        "order_sums",
        "/*---\nmaterialized: table\n---*/\nselect sum(amount) as total, {{ var('least', 1) }} as least from {{ ref('orders') }}\n",
    )
    lab.land("a", [{"id": 1, "amount": 2.0}])
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    needed = [name for block in blocks for name in ORCHESTRATORS if f"from {name}" in block]
    assert needed == list(ORCHESTRATORS)
    for block in blocks:
        code = compile(block.replace("/srv/shop", str(lab.root)), str(PAGE), "exec")
        if all(find_spec(name) for name in ORCHESTRATORS if f"from {name}" in block):
            exec(code, names)
    assert not names["results"].failed
    assert lab.rows("order_sums") == [{"total": 2.0, "least": 2}]
    assert names["rows"] == {"model.orders": 0}

    lab.land("b", [{"id": 2, "amount": 3.0}])
    assert names["build_tables"]("+order_sums") == {"model.orders": 1, "model.order_sums": 1}
    assert names["tables"]() == {"orders": [], "order_sums": ["orders"]}
    lines: list[str] = []
    assert dict(names["built"](lines.append))["orders"] == {"rows": 0, "late": 0}
    assert [line.partition(" in ")[0] for line in lines][:1] == ["model.orders: unchanged"]
    assert lab.rows("order_sums") == [{"total": 5.0, "least": 1}]

    lab.model("order_sums", "select 1 / (n - n) as total from (select count(*) as n from {{ ref('orders') }})\n")
    with pytest.raises(RuntimeError, match=r"models/order_sums\.sql.*error: "):
        names["build_tables"]("order_sums")
    assert capsys.readouterr().out == ""
