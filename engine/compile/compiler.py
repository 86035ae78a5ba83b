"""Stage 2 from end to end: a project becomes a manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from engine.compile import graph
from engine.compile.aggregates import is_stateful
from engine.compile.column_config import TestConfig
from engine.compile.config import ModelConfig, model_config
from engine.compile.context import Names
from engine.compile.data_tests import compile_tests
from engine.compile.fingerprint import facts, fingerprint
from engine.compile.inputs import Draft, Known, resolve
from engine.compile.layers import check_folder_defaults
from engine.compile.lower import splice
from engine.compile.manifest import (
    Input,
    Manifest,
    Materialized,
    Model,
    Node,
    Relation,
    Source,
    SourceMap,
)
from engine.compile.output import check_columns
from engine.compile.output_mode import decide, rewrites
from engine.compile.sources import read_sources
from engine.compile.sql import Query, parse
from engine.compile.target import Target, load_target
from engine.compile.typed import Parsed, typed
from engine.compile.values import Values
from engine.compile.window_uses import lower_windows
from engine.compile.windows import Window, read_windows
from engine.errors import Diagnostic, Location, ProjectError
from engine.jinja import MacroFile, Rendered, Sandbox
from engine.project import ModelFile, Project
from engine.secrets import scrub


@dataclass(frozen=True, slots=True)
class Compiled:
    """The manifest, and the target it was compiled for (which alone holds secrets)."""

    manifest: Manifest
    target: Target


@dataclass(slots=True)
class _Work:
    """A model on its way; `certain` if its settings could be read."""

    file: ModelFile
    config: ModelConfig
    rendered: Rendered | None
    query: Query | None
    relation: Relation
    certain: bool
    windows: tuple[Window, ...] = ()
    problems: list[Diagnostic] = field(default_factory=list)


def compile_project(
    project: Project,
    *,
    target: str | None = None,
    variables: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Compiled:
    """Compile a project.

    Args:
        project: what `load_project` read.
        target: name of the target; None: the project's default.
        variables: values of --vars; they win over the project's.
        env: the environment; None: the process's own.

    Returns:
        The manifest with every finding of the project in it, sorted; it never raises for a user's mistake.
    """
    found = list(project.diagnostics)
    names = Names({**project.vars, **(variables or {})}, os.environ if env is None else env)
    values = Values(Sandbox(names.for_values()), names.for_values())
    names.secrets_allowed = True
    chosen = load_target(project, target, values, found)
    names.secrets_allowed = False
    names.target = {"name": chosen.name, "schema": chosen.schema, "catalog": chosen.catalog.name}
    sandbox = Sandbox(names.for_models())
    found += sandbox.add_macros([*_own_macros(), *project.macros])
    sources, source_tests = read_sources(project, chosen.name, values, found)
    found += [_source_test(test) for tests in source_tests.values() for test in tests]
    check_folder_defaults(project, found)
    works = [_read_model(project, model, names, sandbox, values, chosen) for model in project.models]
    known = _known(works, sources, project)
    works = [work for work in works if work.config.enabled]
    _check_tables(works, found)
    nodes: dict[str, Node] = dict(sources)
    columns = _known_columns(works, sources)
    for work in works:
        model = _finish(work, known, nodes, columns)
        nodes[model.id] = model
    for work in works:
        config = work.config
        tests = compile_tests(work.file.name, work.file.file, config.tests, sandbox, known, work.problems)
        nodes.update({test.id: replace(test, tags=config.tags) for test in tests})
        found += work.problems
    order = _order(nodes, works, found)
    nodes.update(typed(nodes, order, _parsed(works, nodes), found))
    diagnostics = _sorted(found, names.env)
    return Compiled(Manifest(project.name, project.version, chosen.name, nodes, order, diagnostics), chosen)


def _parsed(works: list[_Work], nodes: Mapping[str, Node]) -> dict[str, Parsed]:
    """The texts of the models whose references are whole."""
    found = {}
    for work in works:
        model = nodes[f"model.{work.file.name}"]
        if work.query is not None and work.rendered is not None and isinstance(model, Model) and model.fingerprint:
            found[model.id] = Parsed(work.query, work.rendered, work.windows)
    return found


def _sorted(found: list[Diagnostic], env: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """All findings once, errors first, in the order of the files; no secret is in them."""
    clean = (replace(d, message=scrub(d.message, env), hint=scrub(d.hint, env)) for d in found)
    return tuple(sorted(dict.fromkeys(clean), key=_sort_key))


def _sort_key(diagnostic: Diagnostic) -> tuple[bool, str, int, int, str, str]:
    place = diagnostic.location or Location("", 0, 0)
    error = diagnostic.is_error
    return (not error, place.file, place.line, place.column, diagnostic.code, diagnostic.message)


def _own_macros() -> list[MacroFile]:
    folder = resources.files("engine") / "macros"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [MacroFile(f"engine/macros/{f.name}", f.read_text(encoding="utf-8")) for f in files]


def _source_test(test: TestConfig) -> Diagnostic:
    message = "tests on sources are not part of this version"
    hint = "Test the model that reads the source."
    return Diagnostic("not-supported", message, hint, location=test.location)


def _read_model(
    project: Project, model: ModelFile, names: Names, sandbox: Sandbox, values: Values, target: Target
) -> _Work:
    problems: list[Diagnostic] = []
    names.calls = []
    rendered: Rendered | None = None
    try:
        rendered = sandbox.render(model.sql, model.file)
    except ProjectError as error:
        problems += [d.at(None, model.name) for d in error.diagnostics]
    certain = not model.broken and (rendered is not None or "config" not in model.sql)
    config = model_config(project, model, names.calls, values, problems, certain=certain)
    readable = rendered is not None and config.enabled and not (model.broken and not model.sql.strip())
    query = parse(rendered, model.name, problems) if rendered is not None and readable else None
    schema = f"{target.schema}_{config.schema}" if config.schema else target.schema
    relation = Relation(target.catalog.name, schema, config.alias or model.name)
    windows = read_windows(config.windows, model.name, problems)
    return _Work(model, config, rendered, query, relation, certain, windows, problems)


def _known(works: list[_Work], sources: Mapping[str, Source], project: Project) -> Known:
    enabled = [w for w in works if w.config.enabled]
    return Known(
        relations={w.file.name: w.relation for w in enabled},
        kinds={w.file.name: w.config.materialized for w in enabled if w.certain},
        sources=sources,
        disabled=frozenset(w.file.name for w in works if not w.config.enabled),
        sources_whole=project.sources_whole,
        rewritten={w.file.name: why for w in enabled if (why := rewrites(w.config.write))},
    )


def _known_columns(works: list[_Work], sources: Mapping[str, Source]) -> dict[str, frozenset[str]]:
    """The columns of models and sources, in lower case, as far as they stand in the text."""
    known = {s.name: frozenset(column.name.lower() for column in s.columns) for s in sources.values()}
    for work in works:
        if work.query is not None:
            selected = (name.lower() for name in work.query.tree.named_selects)  # type: ignore[attr-defined]
            known[work.file.name] = frozenset(name for name in selected if name and name != "*")
    return known


def _check_tables(works: list[_Work], found: list[Diagnostic]) -> None:
    writers: dict[Relation, _Work] = {}
    for work in works:
        first = writers.setdefault(work.relation, work)
        if first is not work:
            name, other = work.file.name, first.file
            message = f"'{name}' and '{other.name}' ({other.file}) both write {work.relation}"
            hint = "Give one of them another 'alias' or 'schema'."
            place = work.config.alias_place or Location(work.file.file)
            found.append(Diagnostic("duplicate-table", message, hint, node=name, location=place))


def _finish(work: _Work, known: Known, nodes: Mapping[str, Node], columns: Mapping[str, frozenset[str]]) -> Model:
    config, file = work.config, work.file
    model = Model(
        id=f"model.{file.name}",
        name=file.name,
        file=file.file,
        description=config.description,
        materialized=config.materialized,
        relation=work.relation,
        raw_sql=file.sql,
        sql="",
        columns=config.columns,
        expectations=config.expectations,
        operation=config.operation,
        contract=config.contract,
        title=config.title,
        tags=config.tags,
        meta=config.meta,
        windows={w.name: w.sql for w in work.windows},
        state_partitions=config.state_partitions,
        broken=True,
    )
    if work.query is None or work.rendered is None:
        return model
    draft = Draft(file.name, config, work.rendered, work.query, work.certain, work.problems)
    inputs, edits = resolve(draft, known, work.relation)
    lowered = lower_windows(work.query, work.windows, _with_event_time(columns, inputs), draft.report)
    _check_windows(draft, work.windows, lowered.used)
    sql, positions = splice(work.rendered, edits + lowered.edits, work.query.end)
    model = replace(model, sql=sql, inputs=inputs, positions=SourceMap(positions.runs, config.places))
    try:
        return _with_facts(model, draft, work, nodes)
    except RecursionError:
        start = len(work.rendered.text) - len(work.rendered.text.lstrip())
        draft.report("sql-too-deep", "the SQL is nested too deeply", "Use CTEs.", start)
        return model


def _with_facts(model: Model, draft: Draft, work: _Work, nodes: Mapping[str, Node]) -> Model:
    config, query = work.config, draft.query
    streaming = config.materialized is Materialized.STREAMING_TABLE
    streams = [i for i in model.inputs if i.stream]
    stateful = streaming and is_stateful(query.tree, len(streams), dedup=any(i.dedup for i in streams))
    write = config.write
    if streaming:
        write = decide(write, query, work.windows, frozenset(i.name for i in streams), config.places, draft.report)
    if work.certain:
        check_columns(config.named, config.write, query.tree, config.places, draft.report)
    known = facts(
        materialized=config.materialized,
        relation=work.relation,
        query=query,
        windows=model.windows,
        inputs=model.inputs,
        nodes=nodes,
        write=write,
        stateful=stateful,
        expectations=config.expectations,
    )
    return replace(
        model,
        write=write,
        stateful=stateful,
        fingerprint=fingerprint(known),
        facts=known,
        broken=not work.certain or any(d.is_error for d in work.problems),
    )


def _with_event_time(columns: Mapping[str, frozenset[str]], inputs: tuple[Input, ...]) -> dict[str, frozenset[str]]:
    """The columns of the inputs, with those that watermarks add."""
    added = {i.name: {i.watermark.column.lower()} if i.watermark else set() for i in inputs}
    return {name: columns.get(name, frozenset()) | extra for name, extra in added.items()}


def _check_windows(draft: Draft, windows: tuple[Window, ...], used: set[str]) -> None:
    for window in windows:
        if window.name not in used:
            message = f"the query does not use the window '{window.name}'"
            hint = f"Group by it ('group by {window.name}'), or take it out."
            draft.report("window-unused", message, hint, window.location)


def _order(nodes: dict[str, Node], works: list[_Work], found: list[Diagnostic]) -> tuple[str, ...]:
    parents = {i: n.depends_on for i, n in nodes.items() if not isinstance(n, Source)}
    loops = graph.cycles({i: p for i, p in parents.items() if i.startswith("model.")})
    by_name = {work.file.name: work for work in works}
    for loop in loops:
        path = [node.removeprefix("model.") for node in reversed(loop)]
        work = by_name[path[0]]
        place = _reference_place(work, path[1])
        said = "the model reads itself" if path[0] == path[1] else f"a cycle: {' reads '.join(path)}"
        hint = "Take one of these references out; {{ this }} reads a model's own table."
        found.append(Diagnostic("ref-cycle", said, hint, node=path[0], location=place))
        for name in path:
            model = nodes[f"model.{name}"]
            nodes[model.id] = replace(model, broken=True) if isinstance(model, Model) else model
    if loops:
        return tuple(sorted(parents))
    return tuple(i for i in graph.order(_without_sources(parents)) if i in parents)


def _reference_place(work: _Work, name: str) -> Location:
    if work.query is not None and work.rendered is not None:
        for reference in work.query.references:
            if reference.kind == "ref" and reference.name == name:
                return work.rendered.location(reference.start)
    return Location(work.file.file)


def _without_sources(parents: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {i: tuple(p for p in ps if p in parents) for i, ps in parents.items()}
