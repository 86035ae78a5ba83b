"""What became of each thing that was imported, for people, programs and the terminal."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_LONGEST = 400


class ImportOutcome(StrEnum):
    COMPILES = "compiles"
    FAILS = "does not compile"
    DRAFT = "draft"
    NOT_IMPORTED = "not imported"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing of the other tool.

    Attributes:
        kind: model, source, seed, snapshot, test, unit test, macro, ..
        file: the file that it became; empty if there is none.
        origin: its file and line in the other project.
        reason: why it does not compile, is a draft or was not imported.
        code: of the first diagnostic.
    """

    kind: str
    name: str
    outcome: ImportOutcome
    file: str = ""
    origin: str = ""
    reason: str = ""
    code: str = ""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        tool: dbt or Flare.
        facts: of the input: version, adapter.
    """

    tool: str
    project: str
    facts: dict[str, Any] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def models(self) -> list[Item]:
        return [item for item in self.items if item.kind == "model"]

    @property
    def whole(self) -> bool:
        return all(item.outcome is ImportOutcome.COMPILES for item in self.models)

    @property
    def summary(self) -> str:
        counts = Counter(item.outcome for item in self.models)
        total = len(self.models)
        said = f"{counts[ImportOutcome.COMPILES]} of {total} model{'' if total == 1 else 's'} compile"
        rest = [
            f"{counts[outcome]} {words}"
            for outcome, words in (
                (ImportOutcome.DRAFT, "marked as drafts"),
                (ImportOutcome.FAILS, "do not compile"),
                (ImportOutcome.NOT_IMPORTED, "not imported"),
            )
            if counts[outcome]
        ]
        return said + (f"; {', '.join(rest)}" if rest else "")

    def lines(self, most: int = 60) -> list[str]:
        """For the terminal: the summary, and a line for what is not carried over whole; others of one reason share one.

        Args:
            most: lines of models, and of other things.
        """
        done = (ImportOutcome.COMPILES, ImportOutcome.IMPORTED)
        models = [_line(item) for item in self.models if item.outcome not in done]
        others: dict[tuple[str, ...], list[Item]] = {}
        for item in self.items:
            if item.kind != "model" and item.outcome not in done:
                others.setdefault((item.kind, item.outcome, item.reason, item.code), []).append(item)
        grouped = [_line(items[0], len(items) - 1) for items in others.values()]
        return [self.summary, *_some(models, most, "models"), *_some(grouped, most, "lines")]

    def to_json(self) -> str:
        counts = {outcome.value: 0 for outcome in ImportOutcome if outcome is not ImportOutcome.IMPORTED}
        counts.update(Counter(item.outcome.value for item in self.models))
        data = {
            "tool": self.tool,
            "project": self.project,
            **self.facts,
            "summary": self.summary,
            "models": {"total": len(self.models), **counts},
            "items": [asdict(item) for item in self.items],
            "notes": self.notes,
        }
        return json.dumps(data, indent=2) + "\n"

    def to_markdown(self) -> str:
        facts = ", ".join(f"{key.replace('_', ' ')} {plain(str(value))}" for key, value in self.facts.items() if value)
        lines = [f"# Import of the {self.tool} project {_cell(self.project)}", "", f"{self.summary}.", ""]
        lines += [f"Read: {facts}.", ""] if facts else []
        for outcome in (ImportOutcome.FAILS, ImportOutcome.DRAFT, ImportOutcome.NOT_IMPORTED):
            items = [item for item in self.items if item.outcome is outcome]
            if items:
                lines += [f"## {outcome.value.capitalize()} ({len(items)})", "", "| | file | reason |", "|---|---|---|"]
                lines += [
                    f"| {item.kind} {_cell(item.name)} | {_cell(item.file or item.origin)} | {_cell(item.reason)} |"
                    for item in items
                ]
                lines.append("")
        noted = [item for item in self.items if item.notes]
        if noted:
            lines += ["## Differences", ""]
            lines += [f"* {item.kind} {_cell(item.name)}: {_cell('; '.join(item.notes))}" for item in noted]
            lines.append("")
        if self.notes:
            lines += ["## Notes", "", *(f"* {_cell(note)}" for note in self.notes), ""]
        return "\n".join(lines)


def _line(item: Item, more: int = 0) -> str:
    code = f" [{item.code}]" if item.code else ""
    place = item.file or item.origin
    shown = f"{item.name} ({place})" if place else item.name
    others = f" and {more} more" if more else ""
    return plain(f"{item.outcome.value}: {item.kind} {shown}{others}: {item.reason}") + code


def _some(lines: list[str], most: int, what: str) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"... and {len(lines) - most} more {what} in the report"]


def plain(text: str) -> str:
    """Return a foreign text on one line, without terminal control characters, and not too long."""
    line = " ".join(_HIDDEN.sub(" ", text.replace("\n", " ")).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _cell(text: str) -> str:
    """Return a foreign text for Markdown: no link, no table cell, no HTML of its own."""
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", plain(text))
