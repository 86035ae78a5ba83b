"""What the page shows, as records that the template writes down as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.compile.manifest import Column, DataTest, Manifest, Model, Source
from engine.docs import words
from engine.docs.drawing import Card, Drawing, draw
from engine.docs.last_run import Fact, LastRun, NodeRun, Tone
from engine.docs.layers import Link
from engine.errors import Diagnostic

_PLAIN = re.compile(r"[^A-Za-z0-9_.]")
_LEADING_BLANK_LINES = re.compile(r"\A(?:[ \t\r]*\n)+")


@dataclass(frozen=True, slots=True)
class Reference:
    """A link to another section, and how it is read."""

    anchor: str
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class TestLine:
    """A data test: its kind in words, its name, the other models it reads, and how it ended."""

    text: str
    name: str
    reads: tuple[Reference, ...] = ()
    run: NodeRun | None = None


@dataclass(frozen=True, slots=True)
class ColumnLine:
    """A column as it is described."""

    name: str
    type: str
    description: str
    tests: tuple[TestLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding of the compiler, and the section it belongs to."""

    level: str
    code: str
    message: str
    hint: str
    place: str
    node: Reference | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """Everything about one source or model."""

    anchor: str
    name: str
    kind: str
    how: str
    description: str
    broken: bool
    facts: tuple[Fact, ...]
    columns: tuple[ColumnLine, ...] = ()
    tags: tuple[str, ...] = ()
    reads: tuple[Reference, ...] = ()
    read_by: tuple[Reference, ...] = ()
    tests: tuple[TestLine, ...] = ()
    written_sql: str = ""
    compiled_sql: str = ""
    problems: tuple[Problem, ...] = ()
    run: NodeRun | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    project: str
    version: str
    target: str
    counts: str
    run: LastRun
    problems: tuple[Problem, ...]
    drawing: Drawing
    sources: tuple[Section, ...]
    models: tuple[Section, ...]


def anchor(node_id: str) -> str:
    """A node's id as an id of HTML: letters that a link would have to escape are spelt out."""
    return _PLAIN.sub(lambda match: f"-{ord(match[0]):x}-", node_id)


def make_page(manifest: Manifest, run: LastRun) -> Page:
    """Collect what the page shows."""
    return _Maker(manifest, run).page()


class _Maker:
    """One manifest, with what has to be looked up from every section."""

    def __init__(self, manifest: Manifest, run: LastRun) -> None:
        self.manifest, self.run = manifest, run
        self.links = _links(manifest)
        self.readers: dict[str, list[Model]] = {node_id: [] for node_id in manifest.nodes}
        for link in self.links:
            child = manifest.nodes[link.child]
            if isinstance(child, Model):
                self.readers[link.parent].append(child)
        self.tests: dict[str, list[DataTest]] = {}
        for data_test in manifest.tests:
            self.tests.setdefault(data_test.model, []).append(data_test)

    def page(self) -> Page:
        manifest = self.manifest
        counted = (("source", manifest.sources), ("model", manifest.models), ("test", manifest.tests))
        return Page(
            project=manifest.project,
            version=manifest.version,
            target=manifest.target,
            counts=words.listed(f"{len(n):,} {what}{'s' * (len(n) != 1)}" for what, n in counted),
            run=self.run,
            problems=tuple(self._problem(d) for d in manifest.diagnostics),
            drawing=draw(tuple(self._cards()), self.links),
            sources=tuple(self._source(source) for source in manifest.sources),
            models=tuple(self._model(model) for model in manifest.models),
        )

    def _ended(self, node: Model | Source | DataTest) -> NodeRun | None:
        ended = self.run.of(node, self.manifest.project)
        return ended.measured(node.materialized) if ended and isinstance(node, Model) else ended

    def _reference(self, node_id: str, note: str = "") -> Reference | None:
        node = self.manifest.nodes.get(node_id)
        if not isinstance(node, Model | Source):
            return None
        return Reference(anchor(node_id), node.name, note)

    def _cards(self) -> Iterator[Card]:
        first = 1 if self.manifest.sources else 0
        for source in self.manifest.sources:
            yield self._card(source, "source", 0)
        for model in self.manifest.models:
            yield self._card(model, model.materialized.value.replace("_", "-"), first)

    def _card(self, node: Model | Source, style: str, first: int) -> Card:
        kind, ended = words.kind(node), self._ended(node)
        if node.broken:
            kind, style = f"{kind} · broken", f"{style} bad"
        elif ended is not None and ended.tone in {Tone.BAD, Tone.WARN}:
            kind, style = f"{kind} · {ended.status}", f"{style} {ended.tone.value}"
        return Card(node.id, anchor(node.id), kind, node.name, style, first)

    def _problem(self, found: Diagnostic) -> Problem:
        node = found.node or ""
        reference = self._reference(f"model.{node}") or self._reference(f"source.{node}")
        place = str(found.location) if found.location else ""
        return Problem(found.level.value, found.code, found.message, found.hint, place, reference)

    def _problems_of(self, node: Model | Source) -> tuple[Problem, ...]:
        found = (d for d in self.manifest.diagnostics if d.node == node.name)
        return tuple(self._problem(d) for d in found)

    def _source(self, source: Source) -> Section:
        spec = source.spec
        facts = [
            Fact("Format", spec.format),
            Fact("Path", spec.path),
            Fact("Options", ", ".join(f"{key}: {value}" for key, value in sorted(spec.options.items()))),
            Fact("Declared in", str(source.location or source.file)),
        ]
        return Section(
            anchor=anchor(source.id),
            name=source.name,
            kind=words.kind(source),
            how=words.sentence(words.source_phrases(source)),
            description=source.description,
            broken=source.broken,
            facts=tuple(fact for fact in facts if fact.text),
            columns=tuple(_column(column, ()) for column in source.columns),
            read_by=self._readers(source.id),
            problems=self._problems_of(source),
            run=self._ended(source),
        )

    def _model(self, model: Model) -> Section:
        properties = model.write.table_properties.items()
        facts = [
            Fact("Table" if model.materialized.value != "view" else "View", str(model.relation)),
            Fact("Partitioned by", words.partitioning(model.write.partition_by)),
            Fact("Properties", ", ".join(f"{key}: {value}" for key, value in sorted(properties))),
            Fact("Written in", model.file),
        ]
        lines = {test.id: self._test(test) for test in self.tests.get(model.id, ())}
        own = {c.name: [t for t in self.tests.get(model.id, ()) if t.column == c.name] for c in model.columns}
        placed = {test.id for tests in own.values() for test in tests}
        reads = (self._reference(item.node, words.input_note(item)) for item in model.inputs)
        return Section(
            anchor=anchor(model.id),
            name=model.name,
            kind=words.kind(model),
            how=words.sentence(words.model_phrases(model)),
            description=model.description,
            broken=model.broken,
            facts=tuple(fact for fact in facts if fact.text),
            columns=tuple(_column(c, (lines[t.id] for t in own[c.name])) for c in model.columns),
            tags=model.tags,
            reads=tuple(reference for reference in reads if reference),
            read_by=self._readers(model.id),
            tests=tuple(line for test_id, line in lines.items() if test_id not in placed),
            written_sql=_trimmed(model.raw_sql),
            compiled_sql=_trimmed(model.sql),
            problems=self._problems_of(model),
            run=self._ended(model),
        )

    def _readers(self, node_id: str) -> tuple[Reference, ...]:
        return tuple(Reference(anchor(reader.id), reader.name) for reader in self.readers[node_id])

    def _test(self, data_test: DataTest) -> TestLine:
        others = (self._reference(node) for node in data_test.depends_on if node != data_test.model)
        reads = tuple(reference for reference in others if reference)
        return TestLine(words.test(data_test), data_test.name, reads, self._ended(data_test))


def _links(manifest: Manifest) -> Mapping[Link, bool]:
    links: dict[Link, bool] = {}
    for model in manifest.models:
        for item in model.inputs:
            if isinstance(manifest.nodes.get(item.node), Model | Source):
                link = Link(item.node, model.id)
                links[link] = links.get(link, False) or item.stream
    return links


def _column(column: Column, tests: Iterable[TestLine]) -> ColumnLine:
    return ColumnLine(column.name, column.type or "", column.description, tuple(tests))


def _trimmed(sql: str) -> str:
    """Without the empty lines that a header leaves behind."""
    return _LEADING_BLANK_LINES.sub("", sql).rstrip()
