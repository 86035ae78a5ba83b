"""What a source is, in the words that its reader needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A declared source, ready to be read.

    Attributes:
        name: as models call it, for messages.
        format: the kind, a key of `engine.sources.KINDS`.
        path: folder or file, relative to the project.
        schema: columns as Spark DDL.
        options: handed to Spark's reader.
        timezone: how text without a zone is read; None: UTC.
        max_files_per_trigger: files in one micro-batch; None: all there are.
    """

    name: str
    format: str
    path: str
    schema: str
    options: Mapping[str, str] = field(default_factory=dict)
    timezone: str | None = None
    max_files_per_trigger: int | None = None
