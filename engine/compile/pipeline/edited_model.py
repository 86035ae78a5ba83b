"""Compiling one model of a compiled project again, as an editor has it: nothing else is read, and nothing is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from engine.compile.nodes.column_facts import InputColumns
from engine.compile.nodes.manifest import Model
from engine.compile.pipeline import compile_cache
from engine.compile.pipeline.compile_cache import CachedModel
from engine.compile.pipeline.compile_project import Compiled, names_of
from engine.compile.pipeline.query_names import QueryNames, query_names
from engine.errors import Diagnostic, Location, ProjectError
from engine.project import ModelText

if TYPE_CHECKING:
    from engine.compile.declarations.compile_context import CompileContext

_NAME = re.compile(r"[\w.`]+")


@dataclass(frozen=True, slots=True)
class NamePlace:
    """A column's name in the file of a model, and what it means.

    `text` is as written, with what qualifies it; `origins` are node and column of what its values come from.
    """

    start: Location
    text: str
    type: str | None
    origins: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class EditedModel:
    """A model as it is in an editor, compiled as far as that is possible.

    `reads`: where it names nodes, by id. `outputs`: where its columns are made, in order. `steps`: columns of its CTEs
    and subqueries, by name and alias in lower case. `query_names` None: its SQL cannot be read.
    """

    model: Model
    problems: tuple[Diagnostic, ...]
    names: tuple[NamePlace, ...] = ()
    reads: tuple[tuple[str, Location], ...] = ()
    inputs: Mapping[str, tuple[tuple[str, str | None], ...]] | None = None
    outputs: tuple[Location, ...] = ()
    steps: Mapping[str, tuple[tuple[str, str | None], ...]] | None = None
    query_names: QueryNames | None = None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a compilation knows of all models, for compiling one again; `cached_models` is empty if none is kept."""

    compiled: Compiled
    cached_models: Mapping[str, CachedModel]
    variables: Mapping[str, Any]

    def compile(self, text: ModelText) -> EditedModel:
        """Compile a model with another text.

        Raises:
            ProjectError: `template-too-large`, `model-too-large`.
            SetupError: `process-ended`.
        """
        from engine.compile.pipeline.incremental import load_all
        from engine.compile.templates.confined_process import run_confined

        load_all()
        edited: EditedModel = run_confined(_compile_edited, self, text)
        return edited

    def test_names(self, file: str, text: str) -> QueryNames | None:
        """Return the names in the SQL of a singular test; None: it cannot be read.

        Raises:
            ProjectError: `template-too-large`.
            SetupError: `process-ended`.
        """
        from engine.compile.pipeline.incremental import load_all
        from engine.compile.templates.confined_process import run_confined

        load_all()
        result: QueryNames | None = run_confined(_test_names, self, file, text)
        return result


def neighbours(compiled: Compiled, cached: Path | None, variables: Mapping[str, Any]) -> Neighbours:
    """What the last compilation, which `cached` keeps, knows of the models."""
    try:
        cached_models = compile_cache.load(cached, compiled.target).cached_models()
    except msgspec.MsgspecError:
        cached_models = {}
    return Neighbours(compiled, cached_models, variables)


def _context(neighbourhood: Neighbours) -> CompileContext:
    from engine.compile.declarations.compile_context import share
    from engine.compile.templates.rendered_values import ValueRenderer

    project, target = neighbourhood.compiled.project, neighbourhood.compiled.target
    names = names_of(project, neighbourhood.variables, os.environ)
    names.target = {"name": target.name, "schema": target.schema, "catalog": target.catalog.name}
    return share(project, target, names, ValueRenderer(names.for_values()), [])


def _test_names(neighbourhood: Neighbours, file: str, text: str) -> QueryNames | None:
    from engine.compile.columns.find_columns import bind
    from engine.compile.nodes.manifest import Source
    from engine.compile.output.infer_columns import source_columns
    from engine.compile.sql.parse import parse
    from engine.compile.templates.template_names import REF, SOURCE

    shared = _context(neighbourhood)
    shared.names.begin()
    try:
        rendered = shared.sandbox.render(text, file)
    except ProjectError:
        return None
    query = parse(rendered, file, [])
    if query is None:
        return None
    inputs = {}
    for node_id, node in neighbourhood.compiled.manifest.nodes.items():
        if isinstance(node, Model):
            columns = tuple((column.name, column.type) for column in node.columns)
            inputs[f"{REF}{node.name}"] = InputColumns(node_id, columns)
        elif isinstance(node, Source):
            inputs[f"{SOURCE}{node.name}"] = source_columns(node)
    return query_names(bind(query.tree, inputs, {}, rendered.text, query.items, with_uses=True), rendered)


def _compile_edited(neighbourhood: Neighbours, text: ModelText) -> EditedModel:
    from engine.compile.artifacts.node_json import Nodes
    from engine.compile.pipeline.parse_model import read_model
    from engine.compile.pipeline.project_graph import known_names, loops_of, selected_names
    from engine.compile.pipeline.worker import LocalWorker
    from engine.secrets.scrubber import scrubber

    shared = _context(neighbourhood)
    node = f"model.{text.name}"
    local = LocalWorker(shared, {node: text})
    face = local.read([node])[node]
    faces = {i: model.face for i, model in neighbourhood.cached_models.items()} | {node: face}
    enabled = {i: one for i, one in faces.items() if one.enabled}
    looped = frozenset(i for loop in loops_of(enabled) for i in loop)
    known_nodes = known_names(faces.values(), shared.sources, sources_whole=shared.sources_whole)
    local.meet(known_nodes, selected_names(enabled.values(), shared.sources), looped)
    given_nodes = {
        i: bytes(neighbourhood.cached_models[i].given)
        for i in _needed_models(node, face.reads, neighbourhood.cached_models)
    }
    entry = local.finish([node], given_nodes)[node]
    model = Nodes({node: None}, {one.id: one.json for one in entry.nodes}.__getitem__)[node]
    if not isinstance(model, Model):
        raise TypeError(node)
    clean = scrubber()
    problems = tuple(replace(d, message=clean(d.message), hint=clean(d.hint)) for d in entry.problems)
    edited = EditedModel(model, problems)
    read = read_model(text, shared)
    if read.query is None or read.rendered is None:
        return edited
    columns = local.columns_of({*face.reads, *(item.node for item in model.inputs)})
    bound = _bound(read, model, columns)
    inputs = {i: one.columns or () for i, one in columns.items()}
    reads = tuple(
        (f"{'model' if r.kind == 'ref' else 'source'}.{r.name}", read.rendered.location(r.start))
        for r in read.query.references
        if r.kind != "this"
    )
    return replace(
        edited,
        names=tuple(_places(bound, read)),
        reads=reads,
        inputs=inputs,
        outputs=tuple(_outputs(bound, read)),
        steps=dict(_steps(bound)),
        query_names=query_names(bound, read.rendered),
    )


def _steps(bound: Any) -> Iterator[tuple[str, tuple[tuple[str, str | None], ...]]]:
    for name, step in bound.noted.steps.items():
        yield name, tuple((column.name, column.value.type) for column in step.columns if column.named)


def _needed_models(node: str, reads: tuple[str, ...], cached_models: Mapping[str, CachedModel]) -> Iterator[str]:
    """The models that a model reads, and what the ephemeral ones among them read."""
    for i in reads:
        if i in cached_models and i != node:
            yield i
            if cached_models[i].face.is_inlined:
                yield from (inner for inner in cached_models[i].reads if inner in cached_models and inner != node)


def _bound(read: Any, model: Model, columns: Mapping[str, InputColumns]) -> Any:
    from engine.compile.output.infer_columns import bound_query

    inputs = [item for item in model.inputs if not item.through]
    reads = (inputs, model.inlined)
    return bound_query(read.query, read.rendered, read.windows, reads, columns, with_uses=True)


def _places(bound: Any, read: Any) -> Iterator[NamePlace]:
    text = read.rendered.text
    for start, (end, value) in sorted(bound.noted.names.items()):
        # The names in windows and watermarks have offsets in texts of their own: there, this text has other characters.
        if read.rendered.is_literal(start) and _NAME.fullmatch(text[start:end]):
            yield NamePlace(read.rendered.location(start), text[start:end], value.type, value.origins)


def _outputs(bound: Any, read: Any) -> Iterator[Location]:
    from engine.compile.columns.column_texts import starts

    columns = bound.columns.columns or ()
    begins = starts(read.rendered.text, read.query.items, read.query.tree, [column.name for column in columns])
    return (read.rendered.location(begin) for begin in begins)
