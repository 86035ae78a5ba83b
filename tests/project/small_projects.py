"""Small projects for tests: a dict of files becomes a folder; findings become one readable line each."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from engine.compile import Compiled, Manifest, Model, compile_project
from engine.errors import Diagnostic
from engine.project import LoadedProject, load_project

PROJECT = """\
name: shop
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: main
"""
COLUMNS = "id string, ts timestamp, amount double, item struct<name string, price double>"
SOURCES = f"""\
sources:
  - name: shop
    tables:
      - name: orders
        format: json
        path: landing/orders
        schema: {COLUMNS}
      - name: customers
        format: csv
        path: landing/customers
        schema: id string, name string
"""
FROM = "from {{ source('shop', 'orders') }}"
ORDERS = f"select * {FROM}\n"
# The first lines of headers.
STREAM = "streams: [shop.orders]\n"
MERGE = f"{STREAM}unique_key: id\n"
SEQUENCE = f"{MERGE}sequence_by: ts\n"
LATE = "streams: {shop.orders: {watermark: ts delay 1 hour}}\n"
HOUR = "windows: {hour: 'tumbling(ts, 1 hour)'}\n"


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write the files of a project; project.yml and sources/shop.yml have defaults."""
    for name, content in {"project.yml": PROJECT, "sources/shop.yml": SOURCES, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8", newline="")
    return root


def model(header: str, sql: str = ORDERS, name: str = "a") -> dict[str, str | bytes]:
    """A model with a header, as a file of a project."""
    return {f"models/{name}.sql": f"/*---\n{header.rstrip()}\n---*/\n{sql}"}


def orders_with(columns: str) -> dict[str, str | bytes]:
    """The source of the orders with other columns, as a file of a project."""
    return {"sources/shop.yml": SOURCES.replace(COLUMNS, columns)}


def sql(text: str) -> str:
    """A model written inside a test, without the test's indentation."""
    return dedent(text).lstrip("\n")


def load(root: Path, files: dict[str, str | bytes]) -> LoadedProject:
    return load_project(write(root, files))


def compiled(root: Path, files: dict[str, str | bytes], **options: object) -> Compiled:
    return compile_project(load(root, files), **{"env": {}, **options})


def clean(root: Path, files: dict[str, str | bytes], **options: object) -> Manifest:
    """The manifest of a project without errors; warnings of the streaming rules have tests of their own."""
    manifest = compiled(root, files, **options).manifest
    assert lines(manifest.errors) == []
    return manifest


def made(root: Path, header: str, sql: str = ORDERS) -> Model:
    """A model as it is compiled, alone in a project without errors."""
    return clean(root, model(header, sql)).model("a")


def line(diagnostic: Diagnostic) -> str:
    """`code file:line:column message`, as tests compare it."""
    return f"{diagnostic.code} {diagnostic.location} {diagnostic.message}"


def lines(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    return [line(diagnostic) for diagnostic in diagnostics]


def findings(root: Path, files: dict[str, str | bytes], **options: object) -> tuple[Diagnostic, ...]:
    return compiled(root, files, **options).manifest.diagnostics


def only(found: tuple[Diagnostic, ...]) -> Diagnostic:
    """The one finding; one mistake makes one message."""
    assert len(found) == 1, "\n".join(lines(found)) or "nothing was found"
    return found[0]


def check(root: Path, files: dict[str, str | bytes], finding: str, hint: str = "", **options: object) -> None:
    """The one finding, and words of its hint; every fault here has a way out."""
    found = only(findings(root, files, **options))
    assert line(found) == finding
    assert found.hint
    assert hint in found.hint
