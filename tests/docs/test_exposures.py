"""Exposures on the site, in the graph and in the impact of a column."""

from __future__ import annotations

from engine.docs.site import render_graph
from engine.docs.site.column_trace import Columns, ColumnSpot, impact
from tests.compile.test_exposures import BOARD, one
from tests.docs.build import written
from tests.project.small_projects import clean


def test_an_exposure_is_linked_to_what_it_reads(tmp_path):
    site = written(tmp_path / "site", clean(tmp_path, one(BOARD)))
    ids = [node["id"] for node in site.index["nodes"]]
    board = site.short("exposure.board")
    assert (board["kind"], board["what"], board["summary"], board["tags"]) == (
        "exposure", "dashboard", "Sales board", ["daily"],
    )  # fmt: skip
    place = {node: number for number, node in enumerate(ids)}
    reads = [link[:2] for link in site.index["links"] if link[1] == place["exposure.board"]]
    assert reads == [
        [place["model.b"], place["exposure.board"]],
        [place["source.shop.customers"], place["exposure.board"]],
    ]
    page = site.node("exposure.board")
    assert (page["url"], page["title"]) == ("https://bi.example/board", "Sales board")
    assert page["owner"] == "Sales <sales@shop.example>, slack: #sales"
    assert page["facts"] == [
        ["Maturity", "high"], ["Meta: tool", "superset"], ["Declared in", "models/board.yml:2:11"],
    ]  # fmt: skip


def test_an_exposure_in_mermaid_and_dot(tmp_path):
    manifest = clean(tmp_path, one(BOARD))
    drawn = render_graph.graph(manifest, ["model.b", "exposure.board"])
    assert render_graph.mermaid(drawn) == 'flowchart LR\n  n0["b"]\n  n1{{"board"}}\n  n0 -.-> n1'
    assert '"exposure.board" [label="board", shape=hexagon];' in render_graph.dot(drawn)


def test_the_impact_of_a_column_names_the_exposures_of_the_tables(tmp_path):
    columns = Columns(clean(tmp_path, one(BOARD)))
    assert impact(columns, ColumnSpot("model.a", "id")).exposures == ("exposure.board",)
    # Of b no column comes from it, and c has no readers.
    assert impact(columns, ColumnSpot("model.a", "amount")).exposures == ()
    assert impact(columns, ColumnSpot("model.c", "id")).exposures == ()
    assert impact(columns, ColumnSpot("source.shop.customers", "name")).exposures == ("exposure.board",)
