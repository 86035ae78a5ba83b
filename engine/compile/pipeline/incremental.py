"""Compile what the cache does not have: models are read, brought into order, and finished one after the other.

No two writers may have one table name, in any letter case: Spark reads names so, and so do Hive, Glue and some REST
catalogs; those that distinguish letter case have no use for two tables that differ in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module

from engine.compile.artifacts.dbt_manifest import About
from engine.compile.artifacts.node_json import Encoded, Nodes, digest, encoded, to_json
from engine.compile.declarations.compile_context import CompileContext, share
from engine.compile.declarations.exposures import read_exposures
from engine.compile.declarations.sinks import read_sinks
from engine.compile.declarations.target import Target
from engine.compile.nodes import topological_order
from engine.compile.nodes.manifest import DataTest, Node, Source
from engine.compile.nodes.model_interface import ModelInterface
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.compile.output.infer_columns import source_columns
from engine.compile.output.stream_columns import source_faults
from engine.compile.pipeline.compile_cache import CachedModel, NodePlace, Now, StoredCompilation, env_digests
from engine.compile.pipeline.dag_executor import Before, Flow
from engine.compile.pipeline.parse_model import read_model
from engine.compile.pipeline.project_graph import (
    known_names,
    loop_finding,
    loops_of,
    own_tables,
    selected_names,
    taken_files,
)
from engine.compile.pipeline.worker import LocalWorker
from engine.compile.pipeline.worker_pool import compile_workers
from engine.compile.references.resolve_references import KnownNodes
from engine.compile.sql.dialect import spark
from engine.compile.templates.rendered_values import ValueRenderer
from engine.compile.templates.template_names import TemplateNames
from engine.compile.test_nodes.data_test_nodes import missing_in_tests, source_tests
from engine.compile.test_nodes.singular_tests import KIND as SINGULAR
from engine.compile.test_nodes.singular_tests import read_singular
from engine.compile.test_nodes.unit_test_nodes import read_unit_tests
from engine.errors import Diagnostic, Location
from engine.node_ids import repeated
from engine.project import LoadedProject, ModelText
from engine.relations import Relation
from engine.secrets.scrubber import scrubber
from engine.sources import ValueForm, kind_of
from engine.sources.listing import is_uri

# Staging tables and initial snapshots beside a model's table.
_BESIDE = re.compile(r"(?P<table>.+)__(?:g\d++|seed\d++_(?:(?!__seed)\w)+)")


@dataclass(frozen=True, slots=True)
class _Writer:
    """What writes a table: a model, or a test that keeps its failing rows."""

    relation: Relation
    called: str
    file: str
    place: Location
    node: str

    @property
    def key(self) -> tuple[str, str]:
        """The table, as a catalog without letter case names it."""
        return self.relation.schema.lower(), self.relation.name.lower()

    @property
    def written_at(self) -> str:
        """Where it is: a test is among others of its file."""
        return str(self.place) if self.called.startswith("the test") else self.file


def shared_tables(faces: Iterable[ModelInterface], tests: Iterable[Node]) -> Iterator[Diagnostic]:
    """Findings about tables that have several writers.

    Args:
        faces: of the models.
        tests: data tests; those that keep no rows write nothing.
    """
    models = [_of_model(face) for face in faces if face.in_catalog]
    writers: dict[tuple[str, str], _Writer] = {}
    for one in [*models, *_of_tests(tests)]:
        first = writers.setdefault(one.key, one)
        if first is not one:
            message = f"{one.called} and {first.called} ({first.written_at}) both write {one.relation}"
            hint = "Give one of them another 'alias' or 'schema'."
            if one.called.startswith("the test"):
                hint = "Give the test another 'name'."
            yield Diagnostic("duplicate-table", message, hint, node=one.node, location=one.place)
    yield from _internal_name_clashes(models, writers)


def renamed_twice(faces: Iterable[ModelInterface]) -> Iterator[Diagnostic]:
    """Findings about models that are to continue a table that another model of the project has, or is to continue."""
    every = [face for face in faces if face.in_catalog]
    first: dict[str, ModelInterface] = {}
    for face in every:
        if not (name := face.renamed_from.lower()):
            continue
        place = Location(face.file)
        owner = next((other for other in every if other is not face and name in _table_names(other)), None)
        if owner is not None:
            message = f"'{face.name}' is renamed from '{face.renamed_from}', but that is '{owner.name}' ({owner.file})"
            hint = (
                f"Remove {owner.file}; or 'renamed_from', if each target was built since and '{owner.name}' is a new "
                "model of that name."
            )
            yield Diagnostic("renamed-from", message, hint, node=face.name, location=place)
        elif (other := first.setdefault(name, face)) is not face:
            message = f"'{face.name}' and '{other.name}' ({other.file}) are both renamed from '{face.renamed_from}'"
            hint = "One of them continues its table: remove 'renamed_from' from the other, which begins with a new one."
            yield Diagnostic("renamed-from", message, hint, node=face.name, location=place)


def _table_names(face: ModelInterface) -> set[str]:
    """The names by which a model or its table may be meant, in lower case."""
    relation = face.relation
    whole = f"{relation.schema}.{relation.name}"
    return {name.lower() for name in (face.name, relation.name, whole, f"{relation.catalog}.{whole}")}


def _internal_name_clashes(models: Iterable[_Writer], writers: dict[tuple[str, str], _Writer]) -> Iterator[Diagnostic]:
    for one in models:
        match = _BESIDE.fullmatch(one.relation.name)
        owner = writers.get((one.key[0], match["table"])) if match else None
        if owner is not None:
            message = f"{one.called} writes {one.relation}, a name that {owner.called} ({owner.file}) needs"
            hint = "Set another 'alias'; <table>__g<n> is a full refresh, <table>__seed<n>_<name> an initial snapshot."
            yield Diagnostic("duplicate-table", message, hint, node=one.node, location=one.place)


def _of_model(face: ModelInterface) -> _Writer:
    return _Writer(face.relation, f"'{face.name}'", face.file, face.place or Location(face.file), face.name)


def _of_tests(tests: Iterable[Node]) -> Iterator[_Writer]:
    for test in tests:
        if isinstance(test, DataTest) and test.stored is not None:
            place = test.location or Location(test.file)
            yield _Writer(test.stored, f"the test '{test.name}'", test.file, place, test.name)


def load_all() -> None:
    """Load what compiling loads at its first use, before a process is forked for it: the next one is forked again."""
    from engine.jinja import sandbox  # noqa: F401

    import_module("jinja2.ext")
    import_module("pprint")
    spark()


@dataclass(frozen=True, slots=True)
class _FinishedModels:
    """The enabled models of a project; `loops` are the cycles of their references."""

    files: Mapping[str, ModelText]
    faces: Mapping[str, ModelInterface]
    known_nodes: KnownNodes
    loops: list[tuple[str, ...]]
    models: Mapping[str, CachedModel]
    fresh: Mapping[str, tuple[Encoded, str]]


def compile_models(
    project: LoadedProject,
    target: Target,
    names: TemplateNames,
    values: ValueRenderer,
    diagnostics: list[Diagnostic],
    before: StoredCompilation,
    now: Now,
    deferred: Mapping[str, Relation],
) -> StoredCompilation:
    """Compile what has changed since an earlier compilation; findings are added to those in `diagnostics`.

    `before` is as far as it may be used; `deferred`: see `compile_project`.
    """
    shared = share(project, target, names, values, diagnostics)
    env = env_digests(names.used_env, names.env)
    about = About(project.name)
    sources = {i: encoded(source, about) for i, source in shared.sources.items()}
    hashes = {i: digest(source.json) for i, source in sources.items()}
    finished = _finish_models(shared, hashes, before, now, deferred)
    diagnostics += _model_findings(finished, shared)
    models = finished.models
    compilation = _compilation_of(
        before, now, models, {**finished.fresh, **{i: (node, hashes[i]) for i, node in sources.items()}}
    )
    nodes = Nodes({**shared.sources, **dict.fromkeys(models)}, compilation.json)
    names.begin()
    tests = {test.id: encoded(test, about) for test in _read_tests(shared, finished, compilation, nodes, diagnostics)}
    exposures = {e.id: encoded(e, about) for e in read_exposures(project, nodes, values, diagnostics)}
    sinks = {sink.id: encoded(sink, about) for sink in read_sinks(project, target, nodes, values, diagnostics)}
    ends = {**exposures, **sinks}
    env |= env_digests(names.used_env, names.env)
    fresh = {**compilation.fresh, **{i: (node, digest(node.json)) for i, node in {**tests, **ends}.items()}}
    ids = (*sources, *(i for model in models.values() for i in model.nodes), *tests, *ends)
    diagnostics += repeated(ids)
    ordered = (i for i in ids if i not in sources and i not in ends)
    depends = {i: _dependencies(i, fresh, compilation.places) for i in ordered}
    same = not finished.loops and depends == {i: before.places[i].depends_on for i in before.order}
    return replace(
        compilation,
        # Whether a folder is a link is not part of the files' text.
        repeatable=compilation.repeatable and not any(problem.code == "path-outside" for problem in diagnostics),
        env=env,
        env_all={**{name: value for model in models.values() for name, value in model.env.items()}, **env},
        sources=hashes,
        folders=tuple(dict.fromkeys(folder for source in shared.sources.values() for folder in _folders(source))),
        nodes=ids,
        order=before.order if same else _order(depends, alphabetic=bool(finished.loops)),
        found=_sort_diagnostics(diagnostics),
        fresh=fresh,
    )


def _finish_models(
    shared: CompileContext,
    sources: Mapping[str, str],
    before: StoredCompilation,
    now: Now,
    deferred: Mapping[str, Relation],
) -> _FinishedModels:
    """Read the models whose files have changed, and finish all; `sources` are hashes of the sources as they are now."""
    files = {f"model.{model.name}": model for model in shared.project.models}
    cached = before.cached_models()
    fresh = frozenset(i for i in files if i in cached and cached[i].fresh(now.texts[i], shared.names.env))
    stale = len(files) - len(fresh) if sources == before.sources else len(files)
    with compile_workers(LocalWorker(shared, files), stale) as workers:
        read = workers.read([i for i in files if i not in fresh])
        faces = {i: cached[i].face if i in fresh else read[i] for i in files}
        known_nodes = known_names(faces.values(), shared.sources, sources_whole=shared.sources_whole)
        known_nodes = replace(known_nodes, relations={**known_nodes.relations, **deferred}, deferred=deferred)
        faces = {i: face for i, face in faces.items() if face.enabled}
        loops = loops_of(faces)
        looped = frozenset(i for loop in loops for i in loop)
        workers.meet(known_nodes, selected_names(faces.values(), shared.sources), looped)
        flow = Flow(faces, looped, Before(cached, fresh, before.sources), sources, now.texts, now.shared)
        flow.run(workers)
    return _FinishedModels(files, faces, known_nodes, loops, {i: flow.models[i] for i in faces}, flow.nodes)


def _model_findings(finished: _FinishedModels, shared: CompileContext) -> Iterator[Diagnostic]:
    faces, sources = finished.faces.values(), shared.sources
    yield from taken_files(faces, sources)
    yield from own_tables(faces, sources)
    for loop in finished.loops:
        yield loop_finding(loop, lambda i, name: read_model(finished.files[i], shared).place_of(name))
    of_sources = event_times(sources)
    yield from of_sources
    # What is wrong with a source's watermark is not repeated for each model that streams it.
    reported = {(problem.code, problem.message) for problem in of_sources}
    problems = (problem for model in finished.models.values() for problem in model.problems)
    yield from (problem for problem in problems if (problem.code, problem.message) not in reported)


def _read_tests(
    shared: CompileContext,
    finished: _FinishedModels,
    compilation: StoredCompilation,
    nodes: Mapping[str, Node],
    diagnostics: list[Diagnostic],
) -> tuple[DataTest | UnitTest, ...]:
    """Read the tests that are declared elsewhere than with a model, and report what is wrong across nodes."""
    models, faces = finished.models, finished.faces.values()
    tests: tuple[DataTest, ...] = (
        *source_tests(shared, finished.known_nodes, diagnostics),
        *read_singular(shared, finished.known_nodes, diagnostics),
    )
    diagnostics += missing_in_tests((*_across_nodes(models, compilation), *filter(_is_across, tests)), nodes)
    kept_rows = {i: None for model in models.values() for i in model.nodes if _keeps_rows(i, compilation)}
    diagnostics += shared_tables(faces, (*Nodes(kept_rows, compilation.json).values(), *tests))
    diagnostics += renamed_twice(faces)
    return (*tests, *read_unit_tests(shared.project, nodes, shared.values, diagnostics))


def _compilation_of(
    before: StoredCompilation, now: Now, models: Mapping[str, CachedModel], fresh: Mapping[str, tuple[Encoded, str]]
) -> StoredCompilation:
    used_nodes = {i for model in models.values() for i in model.nodes if i not in fresh}
    return StoredCompilation(
        shared=now.shared,
        files=now.files,
        repeatable=all(model.certain for model in models.values()),
        models=to_json(models),
        fresh=fresh,
        places={i: place for i, place in before.places.items() if i in used_nodes},
        data=before.data,
    )


def _across_nodes(models: Mapping[str, CachedModel], compilation: StoredCompilation) -> Iterator[Node]:
    """Yield the models' tests that read several nodes; most do not, and need not be decoded."""
    tests = (i for model in models.values() for i in model.nodes if i.startswith("test."))
    across = {i: None for i in tests if len(_dependencies(i, compilation.fresh, compilation.places)) > 1}
    yield from Nodes(across, compilation.json).values()


def _is_across(test: Node) -> bool:
    return isinstance(test, DataTest) and (test.kind == SINGULAR or len(test.depends_on) > 1)


def _keeps_rows(node: str, compilation: StoredCompilation) -> bool:
    """Whether a node may be a test that keeps its failing rows."""
    return node.startswith("test.") and b'"stored":{' in bytes(compilation.json(node))


def event_times(sources: Mapping[str, Source]) -> list[Diagnostic]:
    """Findings about the watermarks and dedups that sources give to every stream, also where no stream reads one."""
    checked = (source for source in sources.values() if not source.broken)
    return [fault for source in checked for fault in source_faults(source, source_columns(source))]


def _folders(source: Source) -> Iterator[str]:
    kind = kind_of(source.spec.format)
    for key, form in (kind.KEYS if kind else {}).items():
        folder = source.spec.settings.get(key)
        if form is ValueForm.PATH and folder and not is_uri(folder):
            yield folder


def _dependencies(i: str, fresh: Mapping[str, tuple[Encoded, str]], places: Mapping[str, NodePlace]) -> tuple[str, ...]:
    return fresh[i][0].depends_on if i in fresh else places[i].depends_on


def _order(depends: Mapping[str, tuple[str, ...]], *, alphabetic: bool) -> tuple[str, ...]:
    """Models and tests, each after what it depends on."""
    parents = {i: tuple(p for p in some if p in depends) for i, some in depends.items()}
    return tuple(sorted(parents)) if alphabetic else topological_order.order(parents)


# Errors that may cause others in files that come before theirs.
_CAUSES = frozenset({"duplicate-name", "bad-schema"})


def _sort_diagnostics(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """All findings once, errors first, causes before the others, in the order of the files; no secret is in them."""
    clean = scrubber()
    diagnostics = (replace(d, message=clean(d.message), hint=clean(d.hint)) for d in diagnostics)
    return tuple(sorted(dict.fromkeys(diagnostics), key=_sort_key))


def _sort_key(diagnostic: Diagnostic) -> tuple[bool, bool, str, int, int, str, str]:
    place = diagnostic.location or Location("", 0, 0)
    behind = diagnostic.code not in _CAUSES
    return (not diagnostic.is_error, behind, place.file, place.line, place.column, diagnostic.code, diagnostic.message)
