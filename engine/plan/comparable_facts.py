"""Facts of two versions of a model made comparable where they differ in what no row depends on.

A source that was renamed is the same source; a column of its schema that the query does not name is in no state; a
path has several spellings; some options decide only how fast a source is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sqlglot.errors import SqlglotError

from engine.compile.sql.dialect import tokenize
from engine.compile.stateful.read_columns import READ_ALL
from engine.compile.types import spark_types
from engine.plan.source_changes import StreamSource
from engine.sources import answers_of
from engine.sources.answers import ColumnsBy
from engine.sources.stream_identity import normalized

# Options of readers that change how much is read at a time, and how, but not what (in lower case).
_TUNING = {
    "minpartitions", "minoffsetspertrigger", "maxtriggerdelay", "maxbytespertrigger", "fetchoffset.numretries",
    "fetchoffset.retryintervalms", "kafkaconsumer.polltimeoutms", "groupidprefix", "kafka.group.id",
    "kafka.max.poll.records", "kafka.fetch.min.bytes", "kafka.fetch.max.bytes", "kafka.fetch.max.wait.ms",
    "kafka.max.partition.fetch.bytes", "kafka.session.timeout.ms", "kafka.request.timeout.ms", "kafka.client.id",
    "kafka.receive.buffer.bytes", "kafka.heartbeat.interval.ms", "maxrecordspermicrobatch",
    "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch", "split-size", "lookback",
    "file-open-cost", "vectorization-enabled", "batch-size",
}  # fmt: skip
# What makes a column count that is not named.
_BEFORE_STAR = {"select", "distinct", "all", ",", ".", "("}


def renamed(facts: Mapping[str, Any], names: Mapping[str, StreamSource]) -> Mapping[str, Any]:
    if not names:
        return facts
    now = {node.partition(".")[2]: new.name for node, new in names.items()}
    inputs = [{**item, "name": now.get(item["name"], item["name"])} for item in facts["inputs"]]
    sql = _with_sources(str(facts["sql"]), now)
    taken_apart = {key: _with_names(facts[key], now) for key in ("state", "began", "keyed") if key in facts}
    inputs.sort(key=lambda i: (i["name"], i.get("through", "")))
    return {**facts, **taken_apart, "inputs": inputs, "sql": sql}


def _with_sources(sql: str, now: Mapping[str, str]) -> str:
    whole = {f"@{kind} {old}": f"`@{kind} {new}`" for old, new in now.items() for kind in ("source", "ref")}
    short = {old.rpartition(".")[2]: new.rpartition(".")[2] for old, new in now.items()}
    try:
        tokens = tokenize(sql)
    except SqlglotError:
        return sql
    words = ["", *(token.text.lower() for token in tokens), ""]
    # A name that the user gave as an alias stays it.
    given = {word for before, word in pairwise(words) if before == "as" or before in whole}
    parts, at = [], 0
    for token, (before, word, after) in zip(tokens, zip(words, words[1:], words[2:], strict=False), strict=False):
        qualifies = after == "." and before != "." and word not in given
        new = whole.get(word) or (short.get(word) if qualifies else None)
        if new is not None:
            parts += [sql[at : token.start], new]
            at = token.end + 1
    return "".join([*parts, sql[at:]])


def _with_names(state: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, Any]:
    """The query of a state with the names that its inputs have now; its text keeps the views that it was made with."""
    inputs = [{**item, "name": now.get(item["name"], item["name"]), "alias": item["name"]} for item in state["inputs"]]
    return {**state, "inputs": inputs}


def comparable(facts: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The facts with what no row depends on left out of their inputs; `other` is what they are compared with."""
    words = [word for known in (facts, other) for word in _words(known)]
    # A join of streams keeps the columns it reads in the order of the schema, and structs as a whole.
    carries = any(_carries(known) for known in (facts, other))
    return {**facts, "inputs": [_input(item, words, carries=carries) for item in facts["inputs"]]}


def _carries(facts: Mapping[str, Any]) -> bool:
    several = sum(1 for item in facts["inputs"] if item["stream"]) > 1
    return several or bool(facts.get("inlined")) or " join " in f" {facts['sql']} "


def keeps_columns(facts: Mapping[str, Any]) -> bool:
    """Return whether a step of a query may keep whole rows in state: a join of streams, DISTINCT."""
    return _carries(facts) or " distinct " in f" {facts['sql']} ".lower()


def _input(item: Mapping[str, Any], words: Sequence[str], *, carries: bool) -> dict[str, Any]:
    dedup = sorted({column.lower() for column in item.get("dedup") or ()})
    known = {**item, "dedup": dedup}
    source = item.get("source")
    if source:
        options = {k.lower(): v for k, v in source.get("options", {}).items() if k.lower() not in _TUNING}
        made = {**source, "options": options, "schema": _schema(source, words, carries=carries)}
        if "path" in made:
            made["path"] = normalized(str(made["path"]))
        known["source"] = made
    return known


def _schema(source: Mapping[str, Any], words: Sequence[str], *, carries: bool) -> list[Any]:
    schema = [[str(name), kind] for name, kind in source.get("schema", ())]
    if "*" in words:
        return schema
    answers = answers_of(str(source.get("format", "")))
    if answers.caseless:
        schema = [[name.lower(), kind] for name, kind in schema]
    if answers.columns_by is ColumnsBy.POSITION:
        # Only what is behind the last column that is read does not count.
        last = max((i for i, (name, _) in enumerate(schema) if name in words), default=-1)
        return schema[: last + 1]
    if carries:
        return [column for column in schema if column[0].lower() in words]
    return sorted(part for name, kind in schema for part in _parts(name, kind, words))


def _parts(name: str, kind: Any, words: Sequence[str], path: tuple[str, ...] = ()) -> Iterator[list[Any]]:
    """A column if it is read; of a struct of which only fields are read, those fields."""
    if name.lower() not in words:
        return
    inside = spark_types.fields(spark_types.normal(str(kind)))
    if inside is None or any(
        word == name.lower() and after != "." for word, after in zip(words, [*words[1:], ""], strict=True)
    ):
        yield [*path, name, kind]
        return
    for field, type_ in inside:
        yield from _parts(field, type_, words, (*path, name))


def names_column(facts: Mapping[str, Any], name: str) -> bool:
    """Return whether a query may read a column of its inputs: it names it, or all of them by `*`."""
    words = _words(facts)
    return "*" in words or name.lower() in words


def _words(facts: Mapping[str, Any]) -> list[str]:
    """The tokens of everything in the facts that names columns, in order; `*` stands for all of them."""
    rest = {
        key: value
        for key, value in facts.items()
        if key not in {"sql", "inputs", "relation", "inlined", "state", "began"}
    }
    inputs = [{key: value for key, value in item.items() if key not in {"source", "name"}} for item in facts["inputs"]]
    texts = [str(facts["sql"]), *_texts(rest), *_texts(inputs)]
    inlined = facts.get("inlined", {}).values()
    texts += [" ".join(_words(inner)) if "sql" in inner else json.dumps(inner) for inner in inlined]
    found: list[str] = []
    for text in texts:
        tokens = _tokens(text)
        for index, word in enumerate(tokens):
            if word != "*" or _projects(tokens, index):
                found.append("*" if word in READ_ALL else word)
        found.append(";")
    if "select" not in found:
        found.append("*")
    return found


def _projects(tokens: Sequence[str], index: int) -> bool:
    """Whether a star stands for columns: it is not a product, and not that of count(*)."""
    before = tokens[index - 1] if index else ""
    counted = before == "(" and index > 1 and tokens[index - 2] == "count"
    return not counted and (before in _BEFORE_STAR or index == 0)


def _tokens(text: str) -> list[str]:
    try:
        return [token.text.lower() for token in tokenize(text)]
    except SqlglotError:
        return ["*"]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts(inner)
