"""Kafka topics as sources; `kafka_options` has the keys of a declaration, `connection` the settings of the target.

Aborted transactions are never seen (isolation.level is read_committed unless the source says otherwise).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.errors import StateError
from engine.sources.connection import Connection, reach, read_connection
from engine.sources.kafka import topic_check, topic_offsets
from engine.sources.kafka.cluster import Cluster
from engine.sources.kafka.cluster import cluster as open_cluster
from engine.sources.kafka.kafka_options import (
    KEYS,
    STARTS,
    TOPICS,
    faults,
    is_reader_option,
    starting_offsets,
)
from engine.sources.kafka.keyed_records import change_feed as keyed_changes
from engine.sources.kafka.keyed_records import is_keyed, with_keys
from engine.sources.kafka.topic_check import Topic
from engine.sources.kafka.topic_offsets import ISOLATION, PolledTopics, client_of, names_of, stand_of
from engine.sources.kafka.unread_times import UnreadTimes
from engine.sources.spec import (
    BAD,
    ORIGIN,
    RAW,
    SKIPPED,
    Place,
    Resumption,
    SourceSpec,
    begun_at,
    starting_milliseconds,
)
from engine.sources.traits import ChangeFeed, ColumnsBy, SourceTraits
from engine.sources.values import value_format
from engine.sources.values.declared_value import change_feed, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from engine.sources.spec import ClusterOffsets

__all__ = [
    "FORMATS", "KEYS", "LISTED", "MEANING", "ONE_OF", "REPLAYABLE", "TRAITS", "PolledTopics", "check", "columns",
    "faults", "jars", "location", "origin", "position", "read_batch", "read_stream", "resume", "script", "until_now",
]  # fmt: skip

FORMATS: tuple[str, ...] = ("kafka",)
ONE_OF: tuple[tuple[str, ...], ...] = (TOPICS, STARTS)
MEANING: tuple[str, ...] = (*TOPICS, "value", "key")
REPLAYABLE = True
LISTED = True
# Of a source that ends somewhere: the offset behind the last record of each partition, by topic.
ENDS = "ends"
# Spark asks for offsets after each fetch, on the connection on which Kafka's consumer already waits for records behind
# the end (KafkaDataConsumer.fetch, 4.1): each partition of each micro-batch took the broker's full wait, half a second.
_FETCH_WAIT = {"fetch.max.wait.ms": "10"}
# A model that is built long after its plan was made asks again.
_NEW_SECONDS = 10.0
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
    form = value_format(value_of(spec)["format"])
    return (*_JARS, *(form.jars() if form else ()))


def columns(spec: SourceSpec) -> str | None:
    value = value_of(spec)
    form = value_format(value["format"])
    # Without a known format the format is the fault that is reported.
    return form.columns(value) if form and not _schema_is_reported(spec) else ""


def _schema_is_reported(spec: SourceSpec) -> bool:
    return any(fault.path == ("schema",) for fault in faults(spec))


def origin(_: SourceSpec) -> str:
    return f"struct<{', '.join(f'{name}: {kind}' for name, kind in _ORIGIN.items())}>"


def location(spec: SourceSpec) -> str:
    settings = spec.settings
    if pattern := settings.get("topic_pattern"):
        return f"topics like {pattern}"
    names = [settings["topic"]] if "topic" in settings else list(settings.get("topics") or settings.get("assign") or ())
    return f"topic{'s' if len(names) > 1 else ''} {', '.join(names)}"


def script(spec: SourceSpec, *, stream: bool) -> list[str]:
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
    with _cluster(session, spec, place) as (cluster, topics):
        isolation = client_of(spec)[ISOLATION]
        firsts = cluster.offsets(topics.values(), first=True, isolation=isolation)
        ends = cluster.offsets(topics.values(), first=False, isolation=isolation)
    return {
        topic.name: {"id": topic.id, **{str(p): [firsts[topic.name][p], ends[topic.name][p]] for p in topic.partitions}}
        for topic in topics.values()
    }


def until_now(session: SparkSession, spec: SourceSpec, place: Place) -> SourceSpec:
    """Return the source with its end, where its partitions end now; one that would begin there is read in full."""
    at = position(session, spec, place)
    ends = {name: {p: offsets[1] for p, offsets in partitions.items() if p != "id"} for name, partitions in at.items()}
    return replace(spec, settings={**spec.settings, **_retained(spec), ENDS: ends})


def _retained(spec: SourceSpec) -> dict[str, Any]:
    offsets = starting_offsets(spec)
    if "starting_offsets" not in spec.settings or isinstance(offsets, str):
        return {"starting_offsets": "earliest"} if offsets == "latest" else {}
    known_offsets = {
        name: {p: -2 if o == -1 else o for p, o in partitions.items()} for name, partitions in offsets.items()
    }
    return {"starting_offsets": known_offsets}


def read_batch(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    return _read(session, spec, place, stream=False)


def read_stream(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    return _read(session, spec, place, stream=True)


def resume(
    session: SparkSession,
    spec: SourceSpec,
    place: Place,
    stored_facts: Mapping[str, Any],
    offsets: Sequence[Mapping[str, Any]],
) -> Resumption:
    now = _asked_now(spec, place)
    # Whether a topic that is not read any more is still there is known to Java's client.
    if stored_facts and now is not None and set(stored_facts.get("topics", {})) <= set(now.topics):
        return topic_offsets.resumption(spec, stored_facts, offsets, now)
    stands = [stand for offset in offsets if (stand := stand_of(offset)) is not None]
    with _cluster(session, spec, place) as (cluster, topics):
        return topic_check.resume(spec, cluster, topics, stored_facts, stands)


def _asked_now(spec: SourceSpec, place: Place) -> ClusterOffsets | None:
    """What the plan of this build has asked of the topics, as long as it is new; None: ask again."""
    now = place.topics.get(spec.name)
    return now if now is not None and time.monotonic() - now.asked_at < _NEW_SECONDS else None


def _connection(spec: SourceSpec, place: Place) -> Connection:
    name = str(spec.settings["connection"])
    return read_connection(name, place.connection(name))


@contextmanager
def _cluster(session: SparkSession, spec: SourceSpec, place: Place) -> Iterator[tuple[Cluster, dict[str, Topic]]]:
    settings = spec.settings
    with open_cluster(session, _connection(spec, place)) as cluster:
        pattern = settings.get("topic_pattern")
        names = cluster.matching(pattern) if pattern else names_of(spec)
        topics = cluster.topics(names)
        for name, assigned in (settings.get("assign") or {}).items():
            topics[name] = Topic(name, topics[name].id, tuple(assigned))
        yield cluster, topics


def _read(session: SparkSession, spec: SourceSpec, place: Place, *, stream: bool) -> DataFrame:
    connection = _connection(spec, place)
    if stream and (now := _asked_now(spec, place)) is not None:
        topics = topic_offsets.topics_of(now)
    else:
        reach(connection)
        with _cluster(session, spec, place) as (_, topics):
            pass
    options = _options(spec, stream=stream, topics=topics)
    client = {**_FETCH_WAIT, **connection.client, **client_of(spec)}
    options |= {f"kafka.{key}": value for key, value in client.items()}
    reader = session.readStream if stream else session.read
    records = reader.format("kafka").options(**options).load()
    raw_values = records.selectExpr(
        f"value as {RAW}", f"struct({', '.join(f'`{name}`' for name in _ORIGIN)}) as {ORIGIN}"
    )
    value = value_of(spec)
    form = value_format(value["format"])
    if form is None:
        raise AssertionError(value["format"])
    decoded = form.decode(raw_values, spec, value, place)
    if is_keyed(spec):
        return with_keys(decoded, spec)
    return _without_tombstones(decoded) if spec.settings.get("on_tombstone") == "ignore" else decoded


def _without_tombstones(frame: DataFrame) -> DataFrame:
    """A frame in which records with a key and no value are skipped, and not bad."""
    from pyspark.sql import functions as f

    if SKIPPED in frame.columns:
        return frame
    empty = f.col(BAD).isNotNull() & f.col(BAD)["raw"].isNull() & f.col(ORIGIN)["key"].isNotNull()
    frame = frame.withColumn(SKIPPED, f.when(empty, "tombstone"))
    return frame.withColumn(BAD, f.when(f.col(SKIPPED).isNull(), f.col(BAD)))


def _options(spec: SourceSpec, *, stream: bool, topics: Mapping[str, Topic] | None = None) -> dict[str, str]:
    settings = spec.settings
    options = {key: value for key, value in spec.options.items() if is_reader_option(key)}
    if pattern := settings.get("topic_pattern"):
        options["subscribePattern"] = pattern
    elif "assign" in settings:
        options["assign"] = json.dumps(settings["assign"])
    else:
        options["subscribe"] = settings["topic"] if "topic" in settings else ",".join(settings.get("topics", ()))
    if "starting_timestamp" in settings:
        options["startingTimestamp"] = str(starting_milliseconds(settings))
        # Nothing that is newer: it begins with what comes.
        options["startingOffsetsByTimestampStrategy"] = "latest"
    else:
        options["startingOffsets"] = _starting(spec, topics or {})
    if not stream:
        options["endingOffsets"] = json.dumps(settings[ENDS]) if ENDS in settings else "latest"
    elif limit := settings.get("max_offsets_per_trigger"):
        options["maxOffsetsPerTrigger"] = str(limit)
    return {**options, "includeHeaders": "true", "failOnDataLoss": str(settings.get("fail_on_data_loss", True)).lower()}


def _starting(spec: SourceSpec, topics: Mapping[str, Topic]) -> str:
    """Spark wants an offset for every partition; those that are not named are read from their first record."""
    offsets = starting_offsets(spec)
    if isinstance(offsets, str):
        return offsets
    all_offsets = {name: {str(p): -2 for p in topic.partitions} for name, topic in topics.items()}
    for name, partitions in offsets.items():
        all_offsets.setdefault(name, {}).update({str(p): offset for p, offset in partitions.items()})
    return json.dumps(all_offsets)


def _changes(spec: SourceSpec) -> ChangeFeed | None:
    return keyed_changes(spec) if is_keyed(spec) else change_feed(spec)


def _topic_names(spec: SourceSpec) -> tuple[str, ...]:
    settings = spec.settings
    names = settings.get("topics") or settings.get("topic") or settings.get("topic_pattern") or ()
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def _placed(_: SourceSpec, __: Place) -> dict[str, Any]:
    return {}


def _begun_at(spec: SourceSpec, at: int | None) -> SourceSpec:
    beginning = begun_at(spec, at)
    return (
        beginning
        if at is not None
        else replace(beginning, settings={**beginning.settings, "starting_offsets": "earliest"})
    )


def _columns_now(spec: SourceSpec, place: Place) -> list[tuple[str, str, str]] | None:
    value = spec.settings.get("value")
    if not isinstance(value, Mapping) or value.get("format") != "avro":
        return None
    from engine.sources.avro import avro_values

    columns = avro_values.columns_now(replace(spec, schema=""), value, place)
    return [(column.name, column.type, column.doc) for column in columns]


def _newest(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    return read_batch(session, topic_check.newest(spec, position(session, spec, place)), place)


def _sampled(session: SparkSession, spec: SourceSpec, place: Place) -> StructType:
    if columns(spec):
        return read_batch(session, spec, place).drop(BAD).schema
    texts = read_batch(session, topic_check.as_text(spec), place)
    return topic_check.of_json(session, spec.name, texts)


def _change_records(session: SparkSession, spec: SourceSpec, place: Place) -> list[tuple[bytes | None, bytes | None]]:
    newest = topic_check.newest(topic_check.as_bytes(spec), position(session, spec, place))
    rows = read_batch(session, newest, place).select(f"{ORIGIN}.key", "value").limit(topic_check.SAMPLE).collect()
    return [(key, value) for key, value in rows]


def _waiting(current_spans: Mapping[str, Any], stands: Sequence[Mapping[str, Any]]) -> int:
    """The marks of transactions are offsets as well. Other sources of the stream have other positions."""
    partition_positions = ((topic, by) for stand in stands for topic, by in stand.items() if isinstance(by, Mapping))
    read = {(topic, p): offset for topic, by in partition_positions for p, offset in by.items()}
    spans = (
        (t, p, span)
        for t, partition_positions in current_spans.items()
        for p, span in partition_positions.items()
        if p != "id"
    )
    return sum(end - max(first, read.get((topic, p), first)) for topic, p, (first, end) in spans)


def _records_between(
    session: SparkSession, spec: SourceSpec, place: Place, begin: Mapping[str, Any], end: Mapping[str, Any]
) -> SourceSpec:
    """Offsets by topic and partition, as Spark's checkpoint has them; unnamed partitions began with their first record.

    Raises:
        StateError: `source-gap`: the broker has deleted some of them.
        SetupError: the broker cannot be asked.
    """
    starts: dict[str, dict[int, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    deleted = []
    for topic, partitions in position(session, spec, place).items():
        for partition, (first, _) in ((p, span) for p, span in partitions.items() if p != "id"):
            # What a partition got since it was made is unread, where the stream does not know it.
            to = int(end.get(topic, {}).get(partition, first))
            start = int(begin.get(topic, {}).get(partition, 0)) if partition in end.get(topic, {}) else first
            if start < to and start < first:
                deleted.append(f"{topic}-{partition}: {start} to {min(first, to) - 1}")
            # An offset below the first record is an error for Spark, also where nothing is to be read.
            starts.setdefault(topic, {})[int(partition)] = max(start, first)
            ends.setdefault(topic, {})[partition] = max(to, first)
    if deleted:
        message = f"records of '{spec.name}' that were read are no longer on the broker ({'; '.join(deleted)})"
        raise StateError("source-gap", message, "A longer retention of the topic keeps them.")
    settings = {key: value for key, value in spec.settings.items() if key not in STARTS}
    return replace(spec, settings={**settings, "starting_offsets": starts, ENDS: ends})


TRAITS: Mapping[str, SourceTraits] = {
    "kafka": SourceTraits(
        connects=True,
        fixes_start=True,
        closed_options=True,
        columns_by=ColumnsBy.NAME,
        topic_names=_topic_names,
        change_feed=_changes,
        change_records=_change_records,
        placed=_placed,
        begun_at=_begun_at,
        topics_now=topic_offsets.topics_now,
        resumption=topic_offsets.resumption,
        same_start=topic_offsets.same_start,
        is_new=topic_offsets.is_new,
        unread=topic_offsets.unread,
        waiting=_waiting,
        records_between=_records_between,
        unread_times=UnreadTimes,
        poller=PolledTopics,
        columns_now=_columns_now,
        until_now=until_now,
        newest=_newest,
        sampled=_sampled,
    )
}
