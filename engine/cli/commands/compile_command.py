"""`engine parse` and `engine compile`: what is wrong, and for a selection the SQL that Spark gets."""

from __future__ import annotations

from collections import Counter

from engine.api import Selection
from engine.cli.command_setup import CommandSettings, Failed, Warnings, compiled, deferred, hearing, selected
from engine.cli.console.safe_output import write, write_json
from engine.compile import Manifest, Model
from engine.compile.selection.check_selectors import selector_faults
from engine.errors import Diagnostic


def parse(chosen: CommandSettings, wanted: Selection) -> None:
    manifest, _ = _compiled(chosen, wanted, must_hold=True)
    faults = _selectors(chosen, wanted, manifest)
    chosen.out.say(_found(manifest, faults))
    if any(fault.is_error for fault in faults):
        raise Failed


def compile_(chosen: CommandSettings, wanted: Selection, *, as_json: bool) -> bool:
    """Report what is wrong, write the artifacts, and print the SQL of what is selected; False if there are errors."""
    from engine.compile.artifacts.write_artifacts import write_artifacts

    manifest, nodes = _compiled(chosen, wanted, must_hold=False, defer=True)
    write_artifacts(manifest, chosen.target_dir)
    for model in (manifest.nodes[node] for node in nodes):
        if isinstance(model, Model) and model.sql:
            _print(model, as_json=as_json)
    faults = _selectors(chosen, wanted, manifest)
    chosen.out.say(_found(manifest, faults))
    return not manifest.errors and not any(fault.is_error for fault in faults)


def compile_inline(chosen: CommandSettings, sql: str, *, as_json: bool) -> None:
    from engine.api.inline_query import compile_query

    with hearing(chosen):
        _, model = compile_query(chosen.project, sql)
    if as_json:
        write_json({"event": "Compiled", "node": "inline", "sql": model.sql})
    else:
        write(model.sql.rstrip())


def _compiled(
    chosen: CommandSettings, wanted: Selection, *, must_hold: bool, defer: bool = False
) -> tuple[Manifest, list[str]]:
    """The project and the selected nodes; none without a selection."""
    if not (wanted.select or wanted.exclude or wanted.selector):
        return compiled(chosen, must_hold=must_hold).manifest, []
    result = compiled(chosen, must_hold=must_hold, warnings=Warnings.SELECTED)
    nodes = selected(chosen, result.manifest, wanted)
    if defer and not result.manifest.errors:
        result = deferred(chosen, result, nodes, wanted)
    return result.manifest, nodes


def _print(model: Model, *, as_json: bool) -> None:
    if as_json:
        write_json({"event": "Compiled", "node": model.id, "sql": model.sql})
    else:
        write(f"-- {model.name}: {model.file}\n{model.sql.rstrip()}\n")


def _selectors(chosen: CommandSettings, wanted: Selection, manifest: Manifest) -> tuple[Diagnostic, ...]:
    """What is wrong with selectors.yml, where nothing was selected with it; it is printed."""
    if wanted.select or wanted.exclude or wanted.selector:
        return ()
    faults = selector_faults(chosen.root, manifest)
    chosen.out.diagnostics(faults)
    chosen.told([fault for fault in faults if not fault.is_error])
    return faults


def _found(manifest: Manifest, faults: tuple[Diagnostic, ...]) -> str:
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
    return f"Found {', '.join(counts)}; {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
