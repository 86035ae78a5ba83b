"""`engine parse` and `engine compile`: what is wrong, and for a selection the SQL that Spark gets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from engine.api import Selection
from engine.cli.command_setup import (
    CommandSettings,
    Failed,
    Warnings,
    compile_and_report,
    defer_and_report,
    select_and_report,
    template_output,
)
from engine.cli.console.safe_output import write, write_json
from engine.compile import Manifest, Model
from engine.compile.selection.named_selectors import definition_nodes, read_selectors
from engine.compile.selection.select_nodes import chooser
from engine.errors import Diagnostic, Level, ProjectError


def _selector_faults(root: Path, manifest: Manifest) -> tuple[Diagnostic, ...]:
    """Return the errors of all definitions, and a warning for each selection in them that matches nothing."""
    try:
        selectors = read_selectors(root)
    except ProjectError as error:
        return error.diagnostics
    if selectors is None:
        return ()
    choose, unmatched = chooser(manifest, selectors.nodes)
    for definition in selectors.definitions.values():
        # What is wrong with a definition is added to `diagnostics`.
        definition_nodes(definition, choose)
    return (*selectors.diagnostics, *(replace(one, level=Level.WARNING) for one in dict.fromkeys(unmatched)))


def parse(settings: CommandSettings, selection: Selection) -> None:
    manifest, _ = _compiled(settings, selection, fail_on_errors=True)
    faults = _selectors(settings, selection, manifest)
    settings.out.say(_summary(manifest, faults))
    if any(fault.is_error for fault in faults):
        raise Failed


def compile_(settings: CommandSettings, selection: Selection, *, as_json: bool) -> bool:
    """Report what is wrong, write the artifacts, and print the SQL of what is selected; False if there are errors."""
    from engine.compile.artifacts.write_artifacts import write_artifacts

    manifest, nodes = _compiled(settings, selection, fail_on_errors=False, defer=True)
    write_artifacts(manifest, settings.target_dir)
    for model in (manifest.nodes[node] for node in nodes):
        if isinstance(model, Model) and model.sql:
            _print(model, as_json=as_json)
    faults = _selectors(settings, selection, manifest)
    settings.out.say(_summary(manifest, faults))
    return not manifest.errors and not any(fault.is_error for fault in faults)


def compile_inline(settings: CommandSettings, sql: str, *, as_json: bool) -> None:
    from engine.api.inline_query import compile_query

    with template_output(settings):
        _, model = compile_query(settings.project, sql)
    if as_json:
        write_json({"event": "Compiled", "node": "inline", "sql": model.sql})
    else:
        write(model.sql.rstrip())


def _compiled(
    settings: CommandSettings, selection: Selection, *, fail_on_errors: bool, defer: bool = False
) -> tuple[Manifest, list[str]]:
    """The project and the selected nodes; none without a selection."""
    if not (selection.select or selection.exclude or selection.selector):
        return compile_and_report(settings, fail_on_errors=fail_on_errors).manifest, []
    result = compile_and_report(settings, fail_on_errors=fail_on_errors, warnings=Warnings.SELECTED)
    nodes = select_and_report(settings, result.manifest, selection)
    if defer and not result.manifest.errors:
        result = defer_and_report(settings, result, nodes, selection)
    return result.manifest, nodes


def _print(model: Model, *, as_json: bool) -> None:
    if as_json:
        write_json({"event": "Compiled", "node": model.id, "sql": model.sql})
    else:
        write(f"-- {model.name}: {model.file}\n{model.sql.rstrip()}\n")


def _selectors(settings: CommandSettings, selection: Selection, manifest: Manifest) -> tuple[Diagnostic, ...]:
    """What is wrong with selectors.yml, where nothing was selected with it; it is printed."""
    if selection.select or selection.exclude or selection.selector:
        return ()
    faults = _selector_faults(settings.root, manifest)
    settings.out.diagnostics(faults)
    settings.note_shown_warnings([fault for fault in faults if not fault.is_error])
    return faults


def _summary(manifest: Manifest, faults: tuple[Diagnostic, ...]) -> str:
    errors = len(manifest.errors) + sum(fault.is_error for fault in faults)
    warnings = len(manifest.diagnostics) + len(faults) - errors
    # Counted by their ids: the nodes need not be decoded.
    kinds = Counter(node_id.partition(".")[0] for node_id in manifest.nodes)
    counts = [
        _count(kinds["model"], "model"), _count(kinds["test"], "data test"), _count(kinds["unit_test"], "unit test"),
        _count(kinds["source"], "source"),
    ]  # fmt: skip
    if kinds["exposure"]:
        counts.append(_count(kinds["exposure"], "exposure"))
    if kinds["sink"]:
        counts.append(_count(kinds["sink"], "sink"))
    return f"Found {', '.join(counts)}; {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
