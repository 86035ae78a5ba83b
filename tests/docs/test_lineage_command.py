"""`engine lineage`: trees for people, JSON, Mermaid and dot for others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.compile.nodes.column_facts import Origin
from engine.compile.nodes.manifest import Column
from engine.docs.site import render_graph
from engine.docs.site.column_trace import Columns, ColumnSpot, impact, trace
from tests.docs.build import hourly, manifest, model, source
from tests.project.small_projects import write

ROOT = Path(__file__).parents[2]


def lineage(capsys: pytest.CaptureFixture[str], *arguments: str, root: Path = ROOT) -> tuple[int, str, str]:
    capsys.readouterr()
    code = invoke(["lineage", *arguments, "--project-dir", str(root)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.slow
def test_a_column_as_a_tree(capsys):
    code, out, _ = lineage(capsys, "routes.late_share", "--impact")
    assert code == 0
    assert out == (
        "routes.late_share  decimal(5,3)\n│     = round(avg(case when f.departure_delay >= 60 then 1.0 else 0.0 end), 3)\n└── flights.departure_delay  int\n    │     = data.departure_delay\n    └── ops.departures.data.departure_delay  int\n\nrow-level lineage:\n  routes: flights.destination (join), airports.faa (join), flights.origin (group), flights.destination (group), airports.airport (group)\n  flights: ops.departures.type (filter)\n\nimpact:\n  no longer compile: none\n  stop with them: none\n  values computed from it: none\n  rows it decides on: none\n  tests that would not run: none\n  exposures that read these tables: none\n"
    )


def test_a_column_as_json(capsys):
    code, out, _ = lineage(capsys, "ops.departures.data.origin", "--output", "json")
    assert code == 0
    record = json.loads(out)
    assert record["column"] == "ops.departures.data.origin"
    assert record["impact"]["breaks"] == ["flights"]
    assert {"from": "model.flights#origin", "to": "model.routes#origin", "sql": "f.origin"} in record["edges"]


@pytest.mark.slow
def test_the_graph_in_every_form(capsys):
    texts = {
        output: lineage(capsys, "-s", "+long_delays", "--output", output)[1]
        for output in ("text", "json", "mermaid", "dot")
    }
    assert texts["text"].splitlines() == [
        "ops.departures  (json source)",
        "flights  (streaming table)  <- ops.departures (stream)",
        "long_delays  (streaming table)  <- flights (stream)",
    ]
    assert json.loads(texts["json"])["edges"] == [
        {"from": "source.ops.departures", "to": "model.flights", "stream": True},
        {"from": "model.flights", "to": "model.long_delays", "stream": True},
    ]
    assert texts["mermaid"].splitlines() == [
        "flowchart LR", '  n0[("ops.departures")]', '  n1["flights"]', '  n2["long_delays"]', "  n0 --> n1", "  n1 --> n2",
    ]  # fmt: skip
    assert '  "model.flights" -> "model.long_delays";' in texts["dot"].splitlines()


def test_what_is_not_there_is_a_usage_error(capsys):
    code, _, err = lineage(capsys, "routes.late_shar")
    assert code == 2
    assert "'routes' has no column 'late_shar'" in err
    assert "Did you mean 'late_share'?" in err


def test_a_project_with_mistakes_has_a_lineage(tmp_path, capsys):
    root = write(
        tmp_path, {"models/a.sql": "select id from {{ source('shop', 'orders') }}", "models/b.sql": "select from where"}
    )
    code, out, err = lineage(capsys, "a.id", root=root)
    assert code == 0
    assert "shop.orders.id" in out
    assert "models/b.sql" in err


NASTY = 'x"]--><script>\\ \x1b[31m\u202e|end|"; drop'


def nasty():
    columns = (Column(NASTY, "", NASTY, {}, (Origin("source.ops.events", "at"),), NASTY),)
    return manifest(source(), hourly(columns=columns))


def test_names_and_texts_stay_what_they_are_in_every_form():
    project = nasty()
    columns = Columns(project)
    spot = ColumnSpot("model.hourly", NASTY)
    found, lost = trace(columns, spot), impact(columns, spot)
    drawn = render_graph.path(project, found, lost, columns)
    assert json.loads(json.dumps(render_graph.as_record(drawn)))["edges"][0]["sql"] == NASTY
    mermaid = render_graph.mermaid(drawn)
    assert len(mermaid.splitlines()) == 4
    assert not set("<>\\\x1b\u202e") & set(mermaid.replace("-->", ""))
    dot = render_graph.dot(drawn)
    assert len(dot.splitlines()) == 7
    assert '\\"' in dot
    for text in (dot, *render_graph.tree(project, found)):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_dot_is_read_by_graphviz_rules():
    """Every quote in dot is either a delimiter or escaped."""
    columns = Columns(nasty())
    spot = ColumnSpot("model.hourly", NASTY)
    dot = render_graph.dot(render_graph.path(columns.manifest, trace(columns, spot), impact(columns, spot), columns))
    for line in dot.splitlines():
        bare = line.replace("\\\\", "").replace('\\"', "")
        assert bare.count('"') % 2 == 0


def test_a_view_and_a_broken_reference_are_drawn():
    project = manifest(source(), hourly(), model("v", "model.hourly", "model.gone"))
    drawn = render_graph.graph(project, project.nodes)
    assert [(e.start, e.end, e.solid) for e in drawn.edges] == [
        ("source.ops.events", "model.hourly", True), ("model.hourly", "model.v", False),
    ]  # fmt: skip


@pytest.mark.slow
def test_lineage_imports_no_heavy_library():
    code = (
        "import sys\nfrom engine.cli.main import invoke\n"
        "forms = ['routes.late_share'], ['--output', 'json'], ['--output', 'mermaid']\n"
        "code = max(invoke(['lineage', *form]) for form in forms)\n"
        "heavy = sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'pyiceberg', 'pyarrow', 'py4j', 'rich'})\n"
        "print('HEAVY', heavy)\nsys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "HEAVY []"
