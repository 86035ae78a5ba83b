"""`engine plan --no-catalog --state DIR`: what an edit would do, from two manifests, with nothing else to be asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import invoke
from tests.lab import EVENTS
from tests.plan.test_plan import PLAIN, WINDOWED, header
from tests.plan.test_plan_command import run, write

pytestmark = pytest.mark.slow

# Nobody listens there.
PROJECT = """
name: shop
target: prod
targets:
  prod:
    catalog: {type: rest, name: lake, uri: "http://127.0.0.1:9", warehouse: w}
    schema: s
"""
MODELS = {
    "hours": header() + WINDOWED,
    "plain": PLAIN,
    "daily": "select count(*) as n from {{ ref('hours') }}",
    "ids": "select id as number from {{ ref('plain') }}",
    "word": "/*---\nmaterialized: ephemeral\n---*/\nselect 1 as a",
    "copied": "/*---\nstreams: [plain]\n---*/\nselect id from {{ ref('plain') }}",
    "seen": "/*---\nmaterialized: view\n---*/\nselect a from {{ ref('word') }}",
}


@pytest.fixture
def deployed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A project, and in `before/` what was kept of its last deployment; its files and its catalog are elsewhere."""
    root = tmp_path / "project"
    write(root, "project.yml", PROJECT)
    write(root, "sources/shop.yml", EVENTS)
    for name, sql in MODELS.items():
        write(root, f"models/{name}.sql", sql)
    assert invoke(["compile", "--project-dir", str(root)]) == 0
    shutil.copytree(root / "target", root / "before")
    capsys.readouterr()
    return root


def planned(
    root: Path, capsys: pytest.CaptureFixture[str], *more: str, select: tuple[str, ...] = ()
) -> tuple[int, dict[str, dict[str, Any]]]:
    chosen = ("-s", *select) if select else ()
    code, out, _ = run(
        root, capsys, "plan", "--no-catalog", "--state", str(root / "before"), "--output", "json", *chosen, *more
    )
    return code, {record["name"]: record for record in map(json.loads, out.splitlines())}


def test_nothing_was_edited(deployed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = planned(deployed, capsys)
    assert code == 0
    assert {name: record["unchanged"] for name, record in found.items()} == dict.fromkeys(
        MODELS.keys() - {"word"}, True
    )


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (("plain", "select id", "select id + 1 as id"),
         {"plain": ("resume", False), "ids": ("rebuild", None), "copied": ("resume", True)}),
        (("plain", "select id", "/* as it came */ select   id"), {"plain": ("resume", True), "ids": ("rebuild", True)}),
        (("ids", "id as number", "id as n"), {"plain": ("resume", True), "ids": ("rebuild", False)}),
        (("word", "1 as a", "2 as a"), {"seen": ("rebuild", False)}),
    ],
    ids=["column", "spelling", "batch", "ephemeral"],
)  # fmt: skip
def test_an_edit(
    deployed: Path,
    edited: tuple[str, str, str],
    expected: dict[str, tuple[str, bool | None]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, old, new = edited
    write(deployed, f"models/{name}.sql", MODELS[name].replace(old, new, 1))
    code, found = planned(deployed, capsys, select=tuple(expected))
    assert code == 0
    assert {one: (record["action"], record["unchanged"]) for one, record in found.items()} == expected


def test_an_edit_that_a_checkpoint_cannot_follow_is_rejected(
    deployed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(deployed, "models/hours.sql", header(size="2 hours") + WINDOWED)
    code, out, err = run(deployed, capsys, "plan", "--no-catalog", "--state", str(deployed / "before"), "--diff")
    assert code == 1
    assert out.splitlines()[0] == "rejected   streaming_table lake.s.hours"
    assert "no row depends on" not in out
    assert "the window of GROUP BY changed" in out
    assert "+ windows.hour: window ( at , '2 hours' )" in out
    assert "[model-changed]" in err


def test_new_models_and_models_that_are_gone(deployed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (deployed / "models/ids.sql").rename(deployed / "models/other.sql")
    (deployed / "models/seen.sql").write_text("select 1 as a")
    (deployed / "models/word.sql").unlink()
    _, out, _ = run(deployed, capsys, "plan", "--no-catalog", "--state", str(deployed / "before"))
    assert "create     table lake.s.other\n" in out
    assert "\nno longer in the project, their tables stay: ids\n" in out
    assert out.splitlines()[-1].startswith("compared with an earlier manifest alone: ")
    _, out, _ = run(
        deployed, capsys, "plan", "--no-catalog", "--state", str(deployed / "before"), "--output", "markdown"
    )
    assert "<summary>No longer in the project, their tables stay: 1</summary>\n\nids\n" in out
    assert out.splitlines()[-1].startswith("Compared with an earlier manifest alone: ")
    _, found = planned(deployed, capsys)
    gone = found["ids"]
    assert (gone["unique_id"], gone["action"], gone["unchanged"]) == ("model.shop.ids", "removed", False)
    assert gone["reasons"] == ["it is no longer in the project; its table stays"]
    assert gone.keys() == found["other"].keys()


def test_an_edit_of_settings_that_no_row_depends_on_is_named(
    deployed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header_ = "/*---\ndescription: The numbers.\n---*/\n"
    write(deployed, "models/ids.sql", header_ + MODELS["ids"])
    write(
        deployed,
        "models/plain.sql",
        PLAIN.replace("streams:", "tags: [x]\nstreams:").replace("select id", "select id + 1 as id"),
    )
    before = ("--no-catalog", "--state", str(deployed / "before"))
    _, out, _ = run(deployed, capsys, "plan", *before, "--output", "tree")
    assert "\nonly a description, a tag or another setting changed that no row depends on: ids\n" in out
    _, out, _ = run(deployed, capsys, "plan", *before, "--output", "markdown")
    assert "setting changed that no row depends on: 1</summary>\n\nids\n" in out


def _damaged(change: Callable[[dict[str, Any]], None], root: Path) -> None:
    path = root / "before/manifest.json"
    manifest = json.loads(path.read_text())
    for unique, node in manifest["nodes"].items():
        if unique.startswith("model."):
            change(node["meta"]["headrace"])
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own.pop("facts"),
        lambda own: own.update(facts={"sql": 3}),
        lambda own: own.update(facts={**own["facts"], "inputs": 7}),
        lambda own: own.update(facts="select"),
    ],
    ids=["missing", "few", "other-type", "text"],
)
def test_facts_that_cannot_be_read_are_no_comparison(
    deployed: Path, change: Callable[[dict[str, Any]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    _damaged(change, deployed)
    assert planned(deployed, capsys)[0] == 0
    write(deployed, "models/plain.sql", PLAIN.replace("select id", "select id + 1 as id"))
    code, found = planned(deployed, capsys, select=("plain",))
    assert code == 1
    assert "the query that wrote the table is unknown" in found["plain"]["refusals"][0]["message"]


@pytest.mark.parametrize("key", ["meta", "config"])
def test_a_record_of_another_shape_is_no_traceback(
    deployed: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = deployed / "before/manifest.json"
    manifest = json.loads(path.read_text())
    for node in manifest["nodes"].values():
        node[key] = ["x"]
    path.write_text(json.dumps(manifest))
    assert planned(deployed, capsys)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--no-catalog needs --state"),
        (("--state", "nowhere"), "there is no readable manifest.json"),
        (("--state", "before", "-f"), "--no-catalog cannot be combined"),
    ],
    ids=["no-state", "no-manifest", "refresh"],
)
def test_what_cannot_be_answered(
    deployed: Path, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [str(deployed / one) if one in {"before", "nowhere"} else one for one in arguments]
    code, _, err = run(deployed, capsys, "plan", "--no-catalog", *places)
    assert code == 2
    assert message in err


def test_no_credential_is_in_the_facts_and_none_is_an_edit(deployed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = PROJECT + "    spark: {conf: {spark.shop.api.password: 'Sesame-open-1', spark.shop.limit: 5}}\n"
    write(deployed, "project.yml", project)
    assert invoke(["compile", "--project-dir", str(deployed)]) == 0
    shutil.rmtree(deployed / "before")
    shutil.copytree(deployed / "target", deployed / "before")
    text = (deployed / "before/manifest.json").read_text()
    assert "Sesame" not in text
    assert "spark.shop.limit" in text
    write(deployed, "models/ids.sql", MODELS["ids"].replace("as number", "as n"))
    capsys.readouterr()
    _, found = planned(deployed, capsys, "--diff", select=("ids",))
    assert found["ids"]["reasons"] == ["the query changed (removed column 'number', new column 'n')"]
    assert "password" not in str(found["ids"]["diff"])
