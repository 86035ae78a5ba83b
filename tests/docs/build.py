"""Manifests made by hand, and the written page read back."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from engine.compile import (
    DataTest,
    Input,
    Manifest,
    Materialized,
    Model,
    Partition,
    Relation,
    Source,
    Watermark,
    Write,
)
from engine.compile.manifest import Column
from engine.docs import write_site
from engine.errors import Diagnostic
from engine.sources import SourceSpec

VOID = {"meta", "link", "img", "br", "hr", "input", "path", "rect"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    spaced: str = ""  # the same with a space where another element begins


@dataclass
class Page(HTMLParser):
    """What a browser would see: elements with their attributes and all text within."""

    html: str
    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)
        for around in self.open:
            around.spaced += " "

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data
            element.spaced += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [e for e in self.elements if e.tag == tag and wanted.items() <= e.attributes.items()]

    def one(self, tag: str, **attributes: str) -> Element:
        (element,) = self.all(tag, **attributes)
        return element

    def section(self, node_id: str) -> str:
        """The words of a node's section, spaces made single."""
        return " ".join(self.one("section", id=node_id).spaced.split())

    @property
    def ids(self) -> list[str]:
        return [e.attributes["id"] for e in self.elements if "id" in e.attributes]


def source(name: str = "events", **changes) -> Source:
    spec = SourceSpec(f"ops.{name}", "json", f"landing/{name}", "id string, at timestamp")
    columns = (Column("id", "Unique.", "string"), Column("at", "", "timestamp"))
    defaults = {
        "id": f"source.ops.{name}", "source": "ops", "table": name, "file": "sources/ops.yml", "spec": spec,
        "columns": columns,
    }  # fmt: skip
    return Source(**defaults | changes)


def model(name: str, *reads: str | Input, **changes) -> Model:
    inputs = tuple(r if isinstance(r, Input) else Input(r, r.partition(".")[2], False, "v") for r in reads)
    defaults = {
        "id": f"model.{name}", "name": name, "file": f"models/{name}.sql", "description": "",
        "materialized": Materialized.TABLE, "relation": Relation("lake", "main", name),
        "raw_sql": "\n   \nselect 1\n", "sql": "select 1", "inputs": inputs,
    }  # fmt: skip
    return Model(**defaults | changes)


def hourly(**changes) -> Model:
    """A windowed streaming table over the source."""
    watermark = Watermark("at", "30 minutes", "data.at")
    defaults = {
        "materialized": Materialized.STREAMING_TABLE,
        "stateful": True,
        "windows": {"hour": "window(at, '1 hours')"},
        "write": Write("append", (Partition("day", "window_start"), Partition("bucket", "id", 16))),
        "columns": (Column("window_start", "Begin of the hour."), Column("id")),
        "tags": ("nightly",),
    }
    read = Input("source.ops.events", "ops.events", True, "v", watermark, ("id",), 12)
    return model("hourly", read, **defaults | changes)


def not_null(model_name: str, column: str | None, **changes) -> DataTest:
    name = f"not_null_{model_name}_{column}"
    defaults = {
        "id": f"test.{name}", "name": name, "kind": "not_null", "model": f"model.{model_name}", "sql": "select 1",
        "column": column, "depends_on": (f"model.{model_name}",),
    }  # fmt: skip
    return DataTest(**defaults | changes)


def manifest(*nodes: Model | Source | DataTest, found: tuple[Diagnostic, ...] = ()) -> Manifest:
    order = tuple(n.id for n in nodes if not isinstance(n, Source))
    return Manifest("shop", "1.0", "dev", {n.id: n for n in nodes}, order, found)


def small() -> Manifest:
    return manifest(source(), hourly(), model("daily", "model.hourly"), not_null("hourly", "window_start"))


def written(folder: Path, project: Manifest, results: object = None) -> Page:
    return Page(write_site(project, folder, results=results).read_text(encoding="utf-8"))
