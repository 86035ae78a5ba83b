"""Stage 2 from end to end: a project becomes a manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from engine.compile import graph
from engine.compile.config import ModelConfig, TestConfig, check_folder_defaults, model_config
from engine.compile.context import Names
from engine.compile.data_tests import compile_tests
from engine.compile.fingerprint import facts, fingerprint
from engine.compile.inputs import Draft, Known, resolve
from engine.compile.lower import splice
from engine.compile.manifest import Manifest, Materialized, Model, Node, Relation, Source, SourceMap, Write
from engine.compile.sources import read_sources
from engine.compile.sql import Query, is_stateful, normalised, parse
from engine.compile.target import Target, load_target
from engine.compile.windows import Window, lower_windows, read_windows
from engine.errors import Diagnostic, Location, ProjectError
from engine.jinja import MacroFile, Rendered, Sandbox
from engine.project import ModelFile, Project


@dataclass(frozen=True, slots=True)
class Compiled:
    """The manifest, and the target it was compiled for (which alone holds secrets)."""

    manifest: Manifest
    target: Target


@dataclass(slots=True)
class _Work:
    """A model on its way."""

    file: ModelFile
    config: ModelConfig
    rendered: Rendered | None
    query: Query | None
    relation: Relation
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
    values = Sandbox(names.for_values())
    names.secrets_allowed = True
    chosen = load_target(project, target, values, names.for_values(), found)
    names.secrets_allowed = False
    names.target = {"name": chosen.name, "schema": chosen.schema, "catalog": chosen.catalog.name}
    sandbox = Sandbox(names.for_models())
    found += sandbox.add_macros([*_own_macros(), *project.macros])
    sources, source_tests = read_sources(project, chosen.name, values, names.for_values(), found)
    for tests in source_tests.values():
        found += [_source_test(test) for test in tests]
    check_folder_defaults(project, found)
    works = [_read_model(project, model, names, sandbox, values, chosen) for model in project.models]
    known = _known(works, sources)
    works = [work for work in works if work.config.enabled]
    _check_tables(works, found)
    nodes: dict[str, Node] = dict(sources)
    for work in works:
        model = _finish(work, known, nodes)
        nodes[model.id] = model
    for work in works:
        tests = compile_tests(
            work.file.name, work.file.file, work.config.tests, sandbox, known, work.problems
        )
        nodes.update({test.id: replace(test, tags=work.config.tags) for test in tests})
        found += work.problems
    order = _order(nodes, found)
    unique = dict.fromkeys(found)
    manifest = Manifest(
        project.name, project.version, chosen.name, nodes, order, tuple(sorted(unique, key=_sort_key))
    )
    return Compiled(manifest, chosen)


def _sort_key(diagnostic: Diagnostic) -> tuple[bool, str, int, int, str]:
    place = diagnostic.location or Location("", 0, 0)
    return (not diagnostic.is_error, place.file, place.line, place.column, diagnostic.code)


def _own_macros() -> list[MacroFile]:
    folder = resources.files("engine") / "macros"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [MacroFile(f"engine/macros/{f.name}", f.read_text(encoding="utf-8")) for f in files]


def _source_test(test: TestConfig) -> Diagnostic:
    hint = "Test the model that reads the source."
    return Diagnostic(
        "not-supported", "tests on sources are not part of this version", hint, location=test.location
    )


def _read_model(
    project: Project, model: ModelFile, names: Names, sandbox: Sandbox, values: Sandbox, target: Target
) -> _Work:
    problems: list[Diagnostic] = []
    names.calls = []
    rendered: Rendered | None = None
    try:
        rendered = sandbox.render(model.sql, model.file)
    except ProjectError as error:
        problems += [d.at(None, model.name) for d in error.diagnostics]
    config = model_config(project, model, names.calls, values, names.for_values(), problems)
    query = parse(rendered, model.name, problems) if rendered is not None and config.enabled else None
    schema = f"{target.schema}_{config.schema}" if config.schema else target.schema
    relation = Relation(target.catalog.name, schema, config.alias or model.name)
    windows = read_windows(config.windows, model.name, problems)
    return _Work(model, config, rendered, query, relation, windows, problems)


def _known(works: list[_Work], sources: Mapping[str, Source]) -> Known:
    enabled = [w for w in works if w.config.enabled]
    return Known(
        relations={w.file.name: w.relation for w in enabled},
        kinds={w.file.name: w.config.materialized for w in enabled},
        sources=sources,
        disabled=frozenset(w.file.name for w in works if not w.config.enabled),
    )


def _check_tables(works: list[_Work], found: list[Diagnostic]) -> None:
    writers: dict[Relation, _Work] = {}
    for work in works:
        first = writers.setdefault(work.relation, work)
        if first is not work:
            message = (
                f"'{work.file.name}' and '{first.file.name}' ({first.file.file}) both write {work.relation}"
            )
            hint = "Give one of them another 'alias' or 'schema'."
            place = Location(work.file.file)
            found.append(Diagnostic("duplicate-table", message, hint, node=work.file.name, location=place))


def _finish(work: _Work, known: Known, nodes: Mapping[str, Node]) -> Model:
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
        tags=config.tags,
        meta=config.meta,
        windows={w.name: w.sql for w in work.windows},
        state_partitions=config.state_partitions,
        broken=True,
    )
    if work.query is None or work.rendered is None:
        return model
    inputs, edits = resolve(
        Draft(file.name, config, work.rendered, work.query), known, work.relation, work.problems
    )
    window_edits, used = lower_windows(work.query.tree, work.windows, work.rendered, file.name, work.problems)
    _check_windows(work, used)
    sql, positions = splice(work.rendered, edits + window_edits, work.query.end)
    streaming = config.materialized is Materialized.STREAMING_TABLE
    streams = sum(i.stream for i in inputs)
    stateful = streaming and is_stateful(work.query.tree, streams, dedup=any(i.dedup for i in inputs))
    write = Write("append" if streaming else None, config.partition_by, config.table_properties)
    known_facts = facts(
        materialized=config.materialized,
        relation=work.relation,
        sql=normalised(work.query.tree),
        windows=model.windows,
        inputs=inputs,
        nodes=nodes,
        write=write,
        stateful=stateful,
    )
    return replace(
        model,
        sql=sql,
        inputs=inputs,
        write=write,
        stateful=stateful,
        fingerprint=fingerprint(known_facts),
        facts=known_facts,
        positions=positions if positions.runs else SourceMap(),
        broken=any(d.is_error for d in work.problems),
    )


def _check_windows(work: _Work, used: set[str]) -> None:
    for window in work.config.windows:
        if window.name not in used and any(w.name == window.name for w in work.windows):
            message = f"the query does not use the window '{window.name}'"
            hint = f"Group by it ('group by {window.name}'), or take it out."
            work.problems.append(
                Diagnostic("window-unused", message, hint, node=work.file.name, location=window.location)
            )


def _order(nodes: Mapping[str, Node], found: list[Diagnostic]) -> tuple[str, ...]:
    parents = {i: n.depends_on for i, n in nodes.items() if not isinstance(n, Source)}
    loops = graph.cycles({i: p for i, p in parents.items() if i.startswith("model.")})
    for loop in loops:
        path = " -> ".join(node.removeprefix("model.") for node in loop)
        model = nodes[loop[0]]
        place = Location(model.file)
        hint = "Take one of these references out; {{ this }} reads a model's own table."
        found.append(
            Diagnostic(
                "ref-cycle", f"the models read each other: {path}", hint, node=loop[0][6:], location=place
            )
        )
    if loops:
        return tuple(sorted(parents))
    return tuple(i for i in graph.order(_with_sources(parents)) if i in parents)


def _with_sources(parents: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {i: tuple(p for p in ps if p in parents) for i, ps in parents.items()}
