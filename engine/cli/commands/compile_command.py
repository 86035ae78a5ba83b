"""`engine parse` and `engine compile`: what is wrong, and for a selection the SQL that Spark gets."""

from __future__ import annotations

from collections import Counter

from engine.api import Selection
from engine.cli.command_setup import CommandSettings, Warnings, compiled, deferred, hearing, selected
from engine.cli.console.terminal import write, write_json
from engine.compile import Manifest, Model


def parse(chosen: CommandSettings, wanted: Selection) -> None:
    """Report what is wrong."""
    manifest, _ = _compiled(chosen, wanted, must_hold=True)
    chosen.out.say(_found(manifest))


def compile_(chosen: CommandSettings, wanted: Selection, *, as_json: bool) -> bool:
    """Report what is wrong, write the artifacts, and print the SQL of what is selected; False if there are errors."""
    from engine.compile.artifacts.write_artifacts import write_artifacts

    manifest, nodes = _compiled(chosen, wanted, must_hold=False, defer=True)
    write_artifacts(manifest, chosen.target_dir)
    for model in (manifest.nodes[node] for node in nodes):
        if isinstance(model, Model) and model.sql:
            _print(model, as_json=as_json)
    chosen.out.say(_found(manifest))
    return not manifest.errors


def compile_inline(chosen: CommandSettings, sql: str, *, as_json: bool) -> None:
    """Print the SQL of a query from the command line, as Spark would get it."""
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


def _found(manifest: Manifest) -> str:
    errors = len(manifest.errors)
    warnings = len(manifest.diagnostics) - errors
    # Counted by their ids: the nodes need not be decoded.
    kinds = Counter(node_id.partition(".")[0] for node_id in manifest.nodes)
    counts = [
        _count(kinds["model"], "model"), _count(kinds["test"], "data test"), _count(kinds["unit_test"], "unit test"),
        _count(kinds["source"], "source"),
    ]  # fmt: skip
    return f"Found {', '.join(counts)}; {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
