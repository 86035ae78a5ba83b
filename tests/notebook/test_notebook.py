"""The magics in a notebook, run by nbclient with a kernel of its own."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

from tests.lab import Lab, event

ORDERS = "/*---\nstreams: [shop.events]\n---*/\nselect id, kind, at from {{ source('shop', 'events') }}\n"
CELLS = {
    "load": "%load_ext engine",
    "query": "%%model -n 5\nselect kind, count(*) as n from {{ ref('orders') }} group by kind order by kind",
    "frame": "print(type(_).__name__, _.to_dict('records'))",
    "sql": "%%model --sql\nselect id from {{ ref('orders') }}",
    "table": "orders = %table orders -n 2\nprint(len(orders), list(orders.columns), orders['at'].dtype.kind)",
    "mistakes": "%%model\nselect knd from {{ ref('orders') }} where idd = 1",
    "unknown": "%table ordrs",
    "unread": "%table orders -n many",
    "view": "%table named",
}


def texts(cell: nbformat.NotebookNode) -> str:
    found = []
    for output in cell.outputs:
        found.append(output.get("text") or "")
        found += output.get("data", {}).values()
        found += output.get("traceback", [])
        found.append(f"{output.get('ename', '')}: {output.get('evalue', '')}" if output.output_type == "error" else "")
    return "\n".join(found)


@pytest.mark.nightly
@pytest.mark.spark
def test_queries_and_tables_are_data_frames_and_mistakes_have_no_traceback(lab: Lab) -> None:
    lab.model("orders", ORDERS)
    lab.model("named", "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('orders') }}\n")
    lab.land("a", [event(1, kind="x"), event(2, kind="y")])
    lab.land("b", [event(3, kind="y")])
    lab.build()
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS.values()])
    folder = lab.root / "notebooks"
    folder.mkdir()
    NotebookClient(book, timeout=240, allow_errors=True, resources={"metadata": {"path": str(folder)}}).execute()
    said = dict(zip(CELLS, map(texts, book.cells), strict=True))
    assert said["load"] == ""
    assert "<table" in said["query"]
    assert said["frame"].startswith("DataFrame [{'kind': 'x', 'n': 1}, {'kind': 'y', 'n': 2}]")
    assert "orders" in said["sql"]
    assert "ref(" not in said["sql"]
    assert said["table"].startswith("2 ['id', 'kind', 'at'] M")
    assert "[unknown-column]" in said["mistakes"]
    assert "knd" in said["mistakes"]
    assert "idd" in said["mistakes"], "all errors at once"
    assert "model 'ordrs' not found" in said["unknown"]
    assert "Did you mean" in said["unknown"]
    assert "many" in said["unread"]
    assert "view, which stores no rows" in said["view"]
    # The style of the SQL names it.
    assert not any("Traceback" in text for name, text in said.items() if name != "sql")
