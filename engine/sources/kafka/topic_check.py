"""Before a stream continues: does Kafka still have what it has not read, in the topics it has read so far?

Spark continues silently in a topic that was deleted and recreated, once that is longer than the old one was; and
with failOnDataLoss=false it skips what retention has deleted without counting it.

A part of the records of topics: the newest of them, and the columns that are seen in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from engine.errors import Diagnostic, Level, StateError
from engine.sources.inferred_types import as_strings, fit_types, no_arrays
from engine.sources.kafka.kafka_options import starting_offsets
from engine.sources.spec import BAD, Resumption, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its id, which a topic that is deleted and recreated does not keep, and its partitions."""

    name: str
    id: str
    partitions: tuple[int, ...]


class Cluster(Protocol):
    """A cluster that can be asked: by the client in Spark's JVM for a build, or what a plan has asked without Java."""

    @property
    def addresses(self) -> str: ...

    def id(self) -> str:
        """Its id; empty: it has none."""

    def names(self) -> tuple[str, ...]:
        """The names of its topics, as far as they are known."""

    def offsets(self, topics: Iterable[Topic], *, first: bool) -> Mapping[str, Mapping[int, int]]:
        """The first or the end offset of every partition, with those of open transactions."""


# topic -> partition -> the next offset to read
Stand = Mapping[str, Mapping[int, int]]


def resume(
    spec: SourceSpec,
    cluster: Cluster,
    topics: Mapping[str, Topic],
    stored_facts: Mapping[str, Any],
    stands: Sequence[Stand],
) -> Resumption:
    """Compare the cluster with what a stream knew of it.

    Raises StateError: source-changed, source-replaced, source-shrunk or source-gap.
    """
    start, identity = _start(spec), cluster.id()
    _check_cluster(spec, stored_facts, identity, cluster.addresses)
    ids = {topic.name: topic.id for topic in topics.values()}
    stand = _merged(stands, topics)
    if not stored_facts and not stand:
        return Resumption(remembered(spec, ids, identity))
    _check_left_out(spec, stored_facts.get("topics", {}), topics, cluster)
    _check_ids(spec, stored_facts.get("topics", {}), topics)
    notes: list[Diagnostic] = [*_start_notes(spec, stored_facts, start), *_new_topics(spec, stored_facts, topics)]
    present_topics = [topic for topic in topics.values() if topic.name in stand]
    if present_topics:
        ends = cluster.offsets(present_topics, first=False)
        firsts = cluster.offsets(present_topics, first=True)
        _check_ends(spec, stand, ends)
        notes += _gaps(spec, stand, firsts)
    # A topic that is gone for now and comes back is still the one, or another one.
    known_ids = {**stored_facts.get("topics", {}), **ids}
    return Resumption(remembered(spec, known_ids, identity), tuple(notes))


def remembered(spec: SourceSpec, topics: Mapping[str, str], cluster: str) -> dict[str, Any]:
    return {"topics": dict(topics), "start": _start(spec), "cluster": cluster}


def _start(spec: SourceSpec) -> str:
    if moment := spec.settings.get("starting_timestamp"):
        return f"starting_timestamp: {moment}"
    offsets = starting_offsets(spec)
    return f"starting_offsets: {offsets if isinstance(offsets, str) else spec.settings['starting_offsets']}"


def _merged(stands: Iterable[Stand], topics: Mapping[str, Topic]) -> dict[str, dict[int, int]]:
    """The lowest offset of each partition: two inputs of a query may read one topic."""
    merged: dict[str, dict[int, int]] = {}
    for stand in stands:
        for topic in topics:
            for partition, offset in stand.get(topic, {}).items():
                own = merged.setdefault(topic, {})
                own[partition] = min(offset, own.get(partition, offset))
    return merged


def _check_cluster(spec: SourceSpec, stored_facts: Mapping[str, Any], identity: str, addresses: str) -> None:
    before = stored_facts.get("cluster") or identity
    if before != identity:
        message = (
            f"'{spec.name}' was read from another Kafka cluster ({before}); the brokers at {addresses} are {identity}"
        )
        hint = (
            "The offsets of the stream do not apply to the new cluster. Undo the change of the connection, or "
            "rebuild the table from the new cluster: engine build -f -s <model>"
        )
        raise StateError("source-changed", message, hint)


def _check_left_out(spec: SourceSpec, before: Mapping[str, str], topics: Mapping[str, Topic], cluster: Cluster) -> None:
    """A topic that is gone may come back; one that is there and not read any more is another source."""
    absent = set(before) - set(topics)
    left_out = sorted(absent.intersection(cluster.names())) if absent else []
    if left_out:
        message = f"'{spec.name}' no longer reads the topic '{left_out[0]}', of which the stream has offsets"
        hint = "Undo the change, or rebuild the table: engine build -f -s <model>"
        raise StateError("source-changed", message, hint)


def _check_ids(spec: SourceSpec, before: Mapping[str, str], topics: Mapping[str, Topic]) -> None:
    for topic in topics.values():
        if before.get(topic.name, topic.id) != topic.id:
            message = f"the topic '{topic.name}' of '{spec.name}' was deleted and recreated since the last build"
            hint = (
                "The stream has offsets of the old topic and would skip records of the new one. Rebuild the table "
                "from the new topic: engine build -f -s <model>"
            )
            raise StateError("source-replaced", message, hint)


def _check_ends(spec: SourceSpec, stand: Stand, ends: Stand) -> None:
    for topic, partitions in stand.items():
        for partition, offset in sorted(partitions.items()):
            end = ends.get(topic, {}).get(partition)
            if end is not None and end < offset:
                message = (
                    f"'{spec.name}' has read partition {partition} of the topic '{topic}' up to offset {offset}, "
                    f"and it ends at {end} now"
                )
                hint = (
                    "The broker no longer has records that were read: it lost data, or the topic was replaced. "
                    "Restore it, or rebuild the table: engine build -f -s <model>"
                )
                raise StateError("source-shrunk", message, hint)


def _gaps(spec: SourceSpec, stand: Stand, firsts: Stand) -> Iterator[Diagnostic]:
    """Records that were deleted before they were read: an error, or counted where that is accepted."""
    missing = {
        (topic, partition): (offset, firsts[topic][partition])
        for topic, partitions in stand.items()
        for partition, offset in sorted(partitions.items())
        if partition in firsts.get(topic, {}) and firsts[topic][partition] > offset
    }
    if not missing:
        return
    lost_offsets = sum(end - begin for begin, end in missing.values())
    places = "; ".join(
        f"{topic}-{partition}: {begin} to {end - 1}" for (topic, partition), (begin, end) in missing.items()
    )
    message = f"{lost_offsets:,} offsets of '{spec.name}' were deleted by the broker before they were read ({places})"
    if spec.settings.get("fail_on_data_loss", True):
        hint = (
            "Rebuild the table from the remaining records (engine build -f -s <model>), or accept the gap: "
            "'fail_on_data_loss: false' in the source's declaration. A longer retention of the topic avoids it."
        )
        raise StateError("source-gap", message, hint)
    hint = "'fail_on_data_loss: false' accepts it: the table has a gap there."
    yield Diagnostic("source-gap", message, hint, Level.WARNING, spec.name)


def _start_notes(spec: SourceSpec, stored_facts: Mapping[str, Any], start: str) -> Iterator[Diagnostic]:
    before = stored_facts.get("start", start)
    if before != start:
        message = f"'{spec.name}' is set to '{start}' now, but the stream started with '{before}'"
        hint = "The stream continues from its offsets: the setting applies to the first build only."
        yield Diagnostic("source-start", message, hint, Level.WARNING, spec.name)


def _new_topics(spec: SourceSpec, stored_facts: Mapping[str, Any], topics: Mapping[str, Topic]) -> Iterator[Diagnostic]:
    before = stored_facts.get("topics", {})
    new = sorted(set(topics) - set(before)) if before else []
    if new:
        message = f"'{spec.name}' has new topics, read from their first record: {', '.join(new)}"
        yield Diagnostic("source-new-topic", message, "", Level.WARNING, spec.name)


# Of so many records of each partition the newest time is looked for.
NEWEST = 1000
# Records that are looked at for columns.
SAMPLE = 1000


def newest(spec: SourceSpec, position: Mapping[str, Mapping[str, Any]]) -> SourceSpec:
    """Return the source from its newest records on; `position` has first and end offsets, and the id, by topic."""
    starts: dict[str, dict[str, int]] = {}
    for topic, spans in position.items():
        partitions = {key: value for key, value in spans.items() if key != "id"}
        starts[topic] = {partition: max(first, end - NEWEST) for partition, (first, end) in partitions.items()}
    settings = {key: value for key, value in spec.settings.items() if key != "starting_timestamp"}
    return replace(spec, settings={**settings, "starting_offsets": starts})


def as_text(spec: SourceSpec) -> SourceSpec:
    return replace(spec, schema="", settings={**spec.settings, "value": {"format": "string"}})


def as_bytes(spec: SourceSpec) -> SourceSpec:
    return replace(spec, schema="", settings={**spec.settings, "value": {"format": "bytes"}})


def of_json(session: SparkSession, source: str, texts: DataFrame) -> StructType:
    """The columns of some of the values of a source, which are JSON.

    Raises RunError: `source-unreadable`, a record is an array.
    """
    rows = texts.where(f"{BAD} is null").select("value").limit(SAMPLE).collect()
    frame = session.createDataFrame([(row[0], "a record") for row in rows], "value string, place string")
    no_arrays(frame, source)
    lines = session.sparkContext.parallelize([row[0] for row in rows], 1)
    reader = session.read.options(inferTimestamp="true", mode="DROPMALFORMED")
    schema = reader.json(lines).schema
    return fit_types(reader.schema(cast("StructType", as_strings(schema))).json(lines), schema, json=True)
