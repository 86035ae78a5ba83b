"""What all parts of an import share."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_import.dbt.manifest.new_names import NewNames
from engine_import.dbt.manifest.read_manifest import DbtManifest
from engine_import.output.import_report import Item
from engine_import.output.new_project import NewProject


@dataclass(frozen=True, slots=True)
class ModelDraft:
    """A model that somebody has to decide on.

    Attributes:
        as_table: its text as a batch table that is rebuilt.
        as_stream: its text with one input as a stream; empty if no input can be named.
    """

    node: str
    as_table: str
    as_stream: str = ""


@dataclass(slots=True)
class ImportContext:
    """The state of an import.

    Attributes:
        root: the dbt project's folder, if it lies around target/.
        incremental: `draft` or `table`: what incremental models become.
        items: what became of each thing, by dbt's unique id.
        column_tests: tests by id of the tested node and column (empty: the whole).
        needed: names of macros of dbt's packages that are called, by package.
        absent: columns that dbt describes and the query does not return, by node.
    """

    manifest: DbtManifest
    root: Path
    names: NewNames
    incremental: str = "draft"
    files: NewProject = field(default_factory=NewProject)
    items: dict[str, Item] = field(default_factory=dict)
    drafts: dict[str, ModelDraft] = field(default_factory=dict)
    column_tests: dict[tuple[str, str], list[Any]] = field(default_factory=lambda: defaultdict(list))
    needed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    absent: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    notes: list[str] = field(default_factory=list)
