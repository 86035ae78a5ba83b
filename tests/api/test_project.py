"""`engine.Project` where nothing needs Spark: what is loaded, compiled, selected and refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import engine
from engine import Project
from engine.api import Selection, one_session
from engine.errors import EngineError, ProjectError, UsageError
from engine.events import Diagnosed, Event, RunResults, Step, StepStarted
from tests.project.small_projects import ORDERS, write
from tests.test_layers import HEAVY

pytestmark = pytest.mark.slow

FILES: dict[str, str | bytes] = {
    "models/orders.sql": f"/*---\ncolumns: {{id: {{tests: [not_null]}}}}\n---*/\n{ORDERS}",
    "models/other.sql": "select id, {{ var('n', 1) }} as n from {{ source('shop', 'customers') }}\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


@pytest.mark.parametrize("statement", ["import engine.api", "from engine import Project"])
def test_the_import_loads_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({*HEAVY, "sqlglot", "jinja2", "yaml", "click", "rich"})


def test_what_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Projekt'"):
        _ = engine.Projekt


def test_a_project_is_compiled_for_its_target_and_variables_anew_each_time(root: Path) -> None:
    project = Project(str(root), vars={"n": 7})
    compiled = project.compile()
    assert (compiled.target.name, compiled.manifest.errors) == ("dev", ())
    assert "7 as n" in compiled.manifest.model("other").sql
    write(root, {"models/third.sql": "select 1 as n\n"})
    assert set(project.compile().manifest.nodes) - set(compiled.manifest.nodes) == {"model.third"}
    (error,) = Project(root, target="prod").compile().manifest.errors
    assert error.code == "unknown-target"


def test_all_errors_of_a_project_are_in_one_exception(root: Path) -> None:
    write(
        root,
        {"models/other.sql": "select m from {{ source('shop', 'customers') }}\n", "models/third.sql": "select (\n"},
    )
    project, events = Project(root), list[Event]()
    assert len(project.compile().manifest.errors) == 2
    for run in (project.build, project.run, project.test):
        with pytest.raises(ProjectError) as raised:
            run(on_event=events.append)
        assert {d.node for d in raised.value.diagnostics} == {"other", "third"}
        assert "models/other.sql:1:8: error: column 'm' not found [unknown-column]" in str(raised.value)
    assert events == []


def test_a_folder_without_a_project_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as raised:
        Project(tmp_path).compile()
    assert raised.value.diagnostic.code == "project-missing"
    assert list(tmp_path.iterdir()) == []


def test_a_selection_is_a_term_several_or_a_record(root: Path) -> None:
    project = Project(root)
    manifest = project.compile().manifest
    chosen = project.select(manifest, Selection(("+orders",), exclude=("test_type:data",))).nodes
    assert chosen == ["source.shop.orders", "model.orders"]
    for select in ("test_type:unit", ["test_type:unit"], Selection(("orders",), exclude=("orders",))):
        assert project.test(select) == RunResults(command="test", target="dev")
    with pytest.raises(UsageError, match="selection-empty"):
        project.build("oders")
    with pytest.raises(UsageError, match="unknown selection method"):
        project.build(["orders", "tagg:x"])


def test_a_term_that_may_match_nothing_is_an_event(root: Path) -> None:
    events: list[Event] = []
    results = Project(root).build(Selection(("oders",), allow_empty=True), on_event=events.append)
    (event,) = events
    assert isinstance(event, Diagnosed)
    assert (event.diagnostic.code, event.diagnostic.is_error) == ("selection-empty", False)
    assert (results.results, results.failed) == ((), False)
    assert not (root / "target").exists()


def test_a_plan_says_what_a_build_would_do_and_a_build_without_input_starts_nothing(root: Path) -> None:
    project = Project(root)
    (root / "landing" / "orders").mkdir(parents=True)
    write(root, {"landing/orders/a.json": '{"id": 1}\n'})
    plan = project.plan("orders")
    assert [(node, action.kind) for node, action in plan.actions.items()] == [
        ("model.orders", "create"), ("test.not_null_orders_id.a0fe0444db", "test"),
    ]  # fmt: skip
    assert (plan.refusals, plan.unchanged) == ((), False)
    refusals = project.plan("other").refusals
    assert [(d.code, d.node) for d in refusals] == [("source-folder-missing", "shop.customers")]
    events: list[Event] = []
    with pytest.raises(EngineError) as raised:
        project.build("other", on_event=events.append)
    assert raised.value.diagnostics == refusals
    assert events == [StepStarted(Step.PLAN)]
    with pytest.raises(UsageError, match="cannot be combined"):
        project.plan(full_refresh=True, reset_checkpoint="now")


def test_options_that_contradict_each_other_are_refused_before_anything_starts(root: Path) -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        Project(root).build(full_refresh=True, reset_checkpoint="now")
    with pytest.raises(UsageError, match="reset-checkpoint: yesterday"):
        Project(root).build(reset_checkpoint="yesterday")
    own = "/*---\nmaterialized: table\npublish: on_tests_pass\n---*/\nselect * from {{ this }}\n"
    write(root, {"models/own.sql": own})
    with pytest.raises(EngineError, match="is not supported yet"):
        Project(root).build("own")


def test_a_run_beside_another_one_is_refused_at_once(root: Path) -> None:
    with one_session.alone(), pytest.raises(EngineError) as raised:
        Project(root).build("orders")
    assert raised.value.diagnostic.code == "spark-session"
