"""Every error a user can meet: one tree, one catalogue of codes.

The tree (what happened decides the branch, the code says exactly what)::

    EngineError
    ├── UsageError      the command line is wrong; exit code 2
    ├── ProjectError    a file of the project is wrong; found without Java
    ├── SetupError      Java, jars, the catalog or the session cannot be had
    ├── StateError      state, lock or table do not agree; nothing was written
    └── RunError        a query or a test failed while running

A stage does not raise for a user's error: it carries `Diagnostic` records in its result, so that all
faults of a project are shown at once. `EngineError` carries the same records across a boundary where
nothing more can be collected.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from engine.secrets import scrub

# How to fix most of what is wrong with a table and its state; it takes the model's name.
REBUILD = "rebuild the table from the first row: engine build -f -s {0}"


class Level(StrEnum):
    """How bad a diagnostic is: errors decide the exit code, warnings and notes do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


# code -> the rule in one sentence. Codes are stable; the page docs/errors.md is made from this.
CODES: dict[str, str] = {
    # command line
    "usage": "The command line is not understood.",
    "no-access": "Files and folders that a command needs can be read and written by the user who runs it.",
    "output": "What a command prints can be written.",
    "selection-empty": "What is selected or excluded matches a node.",
    "internal": "The engine itself failed; the log has the trace.",
    # project files
    "project-missing": "A project is a folder with a project.yml.",
    "no-models": "A project has models.",
    "file-unreadable": "Every file of the project is UTF-8 text that can be read, of at most 10 MB.",
    "control-character": "Files of a project hold no control characters.",
    "yaml-syntax": "YAML files and headers are YAML 1.2.",
    "yaml-duplicate-key": "A key is set once in a mapping.",
    "yaml-too-large": "YAML stays below 100,000 nodes and 40 levels, aliases counted out.",
    "yaml-split-item": "A list item with a comma inside parentheses is quoted.",
    "unknown-key": "Only known keys are accepted, so that a typing error is not silently ignored.",
    "missing-key": "A required key is missing.",
    "wrong-type": "A value has the wrong type.",
    "bad-value": "A value is not among those allowed.",
    "bad-name": "Names are lower-case letters, digits and underscores, and none of the reserved ones.",
    "bad-duration": "A duration is a number and a unit, such as 10 minutes.",
    "bad-schema": "A declared schema is a list of names and Spark SQL types.",
    "path-outside": "Paths of a project stay inside the project.",
    "duplicate-name": "Names are unique within their kind.",
    "duplicate-table": "A table is written by one model.",
    "engine-version": "require_engine_version admits the running engine.",
    "trojan-source": "Text is what it seems: nothing in it is hidden, reordered or in letters that look like others.",
    "properties-file": "The properties of a model are in the model's own header.",
    "profiles-file": "Targets are declared in project.yml.",
    "packages-file": "A package of macros is a folder of the project.",
    "header-unclosed": "A header begins with /*--- and ends with ---*/.",
    "header-position": "The header is the first thing in its file.",
    "header-comment-end": "A header holds no */ before its end.",
    "config-conflict": "A key that is set in the header and in config() has one value.",
    "dbt-materialization": "dbt's incremental and snapshot have other names here.",
    "not-supported": "The feature does not exist in this version.",
    "target-unknown": "The chosen target is defined in project.yml.",
    # Jinja
    "jinja-syntax": "Templates are Jinja.",
    "jinja-undefined": "Every name used in a template is defined.",
    "jinja-error": "A template failed while it was rendered.",
    "jinja-security": "Templates run in a sandbox.",
    "template-too-large": "What a template makes has at most 2,000,000 characters or items, in 1,000,000 steps.",
    "compiler-error": "The project raised an error itself.",
    "var-missing": "A var() without default is defined in project.yml or by --vars.",
    "env-missing": "An env_var() without default is set in the environment.",
    "secret-outside-target": "ENGINE_SECRET_* and other credentials of the environment are used in targets only.",
    "secret-misplaced": "A secret of a target is used unchanged, where nothing shows it.",
    "run-varying-value": "A streaming query does not change from run to run.",
    # graph and SQL
    "sql-syntax": "A model is one SELECT in Spark SQL.",
    "not-a-query": "A model is a query, not a command.",
    "model-too-large": "A model is compiled with the memory that there is.",
    "sql-too-large": "A query stays below sizes at which neither Spark nor this engine can plan it.",
    "sql-too-deep": "SQL is nested at most 200 levels deep.",
    "unknown-option": "A reader or writer has the option; Spark would ignore another without a word.",
    "option-twice": "An option is set once; its letter case makes no difference.",
    "unknown-ref": "ref() names a model of the project.",
    "unknown-source": "source() names a declared source.",
    "unknown-macro": "A test or macro is defined.",
    "undeclared-relation": "Tables are named by ref() or source().",
    "ref-cycle": "References between models form no cycle.",
    "stream-unread": "A listed stream is read by the query.",
    "streams-missing": "A streaming table lists the streams it reads.",
    "streams-unexpected": "Only streaming tables and ephemeral models list streams.",
    "stream-not-streamable": "Streams are read from sources and from append-only streaming tables.",
    "stream-unlisted": "A source without an end is listed as a stream, or says stream: false.",
    "stream-bounded": "A source with stream: false is not a stream.",
    "source-not-replayable": "A target with require_replayable reads sources that can be read again.",
    "spark-variable": "SQL takes values from var() and env_var(); Spark replaces no ${..} in it.",
    "stream-clause": "Streams and watermarks are declared in the header.",
    "window-syntax": "A window is tumbling(ts, size).",
    "window-unused": "A declared window is used by the query.",
    "window-name-clash": "A window's name is not a column of its input.",
    "window-ambiguous": "A window binds to one input.",
    "watermark-syntax": "A watermark is '<column> delay <interval>'.",
    "dedup-needs-watermark": "dedup drops duplicates within a watermark's delay.",
    "setting-needs": "A setting is set together with the settings that it needs.",
    "setting-conflict": "Settings that exclude each other are not set together.",
    "condition-syntax": "A condition of the header is one boolean SQL expression over a row of the output.",
    "update-key": "Update mode writes by a key: where the query groups, by the grouping columns.",
    "partition-clash": "Partition fields differ in meaning and in name.",
    "partition-type": "Partition fields and the order in files fit the types of their columns.",
    "trigger-continuous": "Continuous processing has neither state nor an exactly-once table.",
    "trigger-once": "One batch of all unread data gives other results with late rows.",
    "schedule-syntax": "A schedule is a cron text of five fields.",
    "agg-needs-event-time-key": "In append mode a group is written when the watermark closes it.",
    # streaming rules
    "ambiguous-column": "A name fits one column of the inputs.",
    "unknown-column": "A column that is named exists.",
    "column-type": "A column has the type that is declared.",
    "column-storage": "An Iceberg table can hold the type of each column.",
    "unit-test-input": "A unit test gives rows to what its model reads.",
    "unit-test-value": "A value of a unit test fits the type of its column.",
    "column-undeclared": "Under a contract every column is declared.",
    "not-streaming": "A streaming model reads a stream.",
    "mode-complete-needs-aggregate": "Complete mode rewrites the result of an aggregate.",
    "mode-complete-keeps-state": "Complete mode keeps all state, whatever the watermark.",
    "agg-key-lost-watermark": "A group key carries the watermark as the column itself or as its window.",
    "agg-two-windows": "An aggregate has one time window.",
    "agg-distinct": "A streaming aggregate does not count distinct values.",
    "agg-collation-key": "Keys of state are compared byte by byte.",
    "unknown-function": "A function is Spark's own.",
    "union-columns": "Both sides of a UNION have the same number of columns.",
    "column-count": "A list of names, or a subquery, has as many columns as its place takes.",
    "clause": "Each clause of a SELECT holds what Spark computes there.",
    "argument-count": "A function gets as many arguments as it takes.",
    "argument-constant": "An argument that Spark reads before the query runs is a constant.",
    "time-part": "extract() and date_part() take the parts of a time that Spark knows.",
    "type-mismatch": "Operators, functions and casts get types that they take.",
    "agg-not-grouped": "A column beside aggregates is grouped by.",
    "agg-null-groups": "In append mode a group without event time is never written.",
    "window-many": "A row is in few windows.",
    "window-week": "Windows of weeks begin on the day that is meant.",
    "window-slide": "A window's slide is at most as long as the window.",
    "window-months": "A window has a fixed length.",
    "window-length": "The lengths of window() are written as text.",
    "window-type": "A window is made from a timestamp.",
    "window-no-watermark": "In append mode a window is over the column that has the watermark.",
    "session-update": "Session windows do not run in update mode.",
    "session-needs-key": "A session window is grouped together with a key.",
    "session-grouping-sets": "A session window is in every grouping set.",
    "agg-alias-key": "A group key uses no alias of the same SELECT.",
    "limit-over-state": "LIMIT is on the stateful step itself, or on none.",
    "session-no-watermark": "A session window is over the column that has the watermark.",
    "chain-update": "Outside append mode an aggregate is the last stateful step.",
    "chain-join-mode": "An aggregate over a join of streams runs in append mode.",
    "distinct-needs-event-time": "In append mode DISTINCT has a column that carries the watermark.",
    "over-not-streaming": "Functions with OVER do not run on a stream.",
    "qualify": "Spark has no QUALIFY.",
    "sort-not-streaming": "A stream is not sorted.",
    "limit-update": "LIMIT does not run in update mode.",
    "limit-forever": "LIMIT on a stream counts over its whole life.",
    "offset": "OFFSET does not run on a stream.",
    "sample": "TABLESAMPLE does not run on a stream.",
    "union-stream-batch": "UNION joins streams with streams, and tables with tables.",
    "except-batch": "EXCEPT in append mode has a column that carries the watermark.",
    "except-stream": "The right side of EXCEPT is not a stream.",
    "intersect": "INTERSECT does not run on a stream.",
    "subquery-on-stream": "A subquery in an expression reads no stream.",
    "subquery-place": "A subquery that uses columns of the query is where Spark supports one.",
    "subquery-over-union": "A subquery in a list does not use columns of a UNION ALL right below it.",
    "recursive-cte": "A recursive CTE reads no stream.",
    "mono-id": "monotonically_increasing_id() does not run on a stream.",
    "join-mode": "A join of streams runs in append mode.",
    "join-outer-static": "In an outer join with a table, the stream is on the preserved side.",
    "join-no-equality": "A join of streams has an equality.",
    "join-anti": "Two streams have no anti join.",
    "join-outer-condition": "An outer join of streams says until when a row can find its match.",
    "join-unbounded": "A join of streams forgets rows when both sides are bounded in time.",
    "watermark-type": "A watermark is on a TIMESTAMP.",
    "watermark-missing-column": "A watermark is on a column that exists.",
    "watermark-needs-name": "A watermark on an expression gives it a name.",
    "watermark-delay": "A watermark's delay is not below zero.",
    "watermark-twice": "A column has one watermark.",
    "watermark-two-columns": "One event-time column reaches a stateful step.",
    "watermark-unused": "A watermark is of use to a stateful step only.",
    "unbounded-groups": "State that no watermark closes grows without bound.",
    "unbounded-complete": "Complete mode keeps every group indefinitely.",
    "unbounded-distinct": "DISTINCT without event time remembers every row.",
    "unbounded-collection": "A collection per key without a window grows without bound.",
    # environment
    "java-missing": "Spark needs Java 17 or 21.",
    "java-version": "Spark runs on Java 17 or 21.",
    "jvm-start": "The Java process could not be started.",
    "archive": "The archive of Java's classes is written by engine warmup.",
    "jars-download": "The jars are fetched once from a Maven repository.",
    "jars-checksum": "A jar is used only if its sha256 is the locked one.",
    "jars-cache": "The jar cache is a folder that can be written.",
    "catalog": "The catalog can be reached.",
    "lake-moved": "Tables are where their metadata says: Iceberg records absolute paths.",
    "lake-outside": "A lake's catalog, metadata and data are under its own folder; none is a link elsewhere.",
    "spark-session": "The Spark session could be started.",
    # state
    "target-unwritable": "The folder target/ can be written.",
    "target-link": "target/ and what is in it are plain folders and files: no links are followed there.",
    "cache-damaged": "What the cache keeps of the project is what was written.",
    "process-ended": "The processes that compile a large project live until they are done.",
    "state-unwritable": "The state folder can be written.",
    "state-unreadable": "The state files can be read.",
    "locked": "A table has one writer at a time.",
    "state-missing": "A table that has rows has its state.",
    "name-taken": "A table that a model makes or replaces was not made by somebody else.",
    "state-copied": "A table is written from one state folder.",
    "table-missing": "A model that has state has its table.",
    "build-rejected": "A build of which a model cannot be built as it is starts nothing, and says what the others are.",
    "orphan-table": "A table that was built belongs to a model of the project, or is dropped.",
    "unfinished-drop": "A drop that was begun is finished before the table is built again.",
    "table-replaced": "The table is the one the state was made for.",
    "table-rolled-back": "The last commit of the model is in the table's history.",
    "batch-begun": "A micro-batch of which one output is committed is finished under one version of its model.",
    "checkpoint-lost": "The checkpoint belongs to the state.",
    "checkpoint-damaged": "The logs and the state of a checkpoint are whole.",
    "model-changed": "A changed query does not resume over old state.",
    "source-changed": "A stream resumes with the sources of its checkpoint, in their order.",
    "setting-pinned": "Settings that every model relies on are fixed: times are UTC, and SQL is read in one way.",
    "state-schema": "What a query keeps in state has the columns and types that its checkpoint has.",
    "upstream-history": "A stream misses no commit of the table that it reads.",
    "upstream-replaced": "A stream stays with the upstream table it began with.",
    "upstream-rewritten": "A stream reads tables whose rows are added, and not taken away or replaced.",
    "full-refresh-protected": "A model with full_refresh: false is never rebuilt.",
    "downstream-stops": "A table that is rebuilt is a new source for what streams from it.",
    "table-schema": "The model's columns fit its table.",
    "kind-changed": "A full refresh says what goes when a model is materialized as something else.",
    "checkpoint-reset": "--reset-checkpoint says what is read again, and what never is.",
    "reset-repeats": "Rows are read again only into a table with a unique_key.",
    "reset-position": "A stream that begins at a time has times.",
    "reset-totals": "Totals without event time, and tables in complete mode, are reset with all records read again.",
    "rows-wait": "Rows of publish: on_tests_pass are read when their tests have passed.",
    "staged-rows": "Staged rows belong to a model that publishes on passed tests.",
    "publish-diverged": "A table of which rows wait for tests is changed by nobody else.",
    # runs
    "connection-unknown": "A source names a connection that the target has.",
    "source-credentials": "Credentials of a source are in a connection of the target.",
    "connection-settings": "A connection has the settings that its kind takes.",
    "kafka-unreachable": "A broker of the connection answers.",
    "kafka-refused": "The brokers take the connection's settings.",
    "kafka-topic": "A topic that is read exists.",
    "source-replaced": "A stream stays with the topic it began with.",
    "source-shrunk": "A topic still has the records that were read.",
    "source-gap": "Records are read before the broker deletes them.",
    "source-start": "Where a stream begins counts for its first build.",
    "source-new-topic": "New topics of a pattern are read from their first record.",
    "landing-missing": "A source's folder exists.",
    "source-table": "A table that is read as a source exists.",
    "source-columns": "A table that is read as a source has its columns, with their types.",
    "socket-unreachable": "A socket's server is there before the model runs.",
    "file-renamed": "A stream knows a file by its name: one that is renamed is read again.",
    "file-changed": "A file that a stream has read, or is reading, does not change.",
    "file-missing": "A file that was listed for a stream is there until it is read.",
    "watermark-held": "The inputs of a query advance side by side: the slowest one decides its watermark.",
    "files-skipped": "Files that are skipped for their age are counted.",
    "files-taken": "A source whose files are archived or deleted after reading feeds one stream.",
    "files-gone": "A full refresh reads again what is still there.",
    "after-reading": "What was read is archived or deleted where the source says so.",
    "sample-empty": "Columns are seen in records; there is at least one.",
    "columns-unknown": "A source's columns are declared, or known when it is read.",
    "avro-schema": "An Avro schema is one that Spark can read into columns.",
    "avro-columns": "Declared columns are in the Avro schema, with types that hold its values.",
    "plain-http": "Credentials are sent over https.",
    "registry-down": "A schema registry answers within seconds.",
    "registry-auth": "A schema registry lets us read.",
    "registry-answer": "The url of a schema registry leads to its interface.",
    "registry-subject": "A subject is in the schema registry.",
    "registry-id": "A schema id is in the schema registry.",
    "registry-schema": "A registered schema is an Avro schema that Spark can read into columns.",
    "source-read": "A source can be read as declared.",
    "bad-record": "A record that cannot be read is skipped only if on_bad_record says so.",
    "expectation-failed": "Rows meet the expectations that say on_fail: fail.",
    "hook-failed": "The SQL of pre_hook and post_hook runs.",
    "key-repeated": "Of rows that are merged by a key, sequence_by says which one is the newer.",
    "clock-behind": "A commit is not made more than a minute before the one that it follows.",
    "commit-conflict": "A commit that meets other writers is tried again, for a while.",
    "catalog-busy": "Another process that holds the catalog lets it go within some minutes.",
    "disk-full": "The disks of the lake and of the state have room.",
    "java-ended": "The Java process lives as long as the run.",
    "query-too-deep": "A query is as deep as the stack of Java's threads has room for.",
    "query-failed": "Spark failed to run the query.",
    "unit-test-failed": "A unit test sees the rows and numbers that it expects.",
    "interrupted": "A run that is stopped resumes with the next build.",
    # lineage
    "comments": "Descriptions are written to the tables; no run depends on it.",
    "openlineage": "OpenLineage events reach the place that the target names; no run depends on it.",
}


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file the user wrote; line and column count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: what happened, where, and what to do.

    Attributes:
        code: a key of `CODES`.
        message: what happened, one sentence.
        hint: what to do; empty where the message says it all.
        level: error, warning or note.
        node: name of the model, source or test concerned.
        location: where in the user's files.
    """

    code: str
    message: str
    hint: str = ""
    level: Level = Level.ERROR
    node: str | None = None
    location: Location | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(self.code)

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.level.value}: {self.message} [{self.code}]" + (f"\n    {self.hint}" if self.hint else "")

    @property
    def is_error(self) -> bool:
        """Whether it decides the exit code."""
        return self.level is Level.ERROR

    def to_dict(self) -> dict[str, Any]:
        """The JSON form of design.md §2.5."""
        return {
            "level": self.level.value,
            "code": self.code,
            "node": self.node,
            "file": self.location.file if self.location else None,
            "line": self.location.line if self.location else None,
            "column": self.location.column if self.location else None,
            "message": self.message,
            "hint": self.hint,
        }

    def at(self, location: Location | None, node: str | None = None) -> Diagnostic:
        """The same finding with the place and node filled in where they are missing."""
        return replace(self, location=self.location or location, node=self.node or node)


class EngineError(Exception):
    """Base of all errors meant for users.

    Attributes:
        diagnostics: all that is wrong, mostly one finding.
    """

    diagnostics: tuple[Diagnostic, ...]

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        *,
        location: Location | None = None,
        node: str | None = None,
    ) -> None:
        super().__init__(message)
        self.diagnostics = (Diagnostic(code, message, hint, node=node, location=location),)

    @classmethod
    def of(cls, diagnostics: Iterable[Diagnostic]) -> Self:
        """An error of several findings; of none where what failed is reported already."""
        error = cls.__new__(cls)
        error.diagnostics = tuple(diagnostics)
        return error

    def __str__(self) -> str:
        return scrub("\n".join(map(str, self.diagnostics)))

    def __reduce__(self) -> tuple[Any, ...]:
        """How it goes from one process to another: with all that it carries."""
        return type(self).of, (self.diagnostics,)

    @property
    def diagnostic(self) -> Diagnostic:
        """The first (mostly the only) finding."""
        return self.diagnostics[0]


class UsageError(EngineError):
    """The command line is wrong."""


class ProjectError(EngineError):
    """A file of the project is wrong."""


class SetupError(EngineError):
    """Java, jars, catalog or session cannot be had."""


class StateError(EngineError):
    """State, lock or table do not agree; nothing was written."""


class RunError(EngineError):
    """A query or test failed while running."""


def near(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known names, or lists a few; empty if there are none."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return "Did you mean " + " or ".join(f"'{c}'" for c in close) + "?"
    if not names:
        return ""
    shown = ", ".join(names[:8]) + (", ..." if len(names) > len(names[:8]) else "")
    return f"Known: {shown}."


def handbook_page() -> str:
    """The page docs/errors.md, in Markdown."""
    lines = [
        "# Error codes",
        "",
        "Every message of the engine ends with its code in brackets. Codes are stable. This page is made from",
        "`engine/errors.py` by `make docs`.",
        "",
        "| code | the rule |",
        "|---|---|",
    ]
    lines += [f"| `{code}` | {rule.replace('|', '&#124;')} |" for code, rule in sorted(CODES.items())]
    return "\n".join(lines) + "\n"
