"""The page runs nothing, loads nothing, and shows every text as text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from engine.compile.manifest import Column
from engine.errors import Diagnostic, Location
from tests.docs.build import Page, hourly, manifest, model, not_null, small, source, written

EVIL = (
    """</script></style></title></pre><img src=x onerror="alert(1)">'"><a href='javascript:alert(2)'>x</a>{{ 7*7 }}"""
)


def evil() -> Page:
    spec = replace(source().spec, format=EVIL, path=EVIL, options={EVIL: EVIL}, timezone=EVIL)
    column = Column(EVIL, EVIL, EVIL)
    bad = source(table=EVIL, id=f"source.{EVIL}", description=EVIL, spec=spec, columns=(column,))
    reader = model(
        EVIL, bad.id, id=f"model.{EVIL}", description=EVIL, columns=(column,), tags=(EVIL,), raw_sql=EVIL, sql=EVIL,
        windows={EVIL: EVIL},
    )  # fmt: skip
    data_test = not_null("x", EVIL, name=EVIL, kind=EVIL, model=reader.id)
    found = Diagnostic("sql-syntax", EVIL, EVIL, node=EVIL, location=Location(EVIL))
    return replace(
        manifest(bad, reader, hourly(windows={EVIL: EVIL}), data_test, found=(found,)),
        project=EVIL,
        target=EVIL,
        version=EVIL,
    )


def evil_results() -> dict[str, object]:
    result = {
        "unique_id": f"model.{EVIL}",
        "status": EVIL,
        "message": EVIL,
        "adapter_response": {"watermark": EVIL},
    }
    return {"metadata": {"generated_at": EVIL}, "results": [result]}


def test_texts_from_the_project_stay_texts(tmp_path):
    page = written(tmp_path, evil(), evil_results())
    used = {e.tag for e in page.elements}
    assert not used & {"script", "img", "iframe", "object", "embed", "link", "form", "base"}
    assert [e.tag for e in page.elements if any(key.startswith("on") for key in e.attributes)] == []
    assert "<img" not in page.html
    assert "49" not in page.one("h1").text
    assert page.one("h1").text == EVIL
    assert page.all("title")[0].text == f"{EVIL}: lineage"
    assert [e.text for e in page.all("pre")][:2] == [EVIL, EVIL]


def test_every_link_stays_on_the_page(tmp_path):
    page = written(tmp_path, evil(), evil_results())
    targets = [
        e.attributes[key]
        for e in page.elements
        for key in ("href", "src", "action", "xlink:href")
        if key in e.attributes
    ]
    assert targets
    assert all(re.fullmatch(r"#[A-Za-z0-9_.-]+", target) for target in targets)
    assert {target[1:] for target in targets} <= set(page.ids)


def test_nothing_is_fetched_from_anywhere(tmp_path):
    html = written(tmp_path, small()).html
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html)


def test_the_policy_admits_the_one_style_element_and_nothing_else(tmp_path):
    page = written(tmp_path, evil())
    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    digest = base64.b64encode(hashlib.sha256(page.one("style").text.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not [e for e in page.elements if "style" in e.attributes]


def test_the_policy_comes_before_everything_it_governs(tmp_path):
    tags = [e.tag for e in written(tmp_path, small()).elements]
    assert tags[:4] == ["html", "head", "meta", "meta"]


@pytest.mark.parametrize("name", ["航班", "a b", "naïve", "x/../y", "a-b", "#", "%41", "\ud800"])
def test_names_in_every_script_can_be_linked(tmp_path, name):
    project = manifest(model(name), model("reader", f"model.{name}"), model("plain"))
    page = written(tmp_path, project)
    links = {e.attributes["href"] for e in page.all("a")}
    assert {link[1:] for link in links} <= set(page.ids)
    assert len(page.all("section", class_="node")) == 3


def test_names_that_look_alike_have_links_of_their_own(tmp_path):
    page = written(tmp_path, manifest(model("a b"), model("a-20-b"), model("a-b")))
    assert len({e.attributes["id"] for e in page.all("section", class_="node")}) == 3


def test_secrets_are_masked_wherever_they_stand(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINE_SECRET_KEY", "hunter<2>")
    results = {"results": [{"unique_id": "model.a", "status": "error", "message": "no: hunter<2>"}]}
    page = written(tmp_path, manifest(model("a", description="hunter<2>", sql="'hunter<2>'")), results)
    assert "hunter" not in page.html
    assert "no: *****" in page.section("model.a")


def test_a_secret_made_of_digits_does_not_spoil_the_graph(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINE_SECRET_KEY", "1000")
    page = written(tmp_path, manifest(*(model(f"m{i}", *([f"model.m{i - 1}"] if i else [])) for i in range(9))))
    assert "*" not in "".join(e.attributes["d"] for e in page.all("path"))
