"""Sinks as nodes: `sinks:` of the YAML files under models/, checked against the models and the target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.compile.config.column_config import read_meta, read_tags
from engine.compile.config.stream_config import node_name
from engine.compile.declarations.exposures import named_item
from engine.compile.declarations.target import Late, Target
from engine.compile.nodes.manifest import Column, Model, Node
from engine.compile.nodes.sink import Sink
from engine.compile.templates.rendered_values import ValueRenderer
from engine.errors import Diagnostic, near
from engine.project import LoadedProject
from engine.project.yaml_section import UNKNOWN, Section
from engine.schema.sink_keys import SINK, SINK_TO
from engine.sinks.postgres_types import postgres_type

_ROWS: Final = "rows"
_TO: Final = ("connection", "table", "topic")
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_NOW: Final = "now"
_TABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}(?:\.[A-Za-z_][A-Za-z0-9_$]{0,62})?")


def read_sinks(
    project: LoadedProject,
    target: Target,
    nodes: Mapping[str, Node],
    values: ValueRenderer,
    diagnostics: list[Diagnostic],
) -> tuple[Sink, ...]:
    sinks: dict[str, Sink] = {}
    for item in _sink_sections(project, values, diagnostics):
        sink = _sink(item, project, target, nodes)
        if sink is None:
            continue
        if sink.id in sinks:
            message, first = f"the sink '{sink.name}' is defined twice", sinks[sink.id].location
            item.report("duplicate-name", message, f"Rename it; the first is in {first}.")
            continue
        same = next((one for one in sinks.values() if one.place == sink.place), None)
        if same is not None and (sink.table or sink.topic):
            noun = "table" if sink.table else "topic"
            message = f"the sinks '{same.name}' and '{sink.name}' deliver to the same {noun} {sink.table or sink.topic}"
            item.report("duplicate-table", message, f"Give each sink a {noun} of its own.")
        sinks[sink.id] = sink
    return tuple(sinks.values())


def _sink_sections(project: LoadedProject, values: ValueRenderer, diagnostics: list[Diagnostic]) -> Iterator[Section]:
    for doc in project.exposures:
        # Findings about the rest of the file are those of the exposures.
        part = Section.of_document(doc, diagnostics).child("sinks")
        if part is not None:
            yield from values.rendered(part).items()


def _sink(item: Section, project: LoadedProject, target: Target, nodes: Mapping[str, Node]) -> Sink | None:
    """One sink; None if it has no name, no model, or is not enabled."""
    if (found := named_item(item, SINK, "a sink", "name, from and to", "orders_to_crm")) is None:
        return None
    item, label, place = found
    enabled = item.child("enabled")
    if enabled is not None and not enabled.boolean(otherwise=True):
        return None
    model = _model(item, project, nodes)
    connection, table, topic = _destination(item, target)
    if model is None:
        return None
    create, start, description = (item.child(key) for key in ("create", "start", "description"))
    columns, exclude = (_columns(item, model, key) for key in ("columns", "exclude"))
    sink = Sink(
        id=f"sink.{label}",
        name=label,
        model=model.id,
        connection=connection,
        table=table,
        topic=topic,
        key=_key(item, model),
        columns=columns,
        exclude=exclude,
        from_now=start is not None and start.choice(*SINK.choices("start")) == _NOW,
        create=create.boolean() if create is not None else False,
        description=description.text() if description is not None else "",
        tags=read_tags(item.child("tags")),
        meta=read_meta(item.child("meta")),
        file=item.doc.file,
        location=place,
    )
    _check_columns(item, model, sink)
    return sink


def _model(item: Section, project: LoadedProject, nodes: Mapping[str, Node]) -> Model | None:
    part = item.child("from")
    if part is None:
        hint = "Write 'from: ref('orders')', with the name of a model."
        item.report("missing-key", f"the sink '{item.node}' has no 'from'", hint)
        return None
    if part.value is UNKNOWN:
        return None
    name = node_name(part.text())
    node = nodes.get(f"model.{name}") if name else None
    if isinstance(node, Model):
        if node.keeps_rows:
            return node
        message = f"the {node.materialized.traits.noun} '{name}' has no committed rows to deliver"
        part.report("bad-value", message, f"Write 'materialized: table' in {node.file}, or name a model that reads it.")
    elif f"source.{name}" in nodes:
        hint = "A sink delivers a model's table. Enter a model that reads the source."
        part.report("bad-value", f"'{name}' is a source", hint)
    elif name:
        disabled = name in {model.name for model in project.models}
        hint = f"'{name}' is disabled (enabled: false)." if disabled else near(name, _names(nodes))
        part.report("unknown-ref", f"model '{name}' not found", hint)
    return None


def _names(nodes: Mapping[str, Node]) -> Iterator[str]:
    return (node_id.partition(".")[2] for node_id in nodes if node_id.startswith("model."))


def _destination(item: Section, target: Target) -> tuple[str, str, str]:
    """Return the connection, table and topic; a text that is missing or wrong is reported."""
    to = item.child("to")
    if to is None:
        hint = "Write 'to: {connection: crm, table: public.orders}'."
        item.report("missing-key", f"the sink '{item.node}' has no 'to'", hint)
        return "", "", ""
    if not isinstance(to.value, dict):
        to.expected("a mapping with connection, and table or topic")
        return "", "", ""
    to.check_keys(SINK_TO)
    connection, table, topic = (part.text() if (part := to.child(key)) is not None else "" for key in _TO)
    if to.child("connection") is None:
        to.report("missing-key", f"'to' of the sink '{item.node}' has no 'connection'", "Write 'connection: crm'.")
    if to.child("table") is None and to.child("topic") is None:
        message = f"'to' of the sink '{item.node}' has no 'table'"
        to.report("missing-key", message, "Write 'table: public.orders', or 'topic: shop.orders' for Kafka.")
    if to.child("table") is not None and (part := to.child("topic")) is not None:
        message = f"'to' of the sink '{item.node}' has a table and a topic"
        part.report("setting-conflict", message, "Declare a sink for each of them.", at_key=True)
    if connection and connection not in target.connections:
        message = f"the target '{target.name}' has no connection '{connection}'"
        hint = near(connection, target.connections) or "Add it under 'connections:' in the target."
        _child(to, "connection").report("unknown-connection", message, hint)
    elif connection and (table or topic):
        _check_connection(_child(to, "connection"), target.connections[connection], connection, is_topic=bool(topic))
    if table and not _TABLE.fullmatch(table):
        _child(to, "table").report(
            "bad-name", f"'{table}' is not a qualified table name", "Write <schema>.<table>, for example public.orders."
        )
        table = ""
    if topic and not _TOPIC.fullmatch(topic):
        hint = "Write letters, digits, '.', '_' and '-': shop.orders."
        _child(to, "topic").report("bad-name", f"'{topic}' is not a topic", hint)
        topic = ""
    return connection, table, topic


def _child(section: Section, key: str) -> Section:
    return section.child(key) or section


def _check_connection(part: Section, late: Late, name: str, *, is_topic: bool) -> None:
    """Compare a connection with the destination; its values are read when it is used, its keys are not secret."""
    written = late.part.value
    if is_topic:
        if isinstance(written, dict) and "bootstrap_servers" not in written:
            hint = f"Add it in project.yml: {name}: {{bootstrap_servers: '<host>:9092'}}."
            part.report("connection-settings", f"the connection '{name}' has no 'bootstrap_servers' of Kafka", hint)
    elif isinstance(written, dict) and "uri" not in written:
        block = "{uri: jdbc:postgresql://<host>:5432/<database>, username: .., password: ..}"
        hint = f"Add it in project.yml: {name}: {block}."
        part.report("connection-settings", f"the connection '{name}' has no 'uri' of a database", hint)


def _key(item: Section, model: Model) -> tuple[str, ...]:
    changes, part = item.child("changes"), item.child("key")
    kind = changes.choice(*SINK.choices("changes")) if changes is not None else ""
    if kind == _ROWS:
        if part is not None:
            message = f"the sink '{item.node}' has a key, and delivers each row by itself"
            part.report("setting-conflict", message, "Remove 'key:', or write 'changes: upserts'.", at_key=True)
        return ()
    key = _columns(item, model, "key") if part is not None else model.write.unique_key
    if kind and not key and changes is not None:
        message = f"the sink '{item.node}' has no key, and upserts need one"
        changes.report("setting-needs", message, f"Add 'key: [...]', or 'unique_key:' to the model '{model.name}'.")
    return key


def _columns(item: Section, model: Model, key: str) -> tuple[str, ...]:
    """The listed columns as the model has them; one that it does not have is reported, if its columns are known."""
    names = {column.name.lower(): column.name for column in _table_columns(model)}
    listed_columns: dict[str, None] = {}
    part = item.child(key)
    for one in part.items() if part is not None else ():
        text = one.text()
        if text and names and text.lower() not in names:
            one.report("unknown-column", f"'{model.name}' has no column '{text}'", near(text, names.values()))
        elif text:
            listed_columns[names.get(text.lower(), text)] = None
    return tuple(listed_columns)


def _table_columns(model: Model) -> Iterable[Column]:
    """The columns of the table as far as they are known, with those of its history."""
    out = {name.lower() for name in model.write.exclude}
    if model.broken or not all(column.named for column in model.columns):
        return ()
    added = (Column(name) for name in model.write.history.columns)
    return (*(column for column in model.columns if column.name.lower() not in out), *added)


def _check_columns(item: Section, model: Model, sink: Sink) -> None:
    """Report columns of the key that are not delivered, and columns that the database cannot hold."""
    delivered = {name.lower() for name in sink.columns}
    left_out = {name.lower() for name in sink.exclude}
    for name in sink.key:
        if name.lower() in left_out or (delivered and name.lower() not in delivered):
            part = item.child("exclude") if name.lower() in left_out else item.child("columns")
            message = f"the column '{name}' is in the key of the sink '{sink.name}', and is not delivered"
            (part or item).report("setting-conflict", message, "Deliver it, or write 'key:' without it.")
    for column in _table_columns(model):
        is_delivered = not delivered or column.name.lower() in delivered
        if column.type and is_delivered and column.name.lower() not in left_out and postgres_type(column.type) is None:
            # What PostgreSQL cannot hold has no form in JSON either.
            system = "JSON" if sink.topic else "PostgreSQL"
            message = f"{system} cannot hold the column '{column.name}' of '{model.name}', which is {column.type}"
            cast = f"cast({column.name} as string)"
            hint = f"Select {cast} as {column.name} in {model.file}, or write 'exclude: [{column.name}]' in the sink."
            item.report("column-storage", message, hint)
