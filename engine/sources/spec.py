"""What a source is, and what a kind of source (one module, listed in `engine.sources.KINDS`) has to say and do.

Its frames have the declared columns, then `_metadata` (where the record came from), then `__bad`, which is NULL unless
the record could not be read as declared. Also: `max_bad_records`, and the time with which a stream begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import Diagnostic, EngineError, ProjectError
from engine.object_store.s3_settings import S3Settings
from engine.schema import ValueForm
from engine.secrets.scrubber import register_secret
from engine.sources.credentials import credentials_of, data_digest
from engine.spark_options import Form as OptionForm
from engine.spark_options import option_faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from engine.lake.catalog.catalog_settings import CatalogConfig


# A share of fewer records than this says nothing.
FEWEST = 20
_ALL = 100.0
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True, slots=True)
class BadRecordLimit:
    """Without both limits not all records may be bad; `percent` counts from 20 records on."""

    count: int | None = None
    percent: float | None = None

    def exceeded(self, bad: int, records: int) -> bool:
        if self.count is not None:
            return bad > self.count
        if records < FEWEST:
            return False
        return bad * _ALL > self.percent * records if self.percent is not None else bad == records

    def __str__(self) -> str:
        return str(self.count) if self.count is not None else f"{self.percent:g}%" if self.percent is not None else ""


def read_limit(value: object) -> BadRecordLimit | None:
    """The limit that a declaration writes, `100` or `1%`; None: it is neither."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return BadRecordLimit(count=value)
    share = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    percent = float(share.group(1)) if share else _ALL + 1
    return BadRecordLimit(percent=percent) if percent <= _ALL else None


# Where a record came from: a struct; `select *` does not include it.
ORIGIN = "_metadata"
# Why a record is bad: struct<reason: string, raw: binary>, NULL for a good one. No query sees it.
BAD = "__bad"
# What a record is that is neither a row nor bad, such as a tombstone: text, NULL for others.
SKIPPED = "__skipped"
# The bytes of a record on their way from a kind to the format that reads them.
RAW = "__raw"
# Before the name of a reader of Spark's own, or from a jar, in `format:`.
SPARK_READER = "spark."


class OnBadRecord(StrEnum):
    FAIL = "fail"
    DROP = "drop"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """`schema` is DDL, empty: what the kind brings; `timezone` None: UTC; `stream` False: bounded reads only."""

    name: str
    format: str
    schema: str
    options: Mapping[str, str] = field(default_factory=dict)
    timezone: str | None = None
    on_bad_record: OnBadRecord = OnBadRecord.FAIL
    max_bad_records: BadRecordLimit = field(default_factory=BadRecordLimit)
    stream: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpecFault:
    """`at_key`: the fault is the key, not its value."""

    path: tuple[str, ...]
    message: str
    hint: str
    code: str = "bad-value"
    at_key: bool = False


def reader_faults(
    spec: SourceSpec,
    known_options: Mapping[str, OptionForm],
    reader: str,
    *,
    reserved: Collection[str] = (),
    hadoop: bool = False,
) -> Iterator[SpecFault]:
    """Return what is wrong with options, by the list of their reader; `reserved` ones are reported elsewhere."""
    options = {key: value for key, value in spec.options.items() if key.lower() not in reserved}
    for name, fault in option_faults(options, known_options, reader, hadoop=hadoop):
        hint = fault.hint
        if fault.code == "unknown-option":
            hint = f"{hint} To pass it unchecked, set 'allow_unknown_options: true' next to 'options:'.".strip()
        yield SpecFault(("options", name), fault.message, hint, fault.code, at_key=fault.code != "bad-value")


def _raise_unknown_connection(name: str) -> Mapping[str, Any]:
    hint = f"Add '{name}' under 'connections:' of the target in project.yml."
    raise EngineError("unknown-connection", f"the target has no '{name}'", hint)


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """`id` changes with a recreated topic; `end` is as a consumer sees it, `written` includes open transactions."""

    id: str
    first: Mapping[int, int]
    end: Mapping[int, int]
    written: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ClusterOffsets:
    """`asked_at` is on the monotonic clock."""

    cluster: str
    topics: Mapping[str, TopicOffsets] = field(default_factory=dict)
    addresses: str = ""
    asked_at: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Place:
    """Where sources are read: the project's folder, and the target's settings, rendered on first use.

    `connection`, `registry`: settings by name, with secrets.
    settled: by source, what a generation pins at its first read, such as a reader's schema; reading adds to it.
    `folders`: by source, the columns in folder names that its frame was made for; reading adds to it.
    `store`: the login of object storage; None: no `s3:`.
    `topics`: by source, the offsets that the plan of a build has asked of Kafka.
    """

    root: Path
    connection: Callable[[str], Mapping[str, Any]] = _raise_unknown_connection
    registry: Callable[[str], Mapping[str, Any]] = _raise_unknown_connection
    settled: dict[str, str] = field(default_factory=dict)
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    catalog: CatalogConfig | None = None
    store: Callable[[], S3Settings] | None = None
    topics: Mapping[str, ClusterOffsets] = field(default_factory=dict)


def with_connection_options(spec: SourceSpec, place: Place, reserved: Collection[str] = ()) -> SourceSpec:
    """A source of files or of one of Spark's readers with the options of its connection, which win over its own.

    Raises ProjectError: `unknown-connection`, `connection-settings`; no value is shown.
    """
    name = str(spec.settings.get("connection") or "")
    connection_options = reader_options(name, place.connection(name), reserved) if name else {}
    connection_keys = {key.lower() for key in connection_options}
    own = {key: value for key, value in spec.options.items() if key.lower() not in connection_keys}
    return replace(spec, options={**own, **connection_options}) if connection_options else spec


def reader_options(name: str, settings: Mapping[str, Any], reserved: Collection[str] = ()) -> dict[str, str]:
    """The options that a connection has for Spark's readers; credentials in them are masked in all texts from now on.

    Raises ProjectError: `connection-settings`; no value is shown.
    """
    options = settings.get("options", {})
    faults = [f"'{key}' is a setting of Kafka's connections" for key in settings if key != "options"]
    if not isinstance(options, Mapping):
        faults.append("'options' must be a mapping")
    else:
        faults += [f"the option '{key}' is set by Headrace" for key in options if str(key).lower() in reserved]
        faults += [f"the option '{key}' is a list or a mapping" for key, v in options.items() if not _is_plain(v)]
    if faults:
        message = f"the connection '{name}' cannot be used for files or Spark readers: {'; '.join(faults)}"
        raise ProjectError("connection-settings", message, "Write 'options: {url: .., user: .., password: ..}'.")
    read = {str(key): str(v).lower() if isinstance(v, bool) else str(v) for key, v in options.items()}
    for credential in credentials_of(read):
        register_secret(credential)
    return read


def connection_line(spec: SourceSpec) -> tuple[str, ...]:
    name = spec.settings.get("connection")
    return (f"# .options(**the options of the connection {json.dumps(name)})",) if name else ()


def connection_leads(spec: SourceSpec, place: Place) -> dict[str, str]:
    """Where the connection of a source leads, without its credentials: another password is the same source."""
    name = str(spec.settings.get("connection") or "")
    leads = data_digest(reader_options(name, place.connection(name))) if name else ""
    return {"connection": leads} if leads else {}


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float))


@dataclass(frozen=True, slots=True)
class Resumption:
    """`stored_facts` is plain JSON, remembered with the table's state; `notes` are warnings for the user."""

    stored_facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Diagnostic, ...] = ()


class Kind(Protocol):
    """A kind of source: a module with these names, and with TRAITS if it has more to say (`engine.sources.traits`).

    ONE_OF: keys of which at most one is given; a target that gives one replaces the others. MEANING: keys on which the
    rows depend, part of a model's fingerprint. REPLAYABLE: a record that was read can be read again. LISTED: it must be
    under `streams:`, or say `stream: false`.
    """

    FORMATS: tuple[str, ...]
    KEYS: Mapping[str, ValueForm]
    ONE_OF: tuple[tuple[str, ...], ...]
    MEANING: tuple[str, ...]
    REPLAYABLE: bool
    LISTED: bool

    def faults(self, spec: SourceSpec, /) -> Iterable[SpecFault]: ...

    def jars(self, spec: SourceSpec, /) -> Sequence[str]:
        """The sets of locked jars that reading it needs, beyond core."""

    def columns(self, spec: SourceSpec, /) -> str | None:
        """The columns it brings without a schema, as DDL; empty: known when it is read; None: it needs a schema."""

    def origin(self, spec: SourceSpec, /) -> str: ...

    def location(self, spec: SourceSpec, /) -> str:
        """Where it is, for people: one line without secrets."""

    def script(self, spec: SourceSpec, /, *, stream: bool) -> Sequence[str]:
        """Lines of PySpark that read it, from `spark.read` on."""

    def check(self, spec: SourceSpec, place: Place, /) -> None:
        """Make sure that there is something to read, in bounded time and without Java.

        Raises SetupError: there is not.
        """

    def position(self, session: SparkSession, spec: SourceSpec, place: Place, /) -> Mapping[str, Any]:
        """What a batch would read now, as plain JSON: equal as long as a batch would read the same."""

    def read_batch(self, session: SparkSession, spec: SourceSpec, place: Place, /) -> DataFrame: ...

    def read_stream(self, session: SparkSession, spec: SourceSpec, place: Place, /) -> DataFrame: ...

    def resume(
        self,
        session: SparkSession,
        spec: SourceSpec,
        place: Place,
        stored_facts: Mapping[str, Any],
        offsets: Sequence[Mapping[str, Any]],
        /,
    ) -> Resumption:
        """Check, before a query starts, that its source still has all it has not read.

        Raises StateError: it has not; nothing was read.
        """


# Keys of a declaration that set where a stream begins.
_STARTS = {"starting_offsets", "starting_timestamp", "starting_snapshot"}


def starting_milliseconds(settings: Mapping[str, Any]) -> int | None:
    """`starting_timestamp` of a source in milliseconds; None if it is not a timestamp."""
    return milliseconds(str(settings["starting_timestamp"]))


def milliseconds(text: str) -> int | None:
    """A time in milliseconds since 1970, UTC unless it says another zone; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def begun_at(spec: SourceSpec, at: int | None) -> SourceSpec:
    """Return the source with a stream that begins at a time in milliseconds since 1970, whatever it declares."""
    settings = {key: value for key, value in spec.settings.items() if key not in _STARTS}
    if at is not None:
        settings["starting_timestamp"] = datetime.fromtimestamp(at / 1000, UTC).isoformat()
    return replace(spec, settings=settings)
