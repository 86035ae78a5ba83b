"""Completion in bash, zsh and fish: names of models, sources and targets, from the project's files alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class

if TYPE_CHECKING:
    from engine.project import LoadedProject

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_ENGINE_COMPLETE"
# The signs before a name in a selection: +flights, 2+flights, @flights.
_BEFORE_NAME = re.compile(r"(?:@|\d*\+)?")
# Bash puts a word in the line as it is given, and Enter runs it; zsh and fish quote it themselves.
_UNQUOTED, _QUOTED = "COMPREPLY+=($value)", 'COMPREPLY+=("$(printf %q "$value")")'
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def script(command: click.Command, shell: str) -> str:
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"click does not know the shell '{shell}'")
    return completion_class(command, {}, "engine", VARIABLE).source().replace(_UNQUOTED, _QUOTED)


def selection_completions(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete a node of a selection; the signs before its name stay."""
    match = _BEFORE_NAME.match(incomplete)
    signs = match[0] if match else ""
    names = [*_models(context), *(f"source:{name}" for name in _sources(context))]
    return _items(names, incomplete.removeprefix(signs), signs)


def complete_selections(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return selection_completions(context, incomplete)


def complete_models(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _items(_models(context), incomplete)


def complete_sources(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _items(_sources(context), incomplete)


def complete_targets(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from engine.project.yaml_section import is_target_name

    project = _project(context)
    targets = project.doc.data.get("targets") if project and isinstance(project.doc.data, dict) else None
    names = targets if isinstance(targets, dict) else ()
    return _items([name for name in names if isinstance(name, str) and is_target_name(name)], incomplete)


def complete_codes(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from engine.diagnostics.codes import CODES

    return _items(CODES, incomplete)


def _items(names: Iterable[str], incomplete: str, before: str = "") -> list[CompletionItem]:
    """What is offered of some names, all of which are valid: a shell may run any other."""
    return [CompletionItem(f"{before}{name}") for name in sorted(names) if name.startswith(incomplete)]


def _models(context: click.Context) -> Iterator[str]:
    project = _project(context)
    yield from (model.name for model in project.models) if project else ()


def _sources(context: click.Context) -> Iterator[str]:
    from engine.project.yaml_section import is_name

    project = _project(context)
    for doc in project.sources if project else ():
        for group in _list_of(doc.data, "sources"):
            for names in ((group.get("name"), table.get("name")) for table in _list_of(group, "tables")):
                if all(isinstance(name, str) and is_name(name) for name in names):
                    yield ".".join(map(str, names))


def _list_of(value: Any, key: str) -> list[dict[str, Any]]:
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _project(context: click.Context) -> LoadedProject | None:
    """The project of --project-dir or of this folder; nothing is completed outside one."""
    from engine.project import is_project, load_project

    root = Path(context.params.get("project_dir") or ".")
    return load_project(root) if is_project(root) else None
