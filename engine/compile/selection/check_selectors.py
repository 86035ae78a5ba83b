"""What is wrong with selectors.yml, whether or not a command uses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.compile.nodes.manifest import Manifest
from engine.compile.selection.named_selectors import definition_nodes, read_selectors
from engine.compile.selection.select_nodes import chooser
from engine.errors import Diagnostic, Level, ProjectError


def selector_faults(root: Path, manifest: Manifest) -> tuple[Diagnostic, ...]:
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
