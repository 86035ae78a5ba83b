"""Every error a user can meet: one tree, one catalogue of codes.

The tree (what happened decides the branch, the code says exactly what)::

    EngineError
    ├── UsageError      the command line is wrong; exit code 2
    ├── ProjectError    a file of the project is wrong; found without Java
    ├── SetupError      Java, jars, the catalog or the session cannot be had
    ├── StateError      state, lock or table do not agree; nothing was written
    └── RunError        a query or a test failed while running

A stage does not raise for a user's mistake: it carries `Diagnostic` records in its result, so that all
faults of a project are shown at once. `EngineError` carries the same records across a boundary where
nothing more can be collected.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How bad a diagnostic is: errors decide the exit code, warnings do not."""

    ERROR = "error"
    WARNING = "warning"


# code -> the rule in one sentence. Codes are stable; the handbook's page of errors is made from this.
CODES: dict[str, str] = {
    # command line
    "usage": "The command line is not understood.",
    "internal": "The engine itself failed; the log has the trace.",
    # project files
    "project-missing": "A project is a folder with a project.yml.",
    "file-unreadable": "Every file of the project is UTF-8 text that can be read.",
    "control-character": "Files of a project hold no control characters.",
    "yaml-syntax": "YAML files and headers are YAML 1.2.",
    "yaml-duplicate-key": "A key stands once in a mapping.",
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
    "properties-file": "What describes a model stands in the model's own header.",
    "profiles-file": "Targets stand in project.yml.",
    "header-unclosed": "A header begins with /*--- and ends with ---*/.",
    "header-position": "The header is the first thing in its file.",
    "header-comment-end": "A header holds no */ before its end.",
    "config-conflict": "A key that stands in the header and in config() has one value.",
    "dbt-materialization": "dbt's incremental and snapshot have other names here.",
    "not-supported": "The feature does not exist in this version.",
    "target-unknown": "The chosen target is defined in project.yml.",
    # Jinja
    "jinja-syntax": "Templates are Jinja.",
    "jinja-undefined": "Every name used in a template is defined.",
    "jinja-error": "A template failed while it was rendered.",
    "jinja-security": "Templates run in a sandbox.",
    "compiler-error": "The project raised an error itself.",
    "var-missing": "A var() without default is defined in project.yml or by --vars.",
    "env-missing": "An env_var() without default is set in the environment.",
    "secret-outside-target": "ENGINE_SECRET_* values are used in targets only.",
    "run-varying-value": "A streaming query does not change from run to run.",
    # graph and SQL
    "sql-syntax": "A model is one SELECT in Spark SQL.",
    "not-a-query": "A model is a query, not a command.",
    "sql-too-deep": "SQL is nested at most 200 levels deep.",
    "unknown-ref": "ref() names a model of the project.",
    "unknown-source": "source() names a declared source.",
    "unknown-macro": "A test or macro is defined.",
    "undeclared-relation": "Tables are named by ref() or source().",
    "ref-cycle": "References between models form no cycle.",
    "stream-unread": "A listed stream is read by the query.",
    "streams-missing": "A streaming table lists the streams it reads.",
    "streams-unexpected": "Only streaming tables and ephemeral models list streams.",
    "stream-not-streamable": "Streams are read from sources and from append-only streaming tables.",
    "stream-clause": "Streams and watermarks are declared in the header.",
    "window-syntax": "A window is tumbling(ts, size).",
    "window-unused": "A declared window is used by the query.",
    "window-name-clash": "A window's name is not a column of its input.",
    "window-ambiguous": "A window binds to one input.",
    "watermark-syntax": "A watermark is '<column> delay <interval>'.",
    "dedup-needs-watermark": "dedup drops repeats within a watermark's delay.",
    "agg-needs-event-time-key": "In append mode a group is written when the watermark closes it.",
    # environment
    "java-missing": "Spark needs Java 17 or 21.",
    "java-version": "Spark runs on Java 17 or 21.",
    "jvm-start": "The Java process could not be started.",
    "jars-download": "The jars are fetched once from a Maven repository.",
    "jars-checksum": "A jar is used only if its sha256 is the locked one.",
    "jars-cache": "The jar cache is a folder that can be written.",
    "catalog": "The catalog can be reached.",
    "session": "The Spark session could be started.",
    # state
    "state-unwritable": "The state folder can be written.",
    "state-unreadable": "The state files can be read.",
    "locked": "A table has one writer at a time.",
    "state-missing": "A table that has rows has its state.",
    "table-missing": "A model that has state has its table.",
    "table-replaced": "The table is the one the state was made for.",
    "table-rolled-back": "The last commit of the model is in the table's history.",
    "checkpoint-lost": "The checkpoint belongs to the state.",
    "model-changed": "A changed query does not go on over old state.",
    "upstream-history": "A stream reads its upstream table from the first row on.",
    "upstream-replaced": "A stream goes on with the upstream table it began with.",
    "table-schema": "The model's columns fit its table.",
    # runs
    "landing-missing": "A source's folder exists.",
    "source-read": "A source can be read as declared.",
    "query-failed": "Spark failed to run the query.",
    "interrupted": "A run that is stopped goes on with the next build.",
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
        level: error or warning.
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
    """Base of all errors meant for users; carries one or more diagnostics."""

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
        self.diagnostics: tuple[Diagnostic, ...] = (Diagnostic(code, message, hint, node=node, location=location),)

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
    """The handbook's page of codes, in Markdown."""
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
