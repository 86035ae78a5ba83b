"""What a target of a cluster may say, found without Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api import Project
from engine.compile import compile_project
from engine.project import load_project
from tests.projects import sources_yaml

SHARED = "spark: {master: 'spark://h:7077', shared_folders: true}"
BUCKET = "catalog: {type: rest, uri: 'https://c.example', warehouse: lake}"
SOURCES = sources_yaml(events={"path": "PATH", "schema": "id int"})


def found(root: Path, *keys: str, path: str = "s3a://bucket/events") -> list[str]:
    """Codes and messages of a target with some keys."""
    lines = "".join(f"    {key}\n" for key in ("schema: shop", *keys))
    (root / "project.yml").write_text(f"name: shop\ntarget: prod\ntargets:\n  prod:\n{lines}")
    (root / "sources").mkdir()
    (root / "sources" / "shop.yml").write_text(SOURCES.replace("PATH", path))
    (root / "models").mkdir()
    (root / "models" / "m.sql").write_text("select * from {{ source('shop', 'events') }}")
    compiled = compile_project(load_project(root), env={"ENGINE_SECRET_X": "s3cret-s3cret"})
    return [f"{d.code} {d.location}: {d.message}" for d in compiled.manifest.diagnostics if d.is_error]


@pytest.mark.parametrize("master", ["spark://h:7077", "spark://a:7077,b:7077", "yarn", "k8s://https://h:6443"])
def test_folders_of_one_machine_are_rejected_on_a_cluster(tmp_path, master):
    diagnostics = found(tmp_path, f"spark: {{master: '{master}'}}", path="landing/events")
    assert [d.partition(":")[0] for d in diagnostics] == [
        "folder-not-shared project.yml",
        "folder-not-shared sources/shop.yml",
    ]
    assert "the warehouse and the state are in folders of this machine" in diagnostics[0]
    assert "'landing/events' is a local folder" in diagnostics[1]


@pytest.mark.parametrize("spark", [SHARED, "spark: {master: 'local[2]'}", "spark: {master: 'local-cluster[2,1,512]'}"])
def test_folders_that_all_machines_have_are_not(tmp_path, spark):
    assert found(tmp_path, spark, path="file:/data/events") == []


def test_a_warehouse_of_a_server_may_be_a_folder_too(tmp_path):
    catalog = "catalog: {type: jdbc, uri: 'jdbc:postgresql://h/d', warehouse: 'file:///data/lake'}"
    diagnostics = found(tmp_path, "spark: {master: yarn}", catalog)
    assert "the warehouse and the state are in folders of this machine" in diagnostics[0]


def test_a_catalog_of_a_server_leaves_the_state(tmp_path):
    (diagnostic,) = found(tmp_path, "spark: {master: yarn}", BUCKET)
    assert "the state is in a folder of this machine" in diagnostic


@pytest.mark.parametrize(
    ("master", "code", "said"),
    [
        ("sc://h:15002", "not-supported", "Spark Connect"),
        ("databricks", "not-supported", "Databricks"),
        ("https://adb-1.azuredatabricks.net", "not-supported", "Databricks"),
        ("mesos://h:5050", "bad-value", "'mesos://h:5050' is not a Spark master"),
        ("local[2", "bad-value", "'local[2' is not a Spark master"),
    ],
)
def test_masters_that_a_build_cannot_use_are_rejected_by_name(tmp_path, master, code, said):
    diagnostics = found(tmp_path, f"spark: {{master: '{master}', shared_folders: true}}")
    assert len(diagnostics) == 1
    assert diagnostics[0].startswith(f"{code} project.yml:6")
    assert said in diagnostics[0]


@pytest.mark.parametrize("key", ["spark.executor.extraJavaOptions", "spark.executor.extraClassPath", "spark.ssl.rpc.x"])
def test_a_secret_is_not_put_where_ps_shows_it(tmp_path, key):
    conf = f"spark: {{conf: {{{key}: \"-Dpassword={{{{ env_var('ENGINE_SECRET_X') }}}}\"}}}}"
    assert [d.partition(" ")[0] for d in found(tmp_path, conf)] == ["secret-misplaced"]


@pytest.mark.parametrize(
    "key", ["spark.authenticate.secret", "spark.ssl.keyPassword", "spark.hadoop.fs.s3a.secret.key"]
)
def test_a_secret_is_accepted_where_it_stays_one(tmp_path, key):
    assert found(tmp_path, f"spark: {{conf: {{{key}: \"{{{{ env_var('ENGINE_SECRET_X') }}}}\"}}}}") == []


@pytest.mark.slow
def test_passes_of_tests_are_known_again_where_the_settings_have_a_secret(tmp_path):
    """What stands for the secret is another text in each process, and each compilation."""
    assert found(tmp_path, "spark: {conf: {spark.x.password: \"{{ env_var('ENGINE_SECRET_X') }}\"}}") == []
    project = Project(tmp_path)
    compiled = [project.compile() for _ in range(2)]
    versions = [project._versions(each.manifest) for each in compiled]
    kept = [project._passes(each, version).settings for each, version in zip(compiled, versions, strict=True)]
    assert compiled[0].target.conf != compiled[1].target.conf
    assert kept[0] == kept[1]
    assert kept[0]["spark.x.password"] == "*****"
