"""The sources of a checkpoint against those that a query would read now: the pure comparison.

Spark's checkpoint has one offset a source, by position and without a name. With other sources, or the same in another
order, files are read again and rows doubled without a word (measured, Spark 4.1.4). So each generation records its
sources in the order of Spark's plan, with what identifies each. See docs/design/010-generations.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from engine.compile.nodes.facts import Facts, StateOrder, plain
from engine.errors import Diagnostic
from engine.sources import source_traits
from engine.sources.traits import FILES, TABLE
from engine.state import ModelState


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A source of a streaming query as its checkpoint knows it.

    `kind`: `files`, `table`, or the format. `identity`: of files `location` (absolute URI), `root` (the project's
    folder) and `path`; of tables `table` and `uuid`; of Kafka `topics`; else `location`; `connection` is a digest of
    where it leads, without credentials. `number`: in Spark's checkpoint; two readings of one relation share it.
    """

    node: str
    name: str
    kind: str
    identity: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0

    def __str__(self) -> str:
        identity = self.identity
        where = identity.get("location") or identity.get("path") or ", ".join(identity.get("topics") or ())
        return f"{self.name} ({where})" if where else self.name


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a generation records of its start: `sources.json`.

    `streams` are in the order of Spark's plan; `textual`: that is the order of the compiled SQL, too. `settings`: see
    `engine.compile.config.session_settings`. `order`: the query with its aggregates in the order of the state; `dedup`:
    the keys of each input with several; older versions recorded neither.
    """

    streams: tuple[StreamSource, ...]
    textual: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    order: StateOrder | None = None
    dedup: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        streams = [
            {"node": s.node, "name": s.name, "kind": s.kind, "identity": dict(s.identity), "number": s.number}
            for s in self.streams
        ]
        orders = {"order": self.order and plain(self.order), "dedup": {k: list(v) for k, v in self.dedup.items()}}
        orders_set = {key: value for key, value in orders.items() if value}
        return {"streams": streams, "textual": self.textual, "settings": dict(self.settings), **orders_set}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Recorded:
        """Read the content of the file; KeyError, TypeError or msgspec's ValidationError if it is another."""
        streams = tuple(StreamSource(**item) for item in data["streams"])
        textual, settings = bool(data.get("textual", True)), data.get("settings", {})
        order = msgspec.convert(data["order"], StateOrder) if data.get("order") else None
        return cls(streams, textual, settings, order, data.get("dedup", {}))


def of_facts(facts: Facts) -> tuple[StreamSource, ...]:
    """The streams of a query as its facts have them: without order, and without what the project's folder decides."""
    streams = []
    for item in facts.inputs:
        if item.stream and item.source:
            streams.append(of_source(item.name, item.source["format"], item.source))
        elif item.stream:
            streams.append(StreamSource(f"model.{item.name}", item.name, TABLE, {"table": item.deferred or item.name}))
    return tuple(streams)


def of_source(name: str, format_: str, settings: Mapping[str, Any]) -> StreamSource:
    identity = source_traits(format_).identity(format_, settings)
    return StreamSource(f"source.{name}", name, identity.kind, identity.facts)


def same(before: StreamSource, now: StreamSource) -> bool:
    old, new = before.identity, now.identity
    if before.kind != now.kind:
        return False
    if before.kind == FILES:
        led = {old.get("connection"), new.get("connection")} - {None}
        return _same_place(before, now) and old.get("format") == new.get("format") and len(led) <= 1
    if before.kind == TABLE:
        key = "uuid" if old.get("uuid") and new.get("uuid") else "table"
        return bool(old.get(key) == new.get(key))
    if "pattern" in {*old, *new}:
        return True  # which topics those are is asked of the cluster
    if "topics" in old:
        # A topic that is added is read from its first record; a partition that is left out and comes back is, too.
        fewer = "assigned" in new and not set(new["assigned"]) >= set(old.get("assigned", ("all",)))
        return not fewer and set(old["topics"]) <= set(new.get("topics", ()))
    return bool(old == new)


def _same_place(before: StreamSource, now: StreamSource) -> bool:
    old, new = before.identity, now.identity
    key = "location" if "location" in old and "location" in new else "path"
    return bool(old.get(key) == new.get(key))


def difference(before: Sequence[StreamSource], now: Sequence[StreamSource], *, ordered: bool = True) -> str | None:
    """How the sources differ from a checkpoint's, in a sentence; None: the same. `ordered`: both are in plan order."""
    if len(before) == len(now) and all(same(old, new) for old, new in zip(before, now, strict=True)):
        return None
    without = [old for old in before if not any(same(old, new) for new in now)]
    added = [new for new in now if not any(same(old, new) for old in before)]
    if not added and not without:
        if not ordered:
            return None
        if len(before) == len(now):
            return f"the order of its streams changed from {_names(before)} to {_names(now)}"
    pairs = [(old, new) for old in without for new in added if old.kind == new.kind == FILES]
    return _changed_setting(pairs) or _moved_project(pairs) or _changed_streams(before, now)


def _changed_setting(pairs: Sequence[tuple[StreamSource, StreamSource]]) -> str | None:
    for key in ("format", "connection"):
        for old, new in pairs:
            was, now_is = old.identity.get(key), new.identity.get(key)
            if _same_place(old, new) and None not in {was, now_is} and was != now_is:
                return f"the {key} of '{new.name}' changed from {was} to {now_is}"
    return None


def _moved_project(pairs: Sequence[tuple[StreamSource, StreamSource]]) -> str | None:
    for old, new in pairs:
        if _moved(old, new):
            return (
                f"the project was moved from {old.identity['root']} to {new.identity['root']}: the files of "
                f"'{new.name}' that were read are recorded under {old.identity['location']}, and all of them would be "
                "re-read"
            )
    return None


def _changed_streams(before: Sequence[StreamSource], now: Sequence[StreamSource]) -> str:
    texts = [_texts(before), _texts(now)]
    tables = [[s.identity.get("table") for s in some] for some in (before, now)]
    if texts[0] == texts[1] and tables[0] != tables[1]:
        # Of one name, in two targets or schemas.
        texts = [", ".join(f"{s.name} ({s.identity.get('table', s)})" for s in some) for some in (before, now)]
    return f"its streams changed from {texts[0]} to {texts[1]}"


def _moved(old: StreamSource, new: StreamSource) -> bool:
    roots = [s.identity.get("root") for s in (old, new)]
    return None not in roots and roots[0] != roots[1] and old.identity["path"] == new.identity["path"]


def _names(streams: Iterable[StreamSource]) -> str:
    return ", ".join(s.name for s in streams) or "nothing"


def _texts(streams: Iterable[StreamSource]) -> str:
    return ", ".join(str(s) for s in streams) or "nothing"


def elsewhere(before: Iterable[StreamSource], now: Iterable[StreamSource]) -> str:
    tables = {stream.node: _table(stream) for stream in now}
    for stream in before:
        (schema, name), (schema_now, name_now) = _table(stream), tables.get(stream.node, ("", ""))
        if name and name == name_now and schema != schema_now:
            return f"{schema}.{name}"
    return ""


def _table(stream: StreamSource) -> tuple[str, str]:
    schema, _, name = str(stream.identity.get("table", "")).rpartition(".")
    return schema, name


def rejection(relation: str, model: str, reason: str, ways: Sequence[str], other: str = "") -> Diagnostic:
    message = f"{relation} cannot continue with other sources: {reason}"
    way = "Move it back" if reason.startswith("the project was moved") else "Undo the change"
    if other:
        way = f"Build with --clone or --defer again, which read {other}; or undo the change"
    hint = "\n".join([f"{way}, or rebuild the table: engine build -f -s {model}", *ways])
    return Diagnostic("source-changed", message, hint, node=model)


def static_renames(
    old: Facts, new: Facts, names_before: Mapping[str, Collection[str]], nodes: Collection[str]
) -> dict[str, StreamSource]:
    """Return the inputs read in full that have another name now, by the node that they were."""
    names = [{item.name: item for item in facts.inputs if not item.stream} for facts in (old, new)]
    renamed = {}
    for name, item in names[0].items():
        kind = "source" if item.source else "model"
        if f"{kind}.{name}" in nodes:
            continue
        for other, one in names[1].items():
            same = one.source == item.source if kind == "source" else name in names_before.get(other, ())
            if other not in names[0] and same:
                renamed[f"{kind}.{name}"] = StreamSource(f"{kind}.{other}", other, "static")
    return renamed


def renames(before: Sequence[StreamSource], now: Sequence[StreamSource]) -> dict[str, StreamSource]:
    names, renamed = {s.node for s in now}, {}
    nodes_before = {s.node for s in before}
    for old in before:
        if old.node not in names:
            new = next((s for s in now if s.node not in nodes_before and same(old, s)), None)
            if new is not None:
                renamed[old.node] = new
    return renamed


def with_present_names(before: Sequence[StreamSource], now: Sequence[StreamSource]) -> tuple[StreamSource, ...]:
    renamed = renames(before, now)
    return tuple(
        replace(s, node=renamed[s.node].node, name=renamed[s.node].name) if s.node in renamed else s for s in before
    )


def with_new_names(state: ModelState, before: Sequence[StreamSource], now: Sequence[StreamSource]) -> ModelState:
    renamed = renames(before, now)
    if not renamed:
        return state
    nodes = {old: new.node for old, new in renamed.items()}
    names = {s.name: renamed[s.node].name for s in before if s.node in renamed}

    def moved(by_name: Mapping[str, Any], to: Mapping[str, str]) -> dict[str, Any]:
        return {to.get(key, key): value for key, value in by_name.items()}

    return replace(
        state,
        starts=moved(state.starts, nodes),
        sources=moved(state.sources, nodes),
        settled=moved(state.settled, names),
        event_times=moved(state.event_times, names),
    )
