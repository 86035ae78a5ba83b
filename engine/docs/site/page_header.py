"""The settings of models and sources in words, one line for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from engine.compile.artifacts.dbt_manifest import partition_text, sort_text
from engine.compile.nodes.manifest import Input, Model, Source
from engine.compile.nodes.model_settings import (
    Expectation,
    History,
    OnFail,
    OnNull,
    OnSchemaChange,
    OnUpstreamDelete,
    Operation,
    OutputMode,
    Overwrite,
    Publish,
    TriggerKind,
    Write,
)
from engine.compile.nodes.unit_test_steps import ExpectedResult, StepKind, UnitTest
from engine.docs.site.format_values import event_time, files, listed, value, window
from engine.sources import OnBadRecord, location
from engine.times import in_words

# Of an expectation: where it is, and how its rows are compared.
_HOW_EXPECTED = {"location", "ordered"}
_NEW_COLUMNS = {
    OnSchemaChange.APPEND_COLUMNS: "are added to the table, and are NULL in the rows before",
    OnSchemaChange.IGNORE: "of the query are not added to the table",
}
_BAD_RECORDS = {
    OnBadRecord.FAIL: "stop the build, unless a model overrides it",
    OnBadRecord.DROP: "are dropped and counted, unless a model overrides it",
    OnBadRecord.QUARANTINE: "go to the quarantine tables of the models that read it, unless a model overrides it",
}
_KEPT_RUNNING = "while engine start runs"
_BECOME = {
    OnFail.WARN: "are counted",
    OnFail.DROP: "are dropped and counted",
    OnFail.QUARANTINE: "go to the quarantine table",
    OnFail.FAIL: "stop the build",
}


@dataclass(frozen=True, slots=True)
class Detail:
    about: str
    text: str


def source_words(source: Source) -> Iterator[Detail]:
    spec = source.spec
    settings = spec.settings
    yield Detail("Source", f"{spec.format or 'an unknown format'}, {location(spec)}".rstrip(", "))
    if spec.stream is False:
        yield Detail("Read", "in full at each build, never as a stream")
    if start := _start(source):
        yield Detail("Starts at", start)
    if limit := settings.get("max_files_per_trigger"):
        yield Detail("Micro-batch", f"at most {files(limit)}")
    if limit := settings.get("max_offsets_per_trigger"):
        yield Detail("Micro-batch", f"at most {limit:,} records")
    if spec.timezone or "timestamp" in spec.schema:
        yield Detail("Time zone", f"timestamps without a zone are read as {spec.timezone or 'UTC'}")
    if source.watermark:
        late = f"rows up to {in_words(source.watermark.delay)} late are accepted"
        yield Detail("Event time", f"{event_time(source.watermark)}; {late}, unless a model overrides it")
    if source.dedup:
        yield Detail("Duplicates", f"duplicates of {listed(source.dedup)} are dropped")
    if source.freshness:
        bounds = (("warns after", source.freshness.warn_after), ("fails after", source.freshness.error_after))
        ages = ", ".join(
            f"{text} {age.count} {age.period}{'' if age.count == 1 else 's'}" for text, age in bounds if age
        )
        yield Detail("Freshness", f"{ages}, by {source.freshness.loaded_at}")
    if settings.get("on_upstream_delete") == OnUpstreamDelete.IGNORE:
        yield Detail("Deletions", "are skipped: rows that were read stay")
    yield Detail("Bad records", _BAD_RECORDS[spec.on_bad_record])
    yield from _acknowledged(source)


def _start(source: Source) -> str:
    settings = source.spec.settings
    offsets = settings.get("starting_offsets")
    if at := settings.get("starting_timestamp"):
        return str(at)
    if snapshot := settings.get("starting_snapshot"):
        return f"snapshot {snapshot}"
    if offsets == "latest":
        return "data that arrives after the first build"
    return f"the offsets {value(offsets)}" if isinstance(offsets, dict) else ""


def model_words(model: Model) -> Iterator[Detail]:
    streams = [item for item in model.inputs if item.stream]
    for item in streams:
        yield from _stream_words(model, item, f" of {item.name}" if len(streams) > 1 else "")
    whole = list(dict.fromkeys(item.name for item in model.inputs if not item.stream))
    if whole:
        when = "re-read in each micro-batch" if streams else "in full"
        yield Detail("Reads", f"{listed(whole)}, {when}")
    for name, declared in model.windows.items():
        yield Detail("Windows", f"{name}: {window(declared)}")
    yield Detail("Writes", _writes(model))
    if model.in_catalog:
        yield from _table_words(model.write)
    for expectation in model.expectations:
        yield Detail("Expectation", _expects(expectation))
    yield from _runs(model)
    yield from _acknowledged(model)


def _acknowledged(node: Model | Source) -> Iterator[Detail]:
    for finding in node.acknowledged:
        yield Detail("Acknowledged", f"{finding.message} ({finding.code})")


def _table_words(write: Write) -> Iterator[Detail]:
    if write.exclude:
        yield Detail("Excludes", f"{listed(write.exclude)}: in the query only, not in the table")
    if write.partition_by:
        yield Detail("Partitioned", ", ".join(partition_text(field) for field in write.partition_by))
    if write.sort_by:
        yield Detail("Sorted", ", ".join(sort_text(field) for field in write.sort_by))
    if write.on_schema_change in _NEW_COLUMNS:
        yield Detail("New columns", _NEW_COLUMNS[write.on_schema_change])


def _stream_words(model: Model, item: Input, of_input: str) -> Iterator[Detail]:
    pace = f", {files(item.max_files_per_trigger)} in a micro-batch" if item.max_files_per_trigger else ""
    ignored = item.on_upstream_delete is OnUpstreamDelete.IGNORE
    way = f", through {item.through}" if item.through else ""
    yield Detail("Reads", f"{item.name} as a stream{way}{pace}{'; deletions there are skipped' if ignored else ''}")
    mark = item.watermark
    if mark:
        late = (
            f"rows{of_input} up to {in_words(mark.delay)} late are accepted"
            if model.stateful
            else f"no row{of_input} is too late"
        )
        ahead = f"; rows more than {in_words(mark.max_future)} in the future are bad records" if mark.max_future else ""
        dropped = mark.on_null is OnNull.DROP
        null = f"; rows without it are {'dropped and counted' if dropped else 'bad records'}" if item.needs_time else ""
        yield Detail("Event time", f"{event_time(mark)}; {late}{ahead}{null}")
    if item.dedup:
        within = f" within {in_words(mark.delay)}" if mark else ""
        yield Detail(
            "Duplicates", f"duplicates of {listed(item.dedup)}{of_input and f' in {item.name}'}{within} are dropped"
        )


def _writes(model: Model) -> str:
    write = model.write
    if not model.keeps_rows:
        return model.materialized.traits.writes
    if not model.streaming:
        return _writes_whole(write)
    if write.output_mode is OutputMode.COMPLETE:
        return "the whole table in each micro-batch; every group is kept in state indefinitely"
    if write.unique_key:
        return _merges(write)
    if model.windows and model.stateful:
        return "each window once, when the watermark passes its end"
    return "new rows, appended"


def _writes_whole(write: Write) -> str:
    if write.history:
        appended = "change" if write.history is History.CHANGES else "version"
        added = listed(write.history.columns)
        return (
            f"every {appended} of each {listed(write.unique_key)}, with {added}; each build compares the query's rows"
        )
    whole = write.overwrite is Overwrite.TABLE
    return "the whole table, in one commit" if whole else "the partitions it has rows for, in one commit"


def _merges(write: Write) -> str:
    key = listed(write.unique_key)
    if not write.sequence_by:
        how = "updated in" if write.output_mode is OutputMode.UPDATE else "replaced by the newest row of"
        return f"one row for each {key}, {how} each micro-batch"
    order = listed(write.sequence_by)
    where_deleted = f"; where {write.delete_when} is true,"
    if write.history:
        text = f"every version of each {key}, in the order of {order}, with valid_from, valid_to and is_current"
        return text + (f"{where_deleted} the newest version is closed" if write.delete_when else "")
    text = f"one row for each {key}, the newest by {order}"
    if write.delete_when:
        text += f"{where_deleted} the row is deleted, and older rows of that key are ignored for "
        text += in_words(write.deletes_remembered)
    return text


def _expects(expectation: Expectation) -> str:
    about = f" ({expectation.description})" if expectation.description else ""
    return f"{expectation.name}: {expectation.check}; rows that do not meet it {_BECOME[expectation.on_fail]}{about}"


def _runs(model: Model) -> Iterator[Detail]:
    run, write = model.operation, model.write
    if write.publish is Publish.ON_TESTS_PASS:
        yield Detail("Published", "when its tests have passed; until then readers see the previous rows")
    if run.trigger.kind is TriggerKind.EVERY and run.trigger.interval:
        yield Detail("Trigger", f"a micro-batch every {in_words(run.trigger.interval)} {_KEPT_RUNNING}")
    if run.schedule:
        yield Detail("Trigger", f"by the schedule {run.schedule} {_KEPT_RUNNING}")
    if run.stalled_after:
        after = in_words(run.stalled_after)
        yield Detail("Stalled", f"after {after} of unread input without a commit {_KEPT_RUNNING}")
    for about, hooks in (("Before it", run.pre_hook), ("After it", run.post_hook)):
        yield from (Detail(about, sql) for sql in hooks)
    if run.full_refresh is False:
        yield Detail("Protected", "from a full refresh")
    if run.renamed_from:
        yield Detail("Renamed", f"from {run.renamed_from}")
    if model.streaming and run.keep_previous != Operation().keep_previous:
        yield Detail("Rollback", f"of a full refresh within {in_words(run.keep_previous)}")


def unit_test_words(test: UnitTest) -> str:
    """What a unit test does: rows of flights in 2 steps, with a restart; expects rows and late."""
    steps = [step for step in test.steps if step.given]
    moving = listed(dict.fromkeys(given_rows.input for step in steps for given_rows in step.given))
    kinds = [kind.value for kind in (StepKind.RESTART, StepKind.FLUSH) if any(s.kind is kind for s in test.steps)]
    parts = [f"rows of {moving}" + (f" in {len(steps)} steps" if len(steps) > 1 else "")] if steps else []
    if test.static:
        parts.append(f"{listed(dict.fromkeys(given_rows.input for given_rows in test.static))} in full")
    if kinds:
        parts.append(f"with a {' and a '.join(kinds)}")
    ends = [step.expect for step in test.steps if step.expect] + ([test.expect] if test.expect else [])
    names = [f.name for f in fields(ExpectedResult) if f.name not in _HOW_EXPECTED]
    looked_at = [name for name in names if any(getattr(end, name) is not None for end in ends)]
    expected = listed(name.replace("_", " ") for name in looked_at)
    return f"{', '.join(parts) or 'no rows'}; expects {expected or 'nothing'}"
