"""Facts of two versions of a model made comparable where they differ in what no row depends on.

A column of a source's schema that the query does not name is in no state; a path has several spellings; some options
decide only how fast a source is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.nodes.facts import Facts, InputFacts, plain
from engine.compile.sql.dialect import tree_of
from engine.compile.sql.read_names import read_names
from engine.compile.types import spark_types
from engine.sources import source_traits
from engine.sources.traits import ColumnsBy, normalized

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
# Facts that name no column of an input, or the text of the query again.
_NAMING_NONE = {"sql", "inputs", "relation", "inlined", "state", "began", "keyed"}
_WORDS = re.compile(r"`[^`]*`|\w+|[^\w\s]")


def comparable(facts: Facts, other: Facts) -> Facts:
    """The facts with what no row depends on left out of their inputs; `other` is what they are compared with."""
    read = [_words(side) for side in (facts, other)]
    words = None if None in read else [word for part in read for word in part or ()]
    # A join of streams keeps the columns it reads in the order of the schema, and structs as a whole.
    carries = any(_carries(side) for side in (facts, other))
    return replace(facts, inputs=tuple(_input(item, words, carries=carries) for item in facts.inputs))


def _carries(facts: Facts) -> bool:
    several = sum(item.stream for item in facts.inputs) > 1
    return several or bool(facts.inlined) or _has(facts, lambda node: isinstance(node, exp.Join))


def keeps_columns(facts: Facts) -> bool:
    """Return whether a step of a query may keep whole rows in state: a join of streams, DISTINCT."""
    return _carries(facts) or _has(
        facts, lambda node: bool(node.args.get("distinct")) or isinstance(node, exp.Distinct)
    )


def _has(facts: Facts, holds: Callable[[exp.Expr], bool]) -> bool:
    tree = tree_of(facts.sql)
    return tree is None or any(map(holds, tree.walk()))


def _input(item: InputFacts, words: Sequence[str] | None, *, carries: bool) -> InputFacts:
    item = replace(item, dedup=tuple(sorted({column.lower() for column in item.dedup})))
    source = item.source
    if not source:
        return item
    options = {k.lower(): v for k, v in source.get("options", {}).items() if k.lower() not in _TUNING}
    comparable_source = {**source, "options": options, "schema": _schema(source, words, carries=carries)}
    if "path" in comparable_source:
        comparable_source["path"] = normalized(str(comparable_source["path"]))
    return replace(item, source=comparable_source)


def _schema(source: Mapping[str, Any], words: Sequence[str] | None, *, carries: bool) -> list[Any]:
    schema = [[str(name), kind] for name, kind in source.get("schema", ())]
    if words is None:
        return schema
    traits = source_traits(str(source.get("format", "")))
    if traits.caseless:
        schema = [[name.lower(), kind] for name, kind in schema]
    if traits.columns_by is ColumnsBy.POSITION:
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


def names_column(facts: Facts, name: str) -> bool:
    """Return whether a query may read a column of its inputs."""
    words = _words(facts)
    return words is None or name.lower() in words


def _words(facts: Facts) -> tuple[str, ...] | None:
    """The words and signs of everything in the facts that names columns, in order; None: it may name any."""
    rest = {key: value for key, value in plain(facts).items() if key not in _NAMING_NONE}
    inputs = [
        (item.dedup, item.through, item.deferred, item.watermark and plain(item.watermark)) for item in facts.inputs
    ]
    parts = [read_names(facts.sql), *map(_words, facts.inlined.values())]
    parts += [_words_of_text(text) for text in (*_texts(rest), *_texts(inputs))]
    word_lists = [part for part in parts if part is not None]
    return tuple(word for part in word_lists for word in (*part, ";")) if len(word_lists) == len(parts) else None


def _words_of_text(text: str) -> tuple[str, ...]:
    """The words and signs of a text other than a query; the name of a column may be all of it."""
    return text.lower(), *(word.strip("`") for word in _WORDS.findall(text.lower()))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts(inner)
