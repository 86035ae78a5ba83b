"""The second half of a model's compilation: references, windows, columns, rules and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec.structs import replace as changed

from engine.compile.columns.find_columns import BoundQuery
from engine.compile.config.model_config import ModelConfig
from engine.compile.config.operation_config import with_table_name
from engine.compile.config.session_settings import meaning
from engine.compile.config.window_config import Window
from engine.compile.declarations.compile_context import CompileContext
from engine.compile.nodes.acknowledged_warnings import acknowledge
from engine.compile.nodes.column_facts import InputColumns
from engine.compile.nodes.fingerprint import fingerprint
from engine.compile.nodes.manifest import DataTest, Input, Model, SourceMap
from engine.compile.nodes.model_settings import Write
from engine.compile.output.change_rows import merged_changes, without_deletes
from engine.compile.output.condition_types import condition_faults
from engine.compile.output.infer_columns import ParsedModel, bound_query, brings_functions, by_default, with_columns
from engine.compile.output.output_columns import check_columns
from engine.compile.output.output_mode import decide_output_mode
from engine.compile.output.table_columns import with_table_columns
from engine.compile.pipeline.parse_model import Read
from engine.compile.references.ephemeral import GivenNode, Inlined, splice, too_large
from engine.compile.references.expand_windows import lower_windows
from engine.compile.references.resolve_references import Draft, KnownNodes, resolve, with_suggestions
from engine.compile.sql.aggregates import is_stateful
from engine.compile.sql.determinism import deterministic_text
from engine.compile.stateful.model_facts import facts, with_state
from engine.compile.stateful.read_columns import without_unread
from engine.compile.streaming.check_query import placeholder
from engine.compile.templates.template_names import REF
from engine.compile.test_nodes.data_test_nodes import compile_tests
from engine.compile.types.spark_types import normal
from engine.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class Finished:
    """A compiled model with its tests; `given_node` is what it gives to others, `problems` all that was found.

    `env` names the environment variables it asked for; `repeatable`: compiling it again would give the same.
    """

    model: Model
    tests: tuple[DataTest, ...]
    given_node: GivenNode
    problems: tuple[Diagnostic, ...]
    env: frozenset[str]
    repeatable: bool


def finish_model(
    read: Read,
    shared: CompileContext,
    known_nodes: KnownNodes,
    selects: Mapping[str, frozenset[str]],
    given_nodes: Mapping[str, GivenNode],
    *,
    looped: bool = False,
) -> Finished:
    """Finish a model.

    `selects` has, by the name that models use, columns of models and sources as far as they are in the text. A node
    missing from `given_nodes` (by id) is not known. `looped`: part of a cycle; already reported.
    """
    problems = list(with_suggestions(read.problems, known_nodes))
    names = shared.names
    names.begin()
    columns = {i: item.columns for i, item in given_nodes.items()}
    model, bound, is_verbatim = _resolve_model(read, known_nodes, selects, given_nodes, problems)
    model = _with_settings(model, shared.target.conf)
    if looped:
        model = replace(model, broken=True)
    output = InputColumns(model.id, None)
    if read.query is not None and read.rendered is not None and bound is not None:
        foreign = brings_functions(shared.target.conf) or bool(model.operation.pre_hook)
        whole = len(read.windows) == len(read.config.windows)
        ansi = by_default(shared.target.conf) and not model.operation.pre_hook
        parsed = ParsedModel(read.query, bound, read.rendered, read.windows, foreign, whole, is_verbatim, ansi)
        model, output = with_columns(model, parsed, columns, problems)
        if read.certain and not model.broken:
            faults = list(condition_faults(model, output, foreign=foreign))
            problems += faults
            if faults:
                model = replace(model, broken=True)
        model, output = with_table_columns(model, output)
        if model.streaming and (model.stateful or model.write.unique_key):
            model = with_state(model, columns)
        model = without_unread(model, output, read.query.nodes)
    tests = compile_tests(
        f"model.{read.file.name}",
        read.file.file,
        read.config.tests,
        shared,
        known_nodes,
        problems,
        InputColumns(model.id, None) if model.broken else output,
    )
    tests = [replace(test, tags=tuple(dict.fromkeys((*read.config.tags, *test.tags)))) for test in tests]
    inlined = None if not model.is_inlined or not model.fingerprint else _as_inlined(model)
    problems, acknowledged = acknowledge(read.config.acknowledged, problems, model.name)
    if acknowledged:
        model = replace(model, acknowledged=acknowledged)
    env, repeatable = read.env | names.used_env, read.repeatable and names.repeatable
    return Finished(
        model,
        tuple(tests),
        GivenNode(output, inlined, _unsafe_sources(model, given_nodes)),
        tuple(problems),
        env,
        repeatable,
    )


def _with_settings(model: Model, conf: Mapping[str, str]) -> Model:
    """The model with the settings that change what its query means among its facts, unless all have their defaults."""
    settings = meaning(conf, model.operation.pre_hook) if model.facts and model.in_catalog else {}
    if not settings:
        return model
    new_facts = changed(model.facts, settings=settings)
    return replace(model, facts=new_facts, fingerprint=fingerprint(new_facts))


def _unsafe_sources(model: Model, given_nodes: Mapping[str, GivenNode]) -> tuple[str, ...]:
    """The sources above it that cannot be re-read."""
    above = (given_nodes[node].unsafe for node in model.depends_on if node in given_nodes)
    return tuple(dict.fromkeys(name for names in above for name in names))


def _as_inlined(model: Model) -> Inlined:
    return Inlined(model.name, model.sql, model.inputs, model.stateful, model.facts, model.deterministic, model.slots)


def _resolve_model(
    read: Read,
    known_nodes: KnownNodes,
    selects: Mapping[str, frozenset[str]],
    given_nodes: Mapping[str, GivenNode],
    problems: list[Diagnostic],
) -> tuple[Model, BoundQuery | None, bool]:
    """Return the model with the SQL that runs (broken and without it on errors), and its bound query if it has facts.

    The flag is whether no other query was put in.
    """
    model = _empty_model(read)
    if read.query is None or read.rendered is None:
        return model, None, False
    ephemeral = _ephemeral(read, known_nodes, given_nodes)
    if ephemeral is None:
        return model, None, False
    draft = Draft(read.file.name, read.config, read.rendered, read.query, read.certain, problems)
    inside = [r for r in read.query.references if r.kind == "ref" and r.name in ephemeral]
    large = too_large(read.rendered.text, [reference.name for reference in inside], ephemeral)
    if large is not None:
        draft.report("sql-too-large", *large, inside[-1].start)
        return model, None, False
    inputs, edits = resolve(draft, known_nodes, read.relation, ephemeral)
    columns = {i: item.columns for i, item in given_nodes.items()}
    bound = bound_query(read.query, read.rendered, read.windows, (inputs, draft.inlined), columns)
    of_inputs = _with_event_time(selects, inputs)
    lowered = lower_windows(read.query, bound, read.windows, of_inputs, draft.report)
    _check_windows(draft, read.windows, lowered.used_windows)
    reference_starts = {reference.start for reference in read.query.references if reference.kind != "this"}
    is_verbatim = not draft.inlined and sorted(reference_starts) == sorted(edit.start for edit in edits)
    spliced = splice(read.rendered, edits + lowered.edits, read.query.end)
    model = replace(
        model,
        sql=spliced.sql,
        slots=spliced.slots,
        inputs=inputs,
        inlined=tuple(draft.inlined),
        positions=SourceMap(spliced.positions.runs, read.config.places),
    )
    try:
        return _with_facts(model, draft, read, known_nodes, bound), bound, is_verbatim
    except RecursionError:
        start = len(read.rendered.text) - len(read.rendered.text.lstrip())
        draft.report("sql-too-deep", "the SQL is nested too deeply", "Use CTEs.", start)
        return model, None, False


def _ephemeral(read: Read, known_nodes: KnownNodes, given_nodes: Mapping[str, GivenNode]) -> dict[str, Inlined] | None:
    """The ephemeral models that it reads, by name; None if one has errors of its own, which are reported."""
    inlined_by_name = {}
    for node in read.face.reads:
        name = node.removeprefix("model.")
        if known_nodes.inlines(name) and node.startswith("model."):
            inlined = given_nodes[node].inlined if node in given_nodes else None
            if inlined is None:
                return None
            inlined_by_name[name] = inlined
    return inlined_by_name


def _empty_model(read: Read) -> Model:
    config, file = read.config, read.file
    return Model(
        id=f"model.{file.name}",
        name=file.name,
        file=file.file,
        description=config.description,
        materialized=config.materialized,
        relation=read.relation,
        custom_schema=config.schema or "",
        raw_sql=file.sql,
        sql="",
        columns=config.columns,
        expectations=config.expectations,
        operation=with_table_name(config.operation, read.relation.sql),
        contract=config.contract,
        title=config.title,
        tags=config.tags,
        meta=config.meta,
        windows={w.name: w.time for w in read.windows},
        state_partitions=config.state_partitions,
        broken=True,
    )


def _with_facts(model: Model, draft: Draft, read: Read, known_nodes: KnownNodes, bound: BoundQuery) -> Model:
    config, query = read.config, draft.query
    streaming = config.materialized.traits.streaming
    streams = [i for i in model.inputs if i.stream]
    inlined = draft.inlined.values()
    names = [placeholder(i) for i in streams] + [f"{REF}{model.name}" for model in inlined if model.streamed]
    keeps_state = is_stateful(query.nodes, names, dedup=any(i.dedup for i in streams))
    stateful = (streaming or (model.is_inlined and bool(streams))) and (keeps_state or any(i.stateful for i in inlined))
    write = config.write
    if streaming:
        own = frozenset(placeholder(i) for i in streams if not i.through)
        write = merged_changes(config, bound, model.inputs, known_nodes.sources, draft.report)
        model = replace(model, expectations=without_deletes(config.expectations, write, config))
        write = decide_output_mode(write, (query, bound), read.windows, own, config.places, draft.report)
    if read.certain:
        check_columns(config.named_columns, config.write, bound, config.places, draft.report)
    meaning = facts(
        materialized=config.materialized,
        relation=read.relation,
        query=query,
        windows={name: window.sql for name, window in model.windows.items()},
        inputs=model.inputs,
        nodes=known_nodes.sources,
        write=write,
        stateful=stateful,
        expectations=model.expectations,
        hooks={"pre_hook": config.operation.pre_hook, "post_hook": config.operation.post_hook},
        declared=_declared_columns(config),
        inlined=inlined,
        deferred=known_nodes.deferred,
    )
    return replace(
        model,
        write=write,
        stateful=stateful,
        fingerprint=fingerprint(meaning),
        facts=meaning,
        broken=not read.certain or any(d.is_error for d in draft.problems),
        deterministic=_deterministic(model, write, draft),
    )


def _declared_columns(config: ModelConfig) -> dict[str, Any]:
    """What the settings of a model say that its columns must be; a query of unknown types is held to it by a build."""
    types = {
        column.name.lower(): normal(column.type) or column.type
        for column in config.columns
        if column.type is not None and f"columns.{column.name}.type" in config.places
    }
    return {"contract": config.contract, "columns": types}


def _deterministic(model: Model, write: Write, draft: Draft) -> bool:
    texts = [i.watermark.expression for i in model.inputs if i.watermark and i.watermark.expression]
    texts += [expectation.check for expectation in model.expectations]
    texts += [write.delete_when] if write.delete_when else []
    inlined = all(item.deterministic for item in draft.inlined.values())
    return inlined and draft.query.deterministic and deterministic_text(*texts)


def _with_event_time(selects: Mapping[str, frozenset[str]], inputs: tuple[Input, ...]) -> dict[str, frozenset[str]]:
    """The columns of the inputs, with those that watermarks add."""
    added = {i.name: {i.watermark.column.lower()} if i.watermark else set() for i in inputs}
    return {name: selects.get(name, frozenset()) | extra for name, extra in added.items()}


def _check_windows(draft: Draft, windows: tuple[Window, ...], used_windows: set[str]) -> None:
    for window in windows:
        if window.name not in used_windows:
            message = f"the query does not use the window '{window.name}'"
            hint = f"Group by it ('group by {window.name}'), or remove it."
            draft.report("window-unused", message, hint, window.location)
