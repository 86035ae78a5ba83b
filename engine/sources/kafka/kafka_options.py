"""What a Kafka source may say, and what is wrong with what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.errors import near
from engine.schema import ValueForm
from engine.schema.format_keys import KAFKA_KEYS
from engine.sources.connection import PREFIX, consumer_faults
from engine.sources.kafka.keyed_records import VALUES, key_of
from engine.sources.spec import SourceSpec, SpecFault, reader_faults, starting_milliseconds
from engine.sources.values import VALUE_FORMATS
from engine.sources.values.declared_value import value_faults, value_of
from engine.spark_options import KAFKA

KEYS: Mapping[str, ValueForm] = KAFKA_KEYS.forms
TOMBSTONE_POLICIES = next(key.choices for key in KAFKA_KEYS.keys if key.name == "on_tombstone")
TOPICS = ("topic", "topics", "topic_pattern", "assign")
STARTS = ("starting_offsets", "starting_timestamp")
# Options of Spark's reader that are not keys here.
READER_OPTIONS = (
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs",
    "maxRecordsPerPartition", "maxTriggerDelay", "minOffsetsPerTrigger", "minPartitions",
)  # fmt: skip
_READER = {name.lower(): KAFKA[name] for name in READER_OPTIONS}
_SET_HERE = {name.lower() for name in KAFKA} - set(_READER)
_PARTITION = re.compile("[0-9]{1,9}")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_FIRST, _LAST = -2, -1
_WORDS = {"earliest": _FIRST, "latest": _LAST}
_OFFSETS = "Write earliest, latest, {0: 1200, 1: 980} (partition: offset), or such a mapping for each topic."
_ASSIGN = "Write assign: {github-events: [0, 1]}."

# topic -> partition -> offset; the topic of a source that has one is left out where it is written
Offsets = Mapping[str, Mapping[int, int]]


def faults(spec: SourceSpec) -> Iterator[SpecFault]:
    settings = spec.settings
    yield from _topic_faults(spec)
    if not settings.get("connection"):
        hint = "Add 'connection: main', with a name of the target's 'connections:'."
        yield SpecFault(("connection",), f"source '{spec.name}' has no 'connection'", hint, "missing-key")
    yield from value_faults(spec, VALUE_FORMATS)
    yield from _tombstone_faults(spec)
    yield from _start_faults(settings)
    if spec.stream is False and "max_offsets_per_trigger" in settings:
        hint = "Remove it: 'stream: false' reads everything at once."
        yield SpecFault(
            ("max_offsets_per_trigger",), "'max_offsets_per_trigger' is for streams", hint, "setting-conflict", True
        )
    yield from _option_faults(spec)


def _topic_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    topic_keys = [key for key in TOPICS if key in spec.settings]
    if not topic_keys:
        hint = f"Write one of {', '.join(TOPICS)}."
        yield SpecFault(("topic",), f"source '{spec.name}' has no 'topic'", hint, "missing-key")
    for extra in topic_keys[1:]:
        message = f"'{topic_keys[0]}' and '{extra}' exclude each other"
        yield SpecFault((extra,), message, "Keep one of them.", "setting-conflict", at_key=True)
    for key in ("topic", "topics"):
        value = spec.settings.get(key, ())
        for name in (value,) if isinstance(value, str) else value:
            if not _TOPIC.fullmatch(name):
                hint = "Topics have letters, digits, '.', '_' and '-'; 'topic_pattern' takes a regular expression."
                yield SpecFault((key,), f"'{name}' is not a topic name", hint)
    if "assign" in spec.settings and not _is_assignment(spec.settings["assign"]):
        yield SpecFault(("assign",), "'assign' must map topics to lists of partitions", _ASSIGN)


def _is_assignment(value: Any) -> bool:
    lists = value.values() if isinstance(value, dict) else ()
    return bool(lists) and all(isinstance(p, list) and p and all(_is_number(n) for n in p) for p in lists)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _tombstone_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    policy = spec.settings.get("on_tombstone", TOMBSTONE_POLICIES[0])
    if policy == "bad_record" and value_of(spec)["format"] == "debezium":
        message = (
            "'on_tombstone: bad_record' cannot be combined with format 'debezium', which sends one after each delete"
        )
        yield SpecFault(("on_tombstone",), message, "Remove it.", "setting-conflict")
    if policy == "delete":
        yield from _keyed_faults(spec)
    elif "key" in spec.settings:
        hint = "Add 'on_tombstone: delete', or remove it."
        yield SpecFault(("key",), "'key' needs 'on_tombstone: delete'", hint, "setting-needs", at_key=True)
    if policy not in TOMBSTONE_POLICIES:
        message = f"'on_tombstone' cannot be '{policy}'"
        yield SpecFault(("on_tombstone",), message, f"Allowed: {', '.join(TOMBSTONE_POLICIES)}.")


def _keyed_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    format_ = value_of(spec)["format"]
    if format_ not in VALUES:
        message = f"'on_tombstone: delete' cannot be combined with format '{format_}'"
        hint = "Remove it: the records of deletes have an operation." if format_ == "debezium" else "Use json or avro."
        yield SpecFault(("on_tombstone",), message, hint, "setting-conflict")
    if not key_of(spec):
        message = "'on_tombstone: delete' needs 'key', the columns of the record's key"
        yield SpecFault(("on_tombstone",), message, "Add key: [id].", "setting-needs")
    if "topic" not in spec.settings:
        message = "'on_tombstone: delete' needs one 'topic', because offsets order the changes of a key"
        yield SpecFault(("on_tombstone",), message, "Declare a source per topic.", "setting-needs")


def _start_faults(settings: Mapping[str, Any]) -> Iterator[SpecFault]:
    if all(key in settings for key in STARTS):
        message = "'starting_offsets' and 'starting_timestamp' exclude each other"
        yield SpecFault((STARTS[1],), message, "Keep one of them.", "setting-conflict", at_key=True)
    if STARTS[0] in settings and _offsets(settings) is None:
        yield SpecFault((STARTS[0],), "'starting_offsets' cannot be read", _OFFSETS)
    if STARTS[1] in settings and starting_milliseconds(settings) is None:
        hint = "Write it as 2024-05-01 10:00:00 (UTC) or 2024-05-01T10:00:00+02:00."
        yield SpecFault((STARTS[1],), f"'{settings[STARTS[1]]}' is not a timestamp", hint)


def _option_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    client = {key: value for key, value in spec.options.items() if not is_reader_option(key)}
    yield from reader_faults(spec, KAFKA, "the kafka reader", reserved={key.lower() for key in client})
    for key, message, hint in consumer_faults(client):
        suggestion = near(key, (*READER_OPTIONS, *KEYS)) if not key.startswith(PREFIX) else ""
        if key.lower() in _SET_HERE:
            yield SpecFault(("options", key), f"the option '{key}' is set by Headrace", _key_of(key), at_key=True)
            continue
        code = "bad-value" if key.startswith(PREFIX) else "unknown-option"
        yield SpecFault(
            ("options", key), message, suggestion if suggestion.startswith("Did") else hint, code, at_key=True
        )


def is_reader_option(name: str) -> bool:
    """Whether an option is one of Spark's reader that a source may set; letter case makes no difference."""
    return name.lower() in _READER


def _key_of(option: str) -> str:
    keys = {key.replace("_", ""): key for key in KEYS} | {"subscribe": "topic", "subscribepattern": "topic_pattern"}
    key = keys.get(option.lower())
    return f"Write '{key}:' next to 'format:'." if key else "Remove it."


def starting_offsets(spec: SourceSpec) -> str | Offsets:
    """`earliest`, `latest`, or the offsets by topic and partition (-2 earliest, -1 latest)."""
    return _offsets(spec.settings) or "earliest"


def _offsets(settings: Mapping[str, Any]) -> str | Offsets | None:
    value = settings.get("starting_offsets")
    if value is None or isinstance(value, str):
        return None if value is not None and value not in _WORDS else value or "earliest"
    if not isinstance(value, dict) or not value:
        return None
    if all(isinstance(inner, dict) for inner in value.values()):
        by_topic = {str(topic): _partitions(inner) for topic, inner in value.items()}
    elif "topic" in settings:
        by_topic = {settings["topic"]: _partitions(value)}
    else:
        return None
    return {topic: read for topic, read in by_topic.items() if read} if all(by_topic.values()) else None


def _partitions(value: Mapping[Any, Any]) -> dict[int, int] | None:
    offsets = {}
    for partition, offset in value.items():
        number = _WORDS.get(offset, offset) if isinstance(offset, str) else offset
        if not _PARTITION.fullmatch(str(partition)) or not (_is_number(number) or number in {_FIRST, _LAST}):
            return None
        offsets[int(partition)] = int(number)
    return offsets or None
