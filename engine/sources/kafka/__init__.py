"""Kafka topics as sources.

    connection  settings of the target, the client's options, whether somebody answers
    declared    the keys of a declaration
    cluster     topics, ids and offsets, asked in Spark's JVM
    standing    whether a stream can continue where it is

Transactions that were aborted are never seen (isolation.level is read_committed unless the source says otherwise).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.sources.kafka import native_client, topic_check
from engine.sources.kafka.cluster import Cluster, Topic
from engine.sources.kafka.cluster import cluster as asked
from engine.sources.kafka.connection import Connection, consumer_options, reach, read_connection
from engine.sources.kafka.kafka_options import (
    KEYS,
    STARTS,
    TOPICS,
    faults,
    is_reader_option,
    starting_offsets,
    value_of,
)
from engine.sources.kafka.native_client import ClusterOffsets
from engine.sources.spec import ORIGIN, RAW, Place, Resumption, SourceSpec
from engine.sources.starting_offsets import starting_milliseconds
from engine.sources.values import value_format

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FORMATS", "KEYS", "LISTED", "MEANING", "ONE_OF", "REPLAYABLE", "PolledTopics", "check", "columns", "faults",
    "jars", "location", "origin", "position", "read_batch", "read_stream", "resume", "same_start", "script",
    "topics_now", "unread", "until_now",
]  # fmt: skip

FORMATS: tuple[str, ...] = ("kafka",)
ONE_OF: tuple[tuple[str, ...], ...] = (TOPICS, STARTS)
MEANING: tuple[str, ...] = (*TOPICS, "value")
REPLAYABLE = True
LISTED = True
# Of a source that ends somewhere: the offset behind the last record of each partition, by topic.
ENDS = "ends"
_ISOLATION = "isolation.level"
# Spark asks for offsets after each fetch, on the connection on which Kafka's consumer already waits for records behind
# the end (KafkaDataConsumer.fetch, 4.1): each partition of each micro-batch took the broker's full wait, half a second.
_FETCH_WAIT = {"fetch.max.wait.ms": "10"}
_JARS = ("kafka",)
_ORIGIN = {
    "key": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "headers": "array<struct<key: string, value: binary>>",
}


def jars(spec: SourceSpec) -> tuple[str, ...]:
    """The connector, and what the values need."""
    form = value_format(value_of(spec)["format"])
    return (*_JARS, *(form.jars() if form else ()))


def columns(spec: SourceSpec) -> str | None:
    """The columns that the format of the values brings."""
    value = value_of(spec)
    form = value_format(value["format"])
    # Without a known format the format is the fault that is reported.
    return form.columns(value) if form and not _schema_is_reported(spec) else ""


def _schema_is_reported(spec: SourceSpec) -> bool:
    return any(fault.path == ("schema",) for fault in faults(spec))


def origin(_: SourceSpec) -> str:
    """The type of `_metadata`."""
    return f"struct<{', '.join(f'{name}: {kind}' for name, kind in _ORIGIN.items())}>"


def location(spec: SourceSpec) -> str:
    """The topics."""
    said = spec.settings
    if pattern := said.get("topic_pattern"):
        return f"topics like {pattern}"
    names = [said["topic"]] if "topic" in said else list(said.get("topics") or said.get("assign") or ())
    return f"topic{'s' if len(names) > 1 else ''} {', '.join(names)}"


def script(spec: SourceSpec, *, stream: bool) -> list[str]:
    """Lines of PySpark that read the records as they are; the engine decodes the values."""
    options = {"kafka.bootstrap.servers": "<bootstrap servers>", **_options(spec, stream=stream)}
    return [
        f'spark.{"readStream" if stream else "read"}.format("kafka")',
        *(f".option({json.dumps(key)}, {json.dumps(text)})" for key, text in options.items()),
        ".load()",
    ]


def check(spec: SourceSpec, place: Place) -> None:
    """Make sure that a broker answers.

    Raises:
        ProjectError: the connection's settings are wrong.
        SetupError: kafka-unreachable.
    """
    reach(_connection(spec, place))


def position(session: SparkSession, spec: SourceSpec, place: Place) -> dict[str, Any]:
    """First and end offset of each partition."""
    with _cluster(session, spec, place) as (cluster, topics):
        isolation = _client(spec)[_ISOLATION]
        firsts = cluster.offsets(topics.values(), first=True, isolation=isolation)
        ends = cluster.offsets(topics.values(), first=False, isolation=isolation)
    return {
        topic.name: {"id": topic.id, **{str(p): [firsts[topic.name][p], ends[topic.name][p]] for p in topic.partitions}}
        for topic in topics.values()
    }


def topics_now(specs: Mapping[str, SourceSpec], place: Place) -> dict[str, ClusterOffsets]:
    """What sources have, asked without Java; those that only Java's client knows are omitted.

    Args:
        specs: by any name.
        place: of the project.
    """
    found: dict[str, ClusterOffsets] = {}
    for connection, mine, wanted in _by_connection(specs):
        settings = place.connection(connection)
        addresses = read_connection(connection, settings).addresses
        answers = native_client.ask(addresses, settings.get("security") or {}, wanted) or {}
        for name, spec in mine.items():
            if (answer := answers.get(_client(spec)[_ISOLATION])) is not None:
                found[name] = _chosen(spec, answer)
    return found


@dataclass(frozen=True, slots=True)
class PolledTopics:
    """Where topics end, asked again and again; the client of each connection is kept between."""

    _clients: dict[str, native_client.Questions] = field(default_factory=dict)

    def ends(self, specs: Mapping[str, SourceSpec], place: Place) -> dict[str, Hashable]:
        """Return a value of each source that differs when there are new records, partitions or topics.

        Those that only Java's client knows are omitted, and those of a connection that cannot be asked now.

        Args:
            specs: by any name.
            place: of the project.

        Raises:
            ProjectError, SetupError: a connection is not valid.
        """
        found: dict[str, Hashable] = {}
        for connection, mine, wanted in _by_connection(specs):
            answers = self._asked(connection, place, wanted)
            for name, spec in mine.items():
                if (topics := answers.get(_client(spec)[_ISOLATION])) is not None:
                    chosen = _chosen(spec, ClusterOffsets("", topics)).topics
                    found[name] = tuple((topic, now.id, tuple(now.end.items())) for topic, now in chosen.items())
        return found

    def _asked(
        self, connection: str, place: Place, wanted: Mapping[str, Sequence[str]]
    ) -> Mapping[str, Mapping[str, native_client.TopicOffsets]]:
        client = self._clients.pop(connection, None)
        if client is None:
            settings = place.connection(connection)
            addresses = read_connection(connection, settings).addresses
            client = native_client.opened(addresses, settings.get("security") or {})
        answers = native_client.ends(client, wanted) if client is not None else None
        if answers is None or client is None:
            return {}
        self._clients[connection] = client
        return answers


def _by_connection(
    specs: Mapping[str, SourceSpec],
) -> Iterator[tuple[str, dict[str, SourceSpec], dict[str, list[str]]]]:
    """Yield each connection with its sources that name their topics, and these topics by isolation level."""
    fixed = {name: spec for name, spec in specs.items() if "topic_pattern" not in spec.settings}
    for connection in dict.fromkeys(str(spec.settings["connection"]) for spec in fixed.values()):
        mine = {name: spec for name, spec in fixed.items() if str(spec.settings["connection"]) == connection}
        wanted: dict[str, list[str]] = {}
        for spec in mine.values():
            wanted.setdefault(_client(spec)[_ISOLATION], []).extend(_names(spec))
        yield connection, mine, wanted


def _chosen(spec: SourceSpec, answer: ClusterOffsets) -> ClusterOffsets:
    """The topics of a source, and the partitions that it is assigned to."""
    topics = {name: answer.topics[name] for name in _names(spec)}
    for name, wanted in (spec.settings.get("assign") or {}).items():
        topic = topics[name]
        first, end = ({p: offsets[p] for p in wanted if p in offsets} for offsets in (topic.first, topic.end))
        topics[name] = replace(topic, first=first, end=end)
    return replace(answer, topics=topics)


def same_start(spec: SourceSpec, known: Mapping[str, Any], now: ClusterOffsets) -> bool:
    """Whether a stream reads the topics of its last start, in the same cluster, with the same beginning."""
    topics = {name: topic.id for name, topic in now.topics.items()}
    return dict(known) == topic_check.remembered(spec, topics, now.cluster)


def unread(now: ClusterOffsets, offsets: Sequence[Mapping[str, Any]]) -> int | None:
    """How many offsets a stream has not read; the marks of transactions are among them.

    Args:
        now: its topics.
        offsets: where the sources of its query are.

    Returns:
        None: not known, because it has not begun with a partition, or is behind the end.
    """
    reached = [offset for item in offsets if (offset := _stand(item)) is not None]
    count = 0
    for name, topic in now.topics.items():
        mine = [topics[name] for topics in reached if name in topics]
        if not mine or any(set(partitions) != set(topic.end) for partitions in mine):
            return None
        behind = [topic.end[p] - offset for partitions in mine for p, offset in partitions.items()]
        if min(behind, default=0) < 0:
            return None
        count += sum(topic.end[p] - min(partitions[p] for partitions in mine) for p in topic.end)
    return count


def until_now(session: SparkSession, spec: SourceSpec, place: Place) -> SourceSpec:
    """The source with its end: however often it is read in full, it ends where its partitions end now.

    Where a stream would begin behind the newest record, all that is there is read.
    """
    at = position(session, spec, place)
    ends = {name: {p: offsets[1] for p, offsets in partitions.items() if p != "id"} for name, partitions in at.items()}
    return replace(spec, settings={**spec.settings, **_retained(spec), ENDS: ends})


def _retained(spec: SourceSpec) -> dict[str, Any]:
    offsets = starting_offsets(spec)
    if "starting_offsets" not in spec.settings or isinstance(offsets, str):
        return {"starting_offsets": "earliest"} if offsets == "latest" else {}
    known = {name: {p: -2 if o == -1 else o for p, o in partitions.items()} for name, partitions in offsets.items()}
    return {"starting_offsets": known}


def read_batch(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    """All records from the beginning to now."""
    return _read(session, spec, place, stream=False)


def read_stream(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    """Each record once; `max_offsets_per_trigger` in a micro-batch."""
    return _read(session, spec, place, stream=True)


def resume(
    session: SparkSession,
    spec: SourceSpec,
    place: Place,
    known: Mapping[str, Any],
    offsets: Sequence[Mapping[str, Any]],
) -> Resumption:
    """Check that a stream can continue; see `standing`."""
    stands = [stand for offset in offsets if (stand := _stand(offset)) is not None]
    with _cluster(session, spec, place) as (cluster, topics):
        return topic_check.resume(spec, cluster, topics, known, stands)


def _stand(offset: Mapping[str, Any]) -> dict[str, dict[int, int]] | None:
    """An offset of Spark's Kafka source, {"topic": {"0": 17}}; None if it is one of another source."""
    try:
        return {topic: {int(p): int(o) for p, o in partitions.items()} for topic, partitions in offset.items()}
    except (AttributeError, TypeError, ValueError):
        return None


def _connection(spec: SourceSpec, place: Place) -> Connection:
    name = str(spec.settings["connection"])
    return read_connection(name, place.connection(name))


@contextmanager
def _cluster(session: SparkSession, spec: SourceSpec, place: Place) -> Iterator[tuple[Cluster, dict[str, Topic]]]:
    """The cluster of a source, and the source's topics in it."""
    said = spec.settings
    with asked(session, _connection(spec, place)) as cluster:
        pattern = said.get("topic_pattern")
        names = cluster.matching(pattern) if pattern else _names(spec)
        topics = cluster.topics(names)
        for name, wanted in (said.get("assign") or {}).items():
            topics[name] = Topic(name, topics[name].id, tuple(wanted))
        yield cluster, topics


def _names(spec: SourceSpec) -> tuple[str, ...]:
    said = spec.settings
    return (said["topic"],) if "topic" in said else tuple(said.get("topics") or said["assign"])


def _read(session: SparkSession, spec: SourceSpec, place: Place, *, stream: bool) -> DataFrame:
    connection = _connection(spec, place)
    reach(connection)
    with _cluster(session, spec, place) as (_, topics):
        options = _options(spec, stream=stream, topics=topics)
    client = {**_FETCH_WAIT, **connection.client, **_client(spec)}
    options |= {f"kafka.{key}": value for key, value in client.items()}
    reader = session.readStream if stream else session.read
    records = reader.format("kafka").options(**options).load()
    taken = records.selectExpr(f"value as {RAW}", f"struct({', '.join(f'`{name}`' for name in _ORIGIN)}) as {ORIGIN}")
    value = value_of(spec)
    form = value_format(value["format"])
    if form is None:
        raise AssertionError(value["format"])
    return form.decode(taken, spec, value, place)


def _client(spec: SourceSpec) -> dict[str, str]:
    """The consumer's options that the source decides."""
    return {_ISOLATION: "read_committed", **consumer_options(spec.options)}


def _options(spec: SourceSpec, *, stream: bool, topics: Mapping[str, Topic] | None = None) -> dict[str, str]:
    """The options of Spark's reader, without those of the connection."""
    said = spec.settings
    options = {key: value for key, value in spec.options.items() if is_reader_option(key)}
    if pattern := said.get("topic_pattern"):
        options["subscribePattern"] = pattern
    elif "assign" in said:
        options["assign"] = json.dumps(said["assign"])
    else:
        options["subscribe"] = said["topic"] if "topic" in said else ",".join(said.get("topics", ()))
    if "starting_timestamp" in said:
        options["startingTimestamp"] = str(starting_milliseconds(said))
        # Nothing that is newer: it begins with what comes.
        options["startingOffsetsByTimestampStrategy"] = "latest"
    else:
        options["startingOffsets"] = _starting(spec, topics or {})
    if not stream:
        options["endingOffsets"] = json.dumps(said[ENDS]) if ENDS in said else "latest"
    elif limit := said.get("max_offsets_per_trigger"):
        options["maxOffsetsPerTrigger"] = str(limit)
    return {**options, "includeHeaders": "true", "failOnDataLoss": str(said.get("fail_on_data_loss", True)).lower()}


def _starting(spec: SourceSpec, topics: Mapping[str, Topic]) -> str:
    """Spark wants an offset for every partition; those that are not named are read from their first record."""
    offsets = starting_offsets(spec)
    if isinstance(offsets, str):
        return offsets
    named = {name: {str(p): -2 for p in topic.partitions} for name, topic in topics.items()}
    for name, partitions in offsets.items():
        named.setdefault(name, {}).update({str(p): offset for p, offset in partitions.items()})
    return json.dumps(named)
