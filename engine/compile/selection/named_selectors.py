"""Named selections: `selectors.yml`, in dbt's form.

A definition is a selection in text form, `{method: tag, value: hourly, children: true}`, or a `union` or `intersection`
of such, with `exclude` among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from engine.errors import Diagnostic, Location, ProjectError, UsageError, near
from engine.project.parse_yaml import load_yaml
from engine.project.project_files import exists, read
from engine.project.yaml_section import Section
from engine.schema.selector_keys import COMBINATIONS, SELECTOR, SELECTOR_FILE, TERM

FILE = "selectors.yml"
_FORM = "Write '- name: nightly' and 'definition: tag:nightly'."


class Choose(Protocol):
    def __call__(self, text: str, place: Location, *, exclude: bool = False) -> set[str]: ...


@dataclass(frozen=True, slots=True)
class NamedSelectors:
    """The selectors of a project."""

    definitions: Mapping[str, Section] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def nodes(self, name: str, choose: Choose) -> set[str]:
        """Return the nodes of a selector; raise UsageError if there is none of this name."""
        if name not in self.definitions:
            raise UsageError("usage", f"selector '{name}' not found", _nearest(name, self))
        return definition_nodes(self.definitions[name], choose)


def read_selectors(root: Path) -> NamedSelectors | None:
    """Read selectors.yml; None if the project has none. Raise ProjectError if it cannot be read."""
    diagnostics: list[Diagnostic] = []
    text = read(root / FILE, FILE, diagnostics) if exists(root, FILE, diagnostics) else None
    if text is None and diagnostics:
        raise ProjectError.from_diagnostics(diagnostics)
    if text is None:
        return None
    doc, problems = load_yaml(text, FILE)
    top = Section.of_document(doc, diagnostics)
    diagnostics += problems
    top.check_keys(SELECTOR_FILE)
    definitions: dict[str, Section] = {}
    descriptions: dict[str, str] = {}
    default: str | None = None
    part = top.child("selectors")
    for item in part.items() if part else ():
        item.check_keys(SELECTOR)
        label, definition = item.child("name"), item.child("definition")
        if label is None or definition is None:
            if isinstance(item.value, dict):
                item.report("missing-key", "a selector needs 'name' and 'definition'", _FORM)
            continue
        name = label.text()
        if name in definitions:
            label.report("duplicate-name", f"two selectors have the name '{name}'", "Rename one of them.")
        definitions[name] = definition
        if (text_part := item.child("description")) is not None:
            descriptions[name] = text_part.text()
        if (default_flag := item.child("default")) is not None and default_flag.boolean():
            if default is not None:
                message = f"'{default}' and '{name}' are both the default selector"
                default_flag.report("duplicate-name", message, "Remove 'default' from one of them.")
            default = name
    return NamedSelectors(definitions, descriptions, default, diagnostics)


def default_selector(root: Path) -> str | None:
    """Return the selector of a command without a selection; raise ProjectError if selectors.yml has errors."""
    selectors = read_selectors(root)
    if selectors is not None and selectors.diagnostics:
        raise ProjectError.from_diagnostics(selectors.diagnostics)
    return selectors.default if selectors else None


def named_selection(root: Path, name: str, choose: Choose) -> set[str]:
    """Return the nodes of a selection.

    Raises:
        UsageError: the file or the selector does not exist.
        ProjectError: the file has errors.
    """
    selectors = read_selectors(root)
    if selectors is None:
        raise UsageError("usage", f"--selector needs a {FILE} next to project.yml", "Use --select, or create the file.")
    if selectors.diagnostics:
        raise ProjectError.from_diagnostics(selectors.diagnostics)
    nodes = selectors.nodes(name, choose)
    # What is wrong with the definition was added by reading it.
    if selectors.diagnostics:
        raise ProjectError.from_diagnostics(selectors.diagnostics)
    return nodes


def _nearest(name: str, selectors: NamedSelectors) -> str:
    descriptions = "; ".join(f"{label}: {text}" for label, text in selectors.descriptions.items())
    nearest = near(name, selectors.definitions)
    return f"{nearest} ({descriptions})" if descriptions else nearest


def _choose_nodes(part: Section, text: str, choose: Choose) -> set[str]:
    try:
        return choose(text, part.place)
    except UsageError as error:
        part.report("bad-value", error.diagnostic.message, error.diagnostic.hint)
        return set()


def definition_nodes(part: Section, choose: Choose) -> set[str]:
    """The nodes of a definition; what is wrong with it is noted where the section says."""
    if not isinstance(part.value, dict):
        return _choose_nodes(part, part.text(), choose)
    for word, block in COMBINATIONS.items():
        inner = part.child(word)
        if inner is not None:
            part.check_keys(block)
            return _combine_sets(inner, choose, union=word == "union")
    if "method" in part.value:
        return _term(part, choose)
    if len(part.value) == 1:
        ((method, value),) = part.mapping()
        return _choose_nodes(value, f"{method}:{value.text()}", choose)
    part.expected("a selection such as 'tag:hourly', a method and value, a union or an intersection")
    return set()


def _combine_sets(part: Section, choose: Choose, *, union: bool) -> set[str]:
    sets = []
    excluded: set[str] = set()
    for item in part.items():
        if isinstance(item.value, dict) and list(item.value) == ["exclude"]:
            excluded |= _excluded_nodes(item, choose)
        else:
            sets.append(definition_nodes(item, choose))
    if not sets:
        return set()
    return (set.union(*sets) if union else set.intersection(*sets)) - excluded


def _term(part: Section, choose: Choose) -> set[str]:
    part.check_keys(TERM)
    method, value = part.child("method"), part.child("value")
    if method is None or value is None:
        part.report("missing-key", "a definition needs 'method' and 'value'")
        return set()
    core = f"{method.text()}:{value.text()}"
    if _flag(part, "childrens_parents"):
        text = f"@{core}"
    else:
        up = f"{_depth(part, 'parents_depth')}+" if _flag(part, "parents") else ""
        down = f"+{_depth(part, 'children_depth')}" if _flag(part, "children") else ""
        text = f"{up}{core}{down}"
    return _choose_nodes(value, text, choose) - _excluded_nodes(part, choose)


def _excluded_nodes(part: Section, choose: Choose) -> set[str]:
    excluded = part.child("exclude")
    left_out = partial(choose, exclude=True)
    return set().union(*(definition_nodes(item, left_out) for item in excluded.items())) if excluded else set()


def _flag(part: Section, key: str) -> bool:
    value = part.child(key)
    return value.boolean() if value else False


def _depth(part: Section, key: str) -> str:
    value = part.child(key)
    return str(value.integer()) if value else ""
