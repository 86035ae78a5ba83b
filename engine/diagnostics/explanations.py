"""Reads the explanations of diagnostics from the Markdown files beside this module (their form: README.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
LEVELS = ("error", "warning", "note")
# The stages of a command, in their order: arguments, compile, plan without Java, the first steps of a run, the rest.
STAGES = ("command line", "compile", "plan", "start", "run")
DEFAULT_FILE = "models/m.sql"

_FACTS = re.compile(r"Level: ([^.]++)\. Found: ([^.]++)\.")
_BLOCK = re.compile(r"^```(\w++)(?: (\S++))?\n((?:(?!```).*+\n)*)```$", re.MULTILINE)
_LABELS = ("Cause", "Wrong", "Right", "Occurs", "Fix")


@dataclass(frozen=True, slots=True)
class Example:
    """One file of an example: its path in the project, its language (sql, yaml, jinja) and its text."""

    file: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a diagnostic; `topic` and `page` are title and name of its file.

    `levels` are those of `LEVELS` that it can have, `found` the `STAGES` that can report it. `wrong` are files that
    cause it (none if compiling cannot), `right` the same without the fault, `occurs` when it occurs without an example.
    """

    code: str
    topic: str
    page: str
    summary: str
    levels: tuple[str, ...]
    found: tuple[str, ...]
    cause: str
    wrong: tuple[Example, ...]
    right: tuple[Example, ...]
    occurs: str
    fix: str


class FormError(ValueError):
    """A section does not have the form that README.md describes."""


@cache
def explanations() -> Mapping[str, Explanation]:
    """Return all explanations by code, in the order of the files; raise FormError for a malformed file."""
    paths = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
    return {
        explanation.code: explanation
        for path in paths
        for explanation in read_topic(path.read_text(encoding="utf-8"), path.stem)
    }


def read_topic(text: str, page: str) -> tuple[Explanation, ...]:
    """Parse the explanations of one file; raise FormError if it is malformed."""
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    topic = head.partition("\n")[0].removeprefix("# ")
    return tuple(_section(section, topic, page) for section in sections)


def example_project() -> tuple[Example, ...]:
    """Return the files that every example has besides its own."""
    return _examples((FOLDER / "README.md").read_text(encoding="utf-8"))


def _section(section: str, topic: str, page: str) -> Explanation:
    code, _, rest = section.partition("\n")
    pieces = re.split(rf"^({'|'.join(_LABELS)}):", rest, flags=re.MULTILINE)
    parts = {label: text.strip() for label, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    summary, _, facts = pieces[0].strip().partition("\n\n")
    match = _FACTS.fullmatch(facts.strip())
    expected = ["Cause", *(["Occurs"] if "Occurs" in parts else ["Wrong", "Right"]), "Fix"]
    if match is None or pieces[1::2] != expected:
        message = f"{page}.md: '{code}' does not have the form of README.md"
        raise FormError(message)
    return Explanation(
        code, topic, page, _one_line(summary), _names(match[1], LEVELS, code), _names(match[2], STAGES, code),
        _one_line(parts["Cause"]), _examples(parts.get("Wrong", "")), _examples(parts.get("Right", "")),
        _one_line(parts.get("Occurs", "")), _one_line(parts["Fix"]),
    )  # fmt: skip


def _names(text: str, allowed: tuple[str, ...], code: str) -> tuple[str, ...]:
    names = tuple(re.split(r", | or ", text))
    if not set(names) <= set(allowed):
        message = f"'{code}': {text}: only {', '.join(allowed)}"
        raise FormError(message)
    return names


def _examples(text: str) -> tuple[Example, ...]:
    return tuple(Example(m[2] or DEFAULT_FILE, m[1], m[3]) for m in _BLOCK.finditer(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
