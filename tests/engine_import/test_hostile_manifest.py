"""A manifest comes from others: whatever it says, nothing is read or written elsewhere, and no text becomes code."""

from __future__ import annotations

import json
import os

import pytest
import yaml

from engine.cli.main import invoke
from engine.compile import compile_project
from engine.errors import ProjectError
from engine.project import load_project
from engine.project.parse_yaml import load_yaml
from engine.project.yaml_text import yaml_text
from engine_import.dbt.import_dbt import import_dbt
from engine_import.dbt.manifest import read_manifest as reading
from engine_import.output.input_folder import read_bounded
from tests.engine_import.imported import model, written

PATHS = [
    "../../evil.sql",
    "/etc/evil.sql",
    "a/../../b.sql",
    "a\nb/c.sql",
    ".git/hooks/x.sql",
    "a/" * 300 + "b.sql",
    "C:\\x.sql",
    "",
]
NAMES = ["../x", "a\nb", "A b", "__x", "branch_x", "x__quarantine", "", "é", "a" * 500, "con'x"]
TEXTS = [
    "plain", "yes", "null", "0o17", "1.10", "- a", "a: b", "# no comment", "'", '"', "\\", "{{ env_var('HOME') }}",
    "{% set x = 1 %}", "{# c #}", "*/ drop table x; /*---", "---*/\nselect 1", "a\nb: c\n---\nd", "\ttab", " lead",
    "trail ", "x\u202eevil", "\u2028", "\x00\x07", "&anchor", "*alias", "!!python/object:os.system", "a" * 5000,
    "| block\n  text", "\ud800", "\x85", "é ü 日本", "\U0001f600 {}",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_paths_lead_into_the_new_folder(path, tmp_path):
    code = model("m", "select 1 as a", path=path, original_file_path=path)
    before = set(tmp_path.iterdir())
    target = written(tmp_path / "shop", code)
    import_dbt(target, tmp_path / "out" / "new")
    files = [p.relative_to(tmp_path / "out/new") for p in (tmp_path / "out/new").rglob("*") if p.is_file()]
    assert [p for p in files if p.suffix == ".sql" and p.parts[0] != "models"] == []
    assert sum(p.name == "m.sql" for p in files) == 1
    assert set(tmp_path.iterdir()) - before == {tmp_path / "shop", tmp_path / "out"}
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out/new"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_become_valid_names(name, tmp_path):
    target = written(tmp_path / "shop", model(name, "select 1 as a"), model("other", "select 1 as a"))
    report = import_dbt(target, tmp_path / "new")
    assert report.summary == "2 of 2 models compile"


def test_names_that_become_the_same_stay_apart(tmp_path):
    models = (model(name, f"select '{name}' as a") for name in ("Orders", "orders", "ORDERS"))
    report = import_dbt(written(tmp_path / "shop", *models), tmp_path / "new")
    assert sorted(item.name for item in report.models) == ["orders", "orders_2", "orders_3"]
    assert "select 'orders' as a" in (tmp_path / "new/models/orders.sql").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_texts_are_read_back_as_they_were(text, tmp_path):
    columns = {"a": {"name": "a", "description": text, "meta": {"k": text}, "tags": []}}
    code = model(
        "m", "select 1 as a", description=text, columns=columns, meta={"deep": [text]}, config={"tags": [text]}
    )
    report = import_dbt(written(tmp_path / "shop", code), tmp_path / "new")
    assert report.summary == "1 of 1 model compile", report.lines()
    compiled = compile_project(load_project(tmp_path / "new")).manifest.model("m")
    said = text.replace("\ud800", "\ufffd")
    assert compiled.meta["deep"] in ([text], [said])
    assert compiled.description in (text.strip(), said.strip())
    assert compiled.columns[0].description in (text.strip(), said.strip())
    assert compiled.sql.strip() == "select 1 as a"


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_yaml_is_the_same_for_readers_of_both_versions(text):
    data = {"k": text, "l": [text, {"m": text}], "n": {"o": {text[:50] or "x": text}}}
    written_text = yaml_text(data)
    ours, found = load_yaml(written_text, "x.yml")
    assert found == []
    as_written = json.loads(json.dumps(data).replace("{{ env", "{{ '{' }}{ env").replace("{% set", "{{ '{' }}% set")
                            .replace("{# c", "{{ '{' }}# c"))  # fmt: skip
    if "\ud800" not in text:
        assert ours.data == as_written
        assert yaml.safe_load(written_text) == as_written


def test_a_link_in_the_dbt_project_is_not_followed(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("password\nhunter2\n")
    seed = {**model("s", ""), "resource_type": "seed", "path": "s.csv", "original_file_path": "seeds/s.csv"}
    target = written(tmp_path / "shop", seed)
    (tmp_path / "shop/seeds").mkdir()
    (tmp_path / "shop/seeds/s.csv").symlink_to(secret)
    report = import_dbt(target, tmp_path / "new")
    everything = "".join(p.read_text() for p in (tmp_path / "new").rglob("*") if p.is_file())
    assert "hunter2" not in everything
    assert any("cannot be imported" in note for item in report.items for note in item.notes)


@pytest.mark.parametrize("path", ["../secret.csv", "/etc/hosts.csv", "seeds/../../secret.csv"])
def test_a_seed_outside_of_the_dbt_project_is_not_read(path, tmp_path):
    (tmp_path / "secret.csv").write_text("password\nhunter2\n")
    seed = {**model("s", ""), "resource_type": "seed", "path": "s.csv", "original_file_path": path}
    import_dbt(written(tmp_path / "shop", seed), tmp_path / "new")
    everything = "".join(p.read_text() for p in (tmp_path / "new").rglob("*") if p.is_file())
    assert "hunter2" not in everything


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("[1]", "not a manifest"),
        ("{", "not JSON"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"metadata": {}, "nodes": {}, "n": ' + "9" * 10_000 + "}", "not JSON"),
        ("\xff\xfe", "not JSON"),
    ],
    ids=range(6),
)
def test_what_is_not_a_manifest_is_an_error(content, reason, tmp_path):
    (tmp_path / "manifest.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ProjectError) as error:
        import_dbt(tmp_path, tmp_path / "new")
    assert error.value.diagnostic.code == "import-unreadable"
    assert reason in error.value.diagnostic.message
    assert not (tmp_path / "new").exists()


def test_a_manifest_that_is_too_large_or_a_link_is_an_error(tmp_path, monkeypatch):
    target = written(tmp_path / "shop", model("m", "select 1 as a"))
    monkeypatch.setattr(reading, "MOST_BYTES", 100)
    with pytest.raises(ProjectError, match="larger than"):
        import_dbt(target, tmp_path / "new")
    (tmp_path / "link").mkdir()
    (tmp_path / "link/manifest.json").symlink_to(target / "manifest.json")
    with pytest.raises(ProjectError, match="cannot be imported"):
        import_dbt(tmp_path / "link", tmp_path / "new")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(ProjectError, match="not a plain file"):
        read_bounded(tmp_path, "manifest.json", 100)


@pytest.mark.parametrize("version", ["v9", "v4"])
def test_a_manifest_of_an_old_dbt_is_rejected(version, tmp_path, capsys):
    target = written(tmp_path / "shop", model("m", "select 1 as a"))
    text = (target / "manifest.json").read_text().replace("v12", version)
    (target / "manifest.json").write_text(text)
    assert invoke(["import", "dbt", str(target), "--out", str(tmp_path / "new")]) == 1
    assert f"has the schema version {version}; v10 and newer can be imported" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["v10", "v11", "v13"])
def test_other_versions_are_read(version, tmp_path):
    target = written(tmp_path / "shop", model("m", "select 1 as a"))
    text = (target / "manifest.json").read_text().replace("v12", version)
    (target / "manifest.json").write_text(text)
    report = import_dbt(target, tmp_path / "new")
    assert report.summary == "1 of 1 model compile"
    assert any("newest that is known" in note for note in report.notes) is (version == "v13")


@pytest.mark.slow
def test_values_of_wrong_types_are_left_out(tmp_path):
    wrong = [None, 7, "x", [], {}, [None, 3, {"a": {}}], {"a": [1]}, True]
    keys = (
        "description",
        "columns",
        "tags",
        "meta",
        "config",
        "depends_on",
        "version",
        "language",
        "group",
        "raw_code",
    )
    models = [
        {**model(f"m_{number}_{key}", "select 1 as a"), key: value}
        for key in keys
        for number, value in enumerate(wrong)
    ]
    tests = [
        {**model(f"t_{number}", ""), "resource_type": "test", "test_metadata": {"name": value, "kwargs": value}}
        for number, value in enumerate(wrong)
    ]
    units = {f"unit_test.shop.u{n}": {"package_name": "shop", "name": value, "model": "m_0_tags", "given": value,
                                      "expect": value} for n, value in enumerate(wrong)}  # fmt: skip
    sources = {f"source.shop.{n}": {**model(f"s{n}", ""), "freshness": value, "source_name": value, "schema": value}
               for n, value in enumerate(wrong)}  # fmt: skip
    target = written(tmp_path / "shop", *models, *tests, unit_tests=units, sources=sources, groups=wrong, exposures=7)
    report = import_dbt(target, tmp_path / "new")
    assert len(report.models) == len(models)


def test_the_terminal_gets_no_control_characters(tmp_path, capsys):
    name = "m\x1b[2J\u202e"
    code = model(name, "select * from {{ ref('\x1b[31mx') }}", path="a\x1b[2J.sql", language="python")
    target = written(tmp_path / "shop", code)
    assert invoke(["import", "dbt", str(target), "--out", str(tmp_path / "new")]) == 0
    captured = capsys.readouterr()
    text = captured.out + captured.err + (tmp_path / "new/import-report.md").read_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
