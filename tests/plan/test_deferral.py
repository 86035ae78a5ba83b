"""`--defer`: models that are not selected are read from another target's tables, as files and the catalog tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.api import Project, Selection
from engine.errors import ProjectError, UsageError
from engine.plan import changed_query, source_changes
from engine.plan.comparison import Change, StreamsRead
from engine.plan.deployed.checkpoint_facts import in_text
from engine.plan.deployed.deployed_facts import LastWriter
from tests.lab import EVENTS
from tests.plan.lake_by_hand import table
from tests.plan.test_plan_command import alone, files, run, write

pytestmark = pytest.mark.slow

PROJECT = """
name: shop
target: dev
targets:
  dev: {schema: "dev_{{ env_var('WHO', 'ann') }}"}
  prod: {schema: shop}
  far: {schema: shop, catalog: {type: sqlite, name: other, path: .engine/other}}
"""
RAW = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind from {{ source('shop', 'events') }}"
KINDS = "select kind, max(id) as id from {{ ref('raw') }} group by kind"
SHOWN = "/*---\nmaterialized: view\n---*/\nselect kind from {{ ref('kinds') }}"
JOINED = (
    "/*---\nstreams: [raw]\ncolumns: {kind: {tests: [{relationships: {to: kinds, field: kind}}]}}\n---*/\n"
    "select raw.id, raw.kind, kinds.id as first from {{ ref('raw') }} join {{ ref('kinds') }} on raw.kind = kinds.kind"
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project whose target prod was built, with its manifest.json in prod/; there is no table of dev."""
    write(tmp_path, "project.yml", PROJECT)
    write(tmp_path, "sources/shop.yml", EVENTS)
    for name, text in {"raw": RAW, "kinds": KINDS, "shown": SHOWN, "joined": JOINED}.items():
        write(tmp_path, f"models/{name}.sql", text)
    for target in ("prod", "far"):
        write(tmp_path, f"{target}/manifest.json", _manifest(tmp_path, target))
    built(tmp_path, "prod", "raw", "kinds")
    return tmp_path


def _manifest(root: Path, target: str) -> str:
    from engine.compile.artifacts.write_artifacts import manifest_text

    return manifest_text(Project(root, target=target).compile().manifest)


def built(root: Path, target: str, *names: str) -> None:
    for name in names:
        table(root / ".engine/lake", Project(root, target=target).compile().manifest.model(name))


def record(root: Path, capsys: pytest.CaptureFixture[str], name: str, *options: str) -> dict[str, object]:
    code, out, err = run(root, capsys, "ls", "-s", name, "--output", "json", *options)
    assert code == 0, err
    return json.loads(out.splitlines()[0])


def test_what_is_neither_selected_nor_built_is_read_from_the_other_target(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    defer = ("--defer", "--state", str(shop / "prod"))
    both = {"raw": "lake.shop.raw", "kinds": "lake.shop.kinds"}
    assert record(shop, capsys, "joined", *defer)["deferred"] == both
    assert "deferred" not in record(shop, capsys, "joined", *defer, "--no-defer")
    assert record(shop, capsys, "raw joined", *defer).get("deferred") is None  # the first is raw itself
    code, out, _ = run(shop, capsys, "compile", "-s", "joined", *defer)
    assert code == 0
    assert "Deferred: kinds (lake.shop.kinds), raw (lake.shop.raw)" in out
    assert "join `lake`.`shop`.`kinds` on" in out
    compiled = (shop / "target/compiled/shop/models/joined.sql").read_text()
    assert "`lake`.`shop`.`kinds`" in compiled
    # Tests read it there, too; a model has its own name, for whoever compares the project with this manifest.
    nodes = json.loads((shop / "target/manifest.json").read_text())["nodes"]
    (test,) = [node for name, node in nodes.items() if name.startswith("test.")]
    assert "`lake`.`shop`.`kinds`" in test["compiled_code"]
    assert "`lake`.`dev_ann`.`joined`" in test["compiled_code"]
    assert nodes["model.shop.kinds"]["schema"] == "dev_ann"
    assert nodes["model.shop.kinds"]["defer_relation"]["relation_name"] == "`lake`.`shop`.`kinds`"


def test_what_exists_in_the_target_is_read_there_unless_the_state_is_favoured(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built(shop, "dev", "kinds")
    defer = ("--defer", "--state", str(shop / "prod"))
    assert record(shop, capsys, "joined", *defer)["deferred"] == {"raw": "lake.shop.raw"}
    favoured = record(shop, capsys, "joined", *defer, "--favor-state")["deferred"]
    assert favoured == {"raw": "lake.shop.raw", "kinds": "lake.shop.kinds"}
    # Its own table is no orphan then.
    assert run(shop, capsys, "ls", "--orphans")[1] == ""


def test_the_plan_shows_it_without_java_and_writes_nothing(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(shop)
    ended = alone(shop, "plan", "-s", "joined", "--defer", "--state", str(shop / "prod"))
    lines = ended.stdout.splitlines()
    assert lines[0] == "create     streaming_table lake.dev_ann.joined"
    assert {line.strip() for line in lines[1:4]} == {
        "reads 1 new snapshot of raw", "raw is deferred to lake.shop.raw", "kinds is deferred to lake.shop.kinds"
    }  # fmt: skip
    assert not set(lines[-1].split()) & {"pyspark", "py4j", "pyarrow", "pyiceberg"}
    assert files(shop) == before
    code, out, _ = run(
        shop, capsys, "plan", "-s", "joined", "--defer", "--state", str(shop / "prod"), "--output", "json"
    )
    assert code == 0
    assert json.loads(out.splitlines()[0])["deferred"] == {"raw": "lake.shop.raw", "kinds": "lake.shop.kinds"}


def test_tables_out_of_reach_are_rejected_by_name(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(shop, capsys, "plan", "-s", "joined", "--defer", "--state", str(shop / "far"))
    assert (code, err.count("[defer-catalog]")) == (1, 2)
    assert "'kinds' would be read from other.shop.kinds, but the catalog of target 'dev' is 'lake'" in err
    # Compiled for prod, and not built there.
    code, _, err = run(shop, capsys, "plan", "-s", "shown kinds", "--defer", "--state", str(shop / "prod"))
    assert (code, err) == (0, "")
    write(shop, "models/late.sql", "select kind from {{ ref('shown') }}")
    code, _, err = run(shop, capsys, "plan", "-s", "late", "--defer", "--state", str(shop / "prod"))
    assert (code, err.count("error:")) == (1, 1)
    assert "models/shown.sql" in err
    assert "'shown' would be read from lake.shop.shown, which does not exist [defer-missing]" in err


def test_the_state_to_compare_with_may_be_another(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(shop, "dev/manifest.json", _manifest(shop, "dev"))
    write(shop, "models/kinds.sql", KINDS + " having count(*) > 1")
    options = ("--state", str(shop / "dev"), "--defer", "--defer-state", str(shop / "prod"), "--output", "json")
    code, out, _ = run(shop, capsys, "ls", "-s", "state:modified", *options)
    assert code == 0
    assert [(line["name"], line["deferred"]) for line in map(json.loads, out.splitlines())] == [
        ("kinds", {"raw": "lake.shop.raw"})
    ]


def test_targets_are_compared_without_the_names_of_their_tables(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Models, tests and hooks that name tables, a stateful model among them; a schema of the model's own counts."""
    hook = '{{ config(materialized="table", post_hook="alter table {{ this }} set tblproperties (a=1)") }}'
    write(shop, "models/hooked.sql", hook + "select kind from {{ ref('kinds') }}")
    production = _manifest(shop, "prod")
    write(shop, "old/manifest.json", production)
    assert "`lake`.`shop`.`kinds`" in production
    options = ("--state", str(shop / "old"), "--output", "name", "-q")

    def modified(kind: str = "") -> list[str]:
        code, out, _ = run(shop, capsys, "ls", "-s", f"state:modified{kind}", *options)
        assert code == 0
        return out.split()

    assert modified() == []
    write(shop, "models/hooked.sql", hook + "select upper(kind) as kind from {{ ref('kinds') }}")
    assert (modified(), modified(".body"), modified(".relation")) == (["hooked"], ["hooked"], [])
    write(shop, "models/hooked.sql", hook.replace("a=1", "a=2") + "select kind from {{ ref('kinds') }}")
    assert (modified(), modified(".config")) == (["hooked"], ["hooked"])
    write(
        shop,
        "models/hooked.sql",
        hook.replace('table"', "table\", schema='own'") + "select kind from {{ ref('kinds') }}",
    )
    assert (modified(), modified(".relation")) == (["hooked"], ["hooked"])


def test_options_that_need_another(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(shop, capsys, "plan", "--defer")
    assert (code, "--defer needs --state" in err) == (2, True)
    code, _, err = run(shop, capsys, "plan", "--favor-state", "--state", str(shop / "prod"))
    assert (code, "--favor-state needs --defer" in err) == (2, True)
    code, _, err = run(shop, capsys, "plan", "--defer", "--state", str(shop / "models"))
    assert (code, "there is no readable manifest.json" in err) == (2, True)


def test_flags_and_the_environment_are_defaults(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shop, "project.yml", PROJECT + "flags: {defer: true, favor_state: true}\n")
    built(shop, "dev", "kinds")
    state = ("--state", str(shop / "prod"))
    assert set(record(shop, capsys, "joined", *state)["deferred"]) == {"raw", "kinds"}
    assert set(record(shop, capsys, "joined", *state, "--no-favor-state")["deferred"]) == {"raw"}
    assert "deferred" not in record(shop, capsys, "joined")
    write(shop, "project.yml", PROJECT)
    monkeypatch.setenv("ENGINE_DEFER", "1")
    monkeypatch.setenv("ENGINE_STATE", str(shop / "prod"))
    assert set(record(shop, capsys, "joined")["deferred"]) == {"raw"}


def test_a_table_that_is_built_here_later_is_another_source(shop: Path) -> None:
    project = Project(shop)
    plain = project.compile()
    defer = Selection(state=shop / "prod", defer=True)
    away = project.defer(plain, ["model.joined", "model.kinds"], defer)
    model, local = (one.manifest.model("joined") for one in (away, plain))
    place = plain.target.place(shop)
    before, now = (in_text(one.manifest, one.manifest.model("joined"), place) for one in (away, plain))
    assert model.fingerprint != local.fingerprint
    difference = "its streams changed from raw (lake.shop.raw) to raw (lake.dev_ann.raw)"
    assert source_changes.difference(before, now) == difference
    assert source_changes.difference(before, before) is None
    other = source_changes.elsewhere(before, now)
    hint = source_changes.rejection("lake.dev_ann.joined", "joined", difference, (), other).hint
    assert hint is not None
    assert hint.startswith("Build with --clone or --defer again, which read lake.shop.raw; or undo the change")
    assert source_changes.elsewhere(before, before) == ""
    writer = LastWriter(model.fingerprint, model.facts)
    read = StreamsRead.compare(local, writer, None)
    assert changed_query.changed_query(plain.manifest, local, writer, read).change is Change.SOURCE_CHANGED
    # What is read in full may move without a refusal, and not without a word.
    kinds, here = (project.defer(plain, ["model.kinds"], defer).manifest.model("kinds"), plain.manifest.model("kinds"))
    moved = changed_query.changed_query(
        plain.manifest, here, LastWriter(kinds.fingerprint, kinds.facts), StreamsRead((), (), None)
    )
    assert moved.change is Change.REBUILT
    assert moved.reasons == ("'raw' was deferred to lake.shop.raw and is read in this target now",)


def test_a_table_of_another_target_is_never_published_or_locked(shop: Path) -> None:
    from engine.plan.actions.state_checks import decided_by_tests

    text = KINDS.replace(
        "select", "/*---\npublish: on_tests_pass\ncolumns: {kind: {tests: [not_null]}}\n---*/\nselect", 1
    )
    write(shop, "models/kinds.sql", text)
    project = Project(shop)
    plain = project.compile()
    nodes = ["test.not_null_kinds_kind.5e2b869e03"]
    assert [model.name for model in decided_by_tests(plain.manifest, nodes)] == ["kinds"]
    away = project.defer(plain, nodes, Selection(state=shop / "prod", defer=True))
    assert decided_by_tests(away.manifest, nodes) == []
    assert "`lake`.`shop`.`kinds`" in away.manifest.nodes[nodes[0]].sql


def test_a_program_gets_the_same(shop: Path) -> None:
    plan = Project(shop).plan(Selection(("joined",), state=shop / "prod", defer=True))
    assert not plan.refusals
    with pytest.raises(UsageError, match="--defer needs --state"):
        Project(shop).plan(Selection(("joined",), defer=True))
    with pytest.raises(ProjectError, match=r"lake\.shop|other\.shop"):
        Project(shop).plan(Selection(("joined",), state=shop / "far", defer=True))
