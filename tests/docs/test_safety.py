"""The site runs nothing but its own scripts, and every text of a project is data in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import resources

import pytest

from engine.compile import Expectation, Operation, Overwrite, Relation, SortColumn, Write
from engine.compile.nodes.column_facts import Origin
from engine.compile.nodes.manifest import Column, Macro
from engine.compile.nodes.model_settings import TimeWindow
from engine.docs.site.freshness_status import AgeBound, Fresh, FreshnessStatus
from engine.docs.site.table_statistics import Snapshot, StoredTable
from engine.errors import Diagnostic, Location
from tests.docs.build import NOW, hourly, manifest, model, not_null, small, source, unit_test, written

EVIL = (
    """</script></style></title></pre><img src=x onerror="alert(1)">'"><a href='javascript:alert(2)'>x</a>"""
    """[x](javascript:alert(3)) {{ 7*7 }} \u2028\u2029 <!-- \\"); alert(4); (" __proto__"""
)


def evil():
    spec = replace(source().spec, format=EVIL, options={EVIL: EVIL}, timezone=EVIL)
    column = Column(EVIL, EVIL, EVIL, {EVIL: EVIL, "owner": [EVIL]}, (), EVIL)
    bad = source(table=EVIL, id=f"source.{EVIL}", description=EVIL, spec=spec, columns=(column,))
    reader = model(
        EVIL, bad.id, id=f"model.{EVIL}", description=EVIL, columns=(column, Column("__proto__")), tags=(EVIL,),
        raw_sql=EVIL, sql=EVIL, windows={EVIL: TimeWindow(EVIL, EVIL, EVIL, EVIL, EVIL)}, title=EVIL, file=f"models/{EVIL}/{EVIL}.sql",
        meta={EVIL: EVIL, "owner": {EVIL: EVIL}}, expectations=(Expectation(EVIL, EVIL),), fingerprint=EVIL,
        write=Write(Overwrite.TABLE, table_properties={EVIL: EVIL}), relation=Relation(EVIL, EVIL, EVIL),
        indirect=(Origin(bad.id, EVIL, EVIL),),
    )  # fmt: skip
    data_test = not_null("x", EVIL, name=EVIL, kind=EVIL, model=reader.id)
    found = Diagnostic("sql-syntax", EVIL, EVIL, node=EVIL, location=Location(EVIL))
    macro = Macro("evil", EVIL, EVIL, (EVIL,), EVIL)
    write = Write(
        "append",
        unique_key=(EVIL,),
        sequence_by=(EVIL,),
        delete_when=EVIL,
        exclude=(EVIL,),
        sort_by=(SortColumn(EVIL),),
    )
    keyed = hourly(
        windows={EVIL: TimeWindow(EVIL, EVIL, EVIL, EVIL, EVIL)},
        write=write,
        operation=Operation(pre_hook=(EVIL,), post_hook=(EVIL,)),
    )
    tested = unit_test(EVIL, description=EVIL, location=Location(EVIL))
    project = manifest(source(), bad, reader, keyed, data_test, tested, found=(found,), macros=(macro,))
    return replace(project, project=EVIL, target=EVIL, version=EVIL)


def evil_results():
    batch = {"batch_id": 1, "rows_in": 1, "watermark": EVIL}
    response = {
        "watermark": EVIL, "note": EVIL, "kind": EVIL, "bad_records": {EVIL: 1}, "failed_checks": {EVIL: 2},
        "progress": [batch, batch],
    }  # fmt: skip
    result = {"unique_id": f"model.{EVIL}", "status": EVIL, "message": EVIL, "adapter_response": response}
    test = {"unique_id": f"unit_test.{EVIL}.hourly.{EVIL}", "status": EVIL, "message": EVIL}
    return {"metadata": {"generated_at": EVIL}, "args": {"which": EVIL}, "results": [result, test]}


def evil_stores():
    """What the tables and the last look at the sources say."""
    commit = Snapshot(1, NOW, EVIL, 1, 0, 1, 10, 1, EVIL)
    table = StoredTable(EVIL, ((EVIL, EVIL),), (commit, replace(commit, run="b")), 2, 1, 10, 1, (commit,))
    fresh = FreshnessStatus(f"source.{EVIL}", Fresh.ERROR, NOW, NOW, AgeBound(1, EVIL), error=EVIL)
    return {"tables": {f"model.{EVIL}": table}, "freshness": {fresh.source: fresh}}


def static(name: str) -> str:
    return (resources.files("engine.docs") / "static" / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_texts_of_a_project_are_data_and_nothing_else(tmp_path):
    site = written(tmp_path, evil(), evil_results(), **evil_stores())
    assert site.index["project"] == EVIL
    record = site.node(f"model.{EVIL}")
    assert record["description"] == EVIL
    assert [f"Meta: {EVIL}", EVIL] in record["facts"]
    assert record["columns"][0]["meta"] == [[EVIL, EVIL], ["owner", json.dumps([EVIL], ensure_ascii=False)]]
    assert record["columns"][0]["tests"][0]["name"] == EVIL
    assert record["table"]["columns"] == [[EVIL, EVIL]]
    assert record["run"]["counted"][0][1] == EVIL
    assert site.words("model.hourly")["Excludes"].startswith(EVIL)
    assert site.node("model.hourly")["unit_tests"][0]["name"] == EVIL
    assert site.node(f"source.{EVIL}")["fresh"]["error"] == EVIL
    assert "</" not in site.all_data
    assert site.all_data.isascii()
    assert all(re.fullmatch(r'headrace\.put\("[a-z]+\d*",.*\);', line) for line in site.all_data.splitlines())


@pytest.mark.slow
def test_the_pages_are_the_same_for_every_project(tmp_path):
    written(tmp_path / "a", small())
    written(tmp_path / "b", evil(), evil_results())
    names = {path.name for path in (tmp_path / "a").iterdir() if path.is_file()}
    assert {"index.html", "site.css", "app.js"} <= names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_policy_admits_the_scripts_and_styles_of_the_folder_only():
    html = static("index.html")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert dict(part.strip().split(" ", 1) for part in policy.split(";")) == {
        "default-src": "'none'", "script-src": "'self' file:", "style-src": "'self' file:", "img-src": "'self' file:",
        "base-uri": "'none'", "form-action": "'none'", "require-trusted-types-for": "'script'", "trusted-types": "headrace",
    }  # fmt: skip
    assert html.index("Content-Security-Policy") < html.index("<link") < html.index("<script")
    assert not re.search(r"<style|<script>|\sstyle=|\son\w+=", html)


@pytest.mark.parametrize("name", [f.name for f in (resources.files("engine.docs") / "static").iterdir()])
def test_nothing_is_fetched_from_anywhere_and_no_text_becomes_code(name):
    text = static(name).replace("http://www.w3.org/2000/svg", "")
    addresses = re.findall(r"(?:https?:)?//[a-z0-9][^\s\"'`]*", re.sub(r"(?m)^\s*//.*$|/\*.*?\*/|\s// .*$", "", text))
    assert [a for a in addresses if not a.startswith("//+")] == []
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "@import",
        "url(",
    ):
        assert word not in text


@pytest.mark.parametrize("name", ["航班", "a b", "naïve", "x/../y", "a-b", "#", "%41", "\ud800", "עברית", "🛫"])
def test_names_in_every_script_are_told(tmp_path, name):
    project = manifest(model(name, columns=(Column(name),)), model("reader", f"model.{name}"))
    site = written(tmp_path, project)
    assert site.index["nodes"][0]["name"] == name
    assert site.node(f"model.{name}")["columns"][0]["name"] == name


def test_secrets_are_masked_wherever_they_stand(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINE_SECRET_KEY", 'hun"ter<2>')
    results = {"results": [{"unique_id": "model.a", "status": "error", "message": 'no: hun"ter<2>'}]}
    site = written(tmp_path, manifest(model("a", description='hun"ter<2>', sql="""'hun"ter<2>'""")), results)
    assert "ter<2>" not in site.all_data
    assert site.node("model.a")["run"]["message"] == "no: *****"


def test_a_secret_made_of_digits_does_not_spoil_the_numbers(tmp_path, monkeypatch):
    at = round(NOW.timestamp() * 1000)
    monkeypatch.setenv("ENGINE_SECRET_KEY", str(at))
    site = written(tmp_path, manifest(*(model(f"m{i}", *([f"model.m{i - 1}"] if i else [])) for i in range(9))))
    assert site.index["at"] == at
    assert all(isinstance(end, int) for link in site.index["links"] for end in link)
