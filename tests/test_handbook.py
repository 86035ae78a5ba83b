"""The handbook says what the code says."""

from __future__ import annotations

import re

import pytest

from engine.cli.main import cli
from engine.compile.nodes.guarantee import guarantees
from engine.diagnostics.codes import CODES
from engine.diagnostics.explanations import FOLDER, explanations
from engine.schema.format_keys import AVRO_VALUE
from engine.schema.model_keys import MODEL
from engine.schema.source_keys import SOURCE_TABLE
from engine.schema.target_keys import CONNECTION, REGISTRY, SECURITY
from engine.sources import KINDS, kind_of
from tests.lab import REPOSITORY
from tests.project.small_projects import PROJECT, clean

DOCS = REPOSITORY / "docs"


def test_the_explanations_of_codes_are_listed_by_their_titles() -> None:
    listed = re.findall(r"^\* \[(.+)\]\((.+)\)$", (DOCS / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    topics = {f"../engine/diagnostics/{one.page}.md": one.topic for one in explanations().values()}
    assert [(topic, page) for page, topic in topics.items()] == listed


def test_the_refusals_that_the_handbook_explains_exist() -> None:
    codes = set(re.findall(r"^\| `([a-z-]+)`", (DOCS / "failures.md").read_text(), re.MULTILINE))
    named = set(re.findall(r"`([a-z]+-[a-z-]+)`", (DOCS / "failures.md").read_text()))
    assert codes <= set(CODES)
    assert named & set(CODES)


def test_every_key_of_a_header_is_in_the_handbook() -> None:
    text = (DOCS / "models.md").read_text()
    assert [key for key in sorted(MODEL.names) if f"`{key}`" not in text] == []


PAGES = sorted(p.relative_to(DOCS).as_posix() for p in (*DOCS.glob("*.md"), *DOCS.glob("design/*.md")))


@pytest.mark.parametrize(
    "page", [*PAGES, *(f"../engine/diagnostics/{path.name}" for path in sorted(FOLDER.glob("*.md"))), "../README.md"]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = DOCS / page
    for link in re.findall(r"\]\(([^)#]+)", path.read_text()):
        if not link.startswith("http"):
            assert (path.parent / link).exists(), f"{page} links to {link}"


def test_design_decisions_are_few_short_and_listed_once() -> None:
    notes = sorted((DOCS / "design").glob("[0-9]*.md"))
    listed = re.findall(r"\]\(([^)]+)\)", (DOCS / "design" / "README.md").read_text())
    assert sorted(listed) == [path.name for path in notes]
    assert [path.name[:4] for path in notes] == [f"{number:03}-" for number in range(1, len(notes) + 1)]
    assert len(notes) <= 25
    assert [path.name for path in notes if len(path.read_text().split()) > 330] == []
    sections = ("**Question.**", "**Decision.**", "**Rejected", "**Reasons to revisit.**")
    assert [path.name for path in notes for section in sections if section not in path.read_text()] == []


def test_every_command_is_in_the_handbook() -> None:
    text = (DOCS / "commands.md").read_text()
    for name, command in cli.commands.items():
        inner = getattr(command, "commands", None)
        for full in [f"{name} {sub}" for sub in inner] if inner else [name]:
            assert f"engine {full}" in text, full


def options(page: str) -> dict[str, list[str]]:
    """The options of a page's tables, as they come first: key -> type, default, meaning."""
    found: dict[str, list[str]] = {}
    for line in (DOCS / page).read_text().splitlines():
        if line.startswith("| `"):
            first, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
            for key in re.findall(r"`([a-z_]+)`", first):
                found.setdefault(key, rest)
    return found


def pages() -> dict[str, str]:
    """The page of each format, as the page of sources links them."""
    linked: dict[str, str] = {}
    (row,) = [line for line in (DOCS / "sources.md").read_text().splitlines() if line.startswith("| `format` |")]
    pending: list[str] = []
    for name, page in re.findall(r"`([a-z.<>]+)`|\]\(([a-z-]+\.md)\)", row.split("|", 4)[4]):
        pending += [name] if name else []
        if page:
            linked |= dict.fromkeys(pending, page)
            pending = []
    return linked


def test_every_format_has_a_page_with_each_of_its_keys() -> None:
    linked = pages()
    for name in [*KINDS, "spark.<name>"]:
        kind = kind_of(name)
        assert kind is not None
        assert name in linked, f"docs/sources.md links no page for {name}"
        known = options(linked[name])
        for key in kind.KEYS:
            assert len(known.get(key, ())) == 3, f"{linked[name]} says no type, default and meaning of '{key}'"
            assert all(known[key][i] for i in (0, 2))


@pytest.mark.parametrize(
    ("page", "keys"),
    [
        ("sources.md", sorted(SOURCE_TABLE.names)),
        ("avro.md", sorted(AVRO_VALUE.names | REGISTRY.names)),
        ("kafka.md", sorted(CONNECTION.names - {"uri"} | SECURITY.names)),
        ("sinks.md", ["password", "uri", "username"]),
    ],
)
def test_every_key_beside_those_of_a_format_is_on_its_page(page: str, keys: list[str]) -> None:
    known = options(page)
    assert [key for key in keys if len(known.get(key, ())) != 3] == []


OUTPUTS = {
    "streaming table": "streams: [shop.orders]",
    "with `unique_key`": "streams: [shop.orders]\nunique_key: id\nsequence_by: id",
    "`output_mode: complete`": "streams: [shop.orders]\noutput_mode: complete",
    "`table`": "materialized: table",
    "`view`": "materialized: view",
}
KINDS_OF_SOURCES = {
    "kafka": "connection: main, topic: t, schema: id int",
    "iceberg": "table: a.b, schema: id int",
    "rate": "",
    "socket": "host: h, port: 1",
    "spark.<name>": "schema: id int",
}


@pytest.mark.slow
def test_the_guarantees_of_the_handbook_are_those_of_the_compiler(tmp_path) -> None:
    text = (DOCS / "guarantees.md").read_text()
    rows = [
        [c.strip() for c in line.strip("|").split("|")]
        for line in text[text.index("## Guarantees by source") :].splitlines()
        if line.startswith("|")
    ]
    header, _, *body = rows
    assert header[1:] == list(OUTPUTS)
    promised = {name: row[1:] for row in body for name in re.findall(r"`([a-z.<>]+)`", row[0])}
    assert set(promised) == {*KINDS, "spark.<name>"}
    for name, row in promised.items():
        assert list(row) == [said_of(tmp_path, name, output) for output in OUTPUTS], name


def said_of(root, name: str, output: str) -> str:
    """What the compiler promises of a model over a source of a format; a view stands over a table of it."""
    lines = name in {"rate", "socket", "text"}
    column = "value" if lines else "id"
    said = KINDS_OF_SOURCES.get(name, "path: p" if lines else "path: p, schema: id int")
    bounded = output in {"`table`", "`view`"} and name in {"kafka", "rate", "socket"}
    keys = [f"format: {name.replace('<name>', 'xml')}", said, "stream: false" if bounded else ""]
    text = f"select {column} as id from {{{{ source('shop', 'orders') }}}}"
    if "complete" in output:
        text = f"select {column} as id, count(*) as n from {{{{ source('shop', 'orders') }}}} group by {column}"
    files = {
        "project.yml": PROJECT + "    connections: {main: {bootstrap_servers: 'h:1'}}\n",
        "sources/shop.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, "
        f"{', '.join(key for key in keys if key)}}}\n",
        "models/m.sql": f"/*---\n{OUTPUTS[output]}\n---*/\n{text}\n",
    }
    if output == "`view`":
        files["models/base.sql"] = f"{text}\n"
        files["models/m.sql"] = "/*---\nmaterialized: view\n---*/\nselect id from {{ ref('base') }}\n"
    folder = root / re.sub(r"[^a-z ]", "", f"{name} {output}")
    return guarantees(clean(folder, files))["model.m"].level.value
