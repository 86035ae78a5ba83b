"""Which models stage their rows until their tests have passed (`publish: on_tests_pass`)."""

from __future__ import annotations

from collections.abc import Iterable

from engine.compile import DataTest, Manifest, Model, Severity
from engine.compile.nodes.model_settings import Publish
from engine.compile.nodes.topological_order import ancestors
from engine.errors import Diagnostic, Location
from engine.lake.commits import STAGED, STAGED_LAYOUT
from engine.lake.table_facts import TableFacts

# The code of the warning that a run did not publish staged rows.
HELD = "not-published"
WAYS = "publish them anyway: engine publish {0} --accept; or rebuild the table: engine build -f -s {0}"


def waits(model: Model) -> bool:
    """Whether the rows of a model wait for its tests; a table of another target is never published here."""
    return model.write.publish is Publish.ON_TESTS_PASS and model.deferred_from is None


def decided_by_tests(manifest: Manifest, nodes: Iterable[str]) -> list[Model]:
    chosen = set(nodes)
    found = {test.model for i in chosen if isinstance(test := manifest.nodes[i], DataTest)} - chosen
    return [model for i in sorted(found) if isinstance(model := manifest.nodes[i], Model) and waits(model)]


def deciding(manifest: Manifest, model: Model) -> frozenset[str]:
    """The tests before publishing; not those that read a table made from the model's published rows."""
    parents = {node: set(manifest.parents(node)) for node in manifest.order}
    return frozenset(
        test.id
        for test in manifest.tests_of(model.id)
        if test.severity is Severity.ERROR
        and not any(model.id in ancestors(parents, parent) for parent in test.depends_on)
    )


def staged_fault(model: Model, staged: TableFacts, main: TableFacts | None) -> Diagnostic | None:
    """Return why the staged rows of a model cannot be continued: `staged-rows`, `publish-diverged`; None: they can."""
    place = Location(model.file)
    if not waits(model):
        message = f"{model.relation} has staged rows, but '{model.name}' no longer sets publish: on_tests_pass"
        hint = f"Write publish: on_tests_pass again, or {WAYS.format(model.name)}"
        return Diagnostic("staged-rows", message, hint, node=model.name, location=place)
    if main is None or not main.history or STAGED_LAYOUT in staged.properties:
        # A replacement of the whole table waits for itself alone.
        return None
    base = next((snapshot.id for snapshot in staged.history if snapshot.id in staged.shown), None)
    if base is not None and not main.holds(base):
        message = (
            f"{model.relation} was set back by others while rows of '{model.name}' wait for its tests: those follow "
            f"snapshot {base}, and would bring its rows back"
        )
        hint = f"Set the table to snapshot {base} again. Or rebuild it: engine build -f -s {model.name}."
        return Diagnostic("publish-diverged", message, hint, node=model.name, location=place)
    if _behind(staged, main):
        return None
    message = (
        f"{model.relation} was changed by others while rows of '{model.name}' wait for its tests: "
        f"they cannot be put behind snapshot {staged.main}"
    )
    hint = (
        f"Rebuild it: engine build -f -s {model.name}. Or roll the table back to the snapshot before: nobody else "
        f"may write to a table with a branch '{STAGED}'."
    )
    return Diagnostic("publish-diverged", message, hint, node=model.name, location=place)


def _behind(staged: TableFacts, main: TableFacts) -> bool:
    """Whether what readers see is a part of what is staged; commits that rewrite files and no rows do not count."""
    for snapshot in main.history:
        if staged.holds(snapshot.id):
            return True
        if snapshot.operation != "replace":
            return False
        if snapshot.parent is not None and staged.holds(snapshot.parent):
            return True
    return False
