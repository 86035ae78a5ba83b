"""`build`, `run` and `test`: from a selection to a summary."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import Any

from engine.cli.project import Failed, Selection, Settings, compiled, log_file, selected
from engine.compile import DataTest, Manifest, Model
from engine.compile.artifacts import write_artifacts
from engine.compile.later import unsupported
from engine.events import Emit, Event


def run_nodes(chosen: Settings, command: str, selection: Selection, how: Mapping[str, Any]) -> bool:
    """Run what is selected; False if something failed."""
    from engine.docs.delivery import delivering
    from engine.runtime.build import Options, build
    from engine.runtime.results import write_results

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with log_file(chosen):
        result = compiled(chosen)
        manifest: Manifest = result.manifest
        nodes = wanted(manifest, selected(chosen, manifest, selection), command)
        if not nodes:
            return True
        if command != "test":
            _check_supported(chosen, manifest, nodes)
        write_artifacts(manifest, chosen.target_dir)
        options = Options(command, target_dir=chosen.target_dir, **how)
        with delivering(manifest, result.target, chosen.root, chosen.out.diagnostics) as deliver:
            results = build(manifest, result.target, chosen.root, nodes, options, _both(chosen.out.event, deliver))
        write_results(results, chosen.target_dir, manifest.project)
        chosen.out.summary(results)
    return not results.failed


def _both(first: Emit, second: Emit) -> Emit:
    def emit(event: Event) -> None:
        first(event)
        second(event)

    return emit


def _check_supported(chosen: Settings, manifest: Manifest, nodes: Sequence[str]) -> None:
    """Refuse what this version compiles but cannot run, before anything starts."""
    models = [n for i in nodes if isinstance(n := manifest.nodes[i], Model)]
    found = [finding for model in models for finding in unsupported(model)]
    if found:
        chosen.out.diagnostics(found)
        raise Failed


def wanted(manifest: Manifest, nodes: Sequence[str], command: str) -> list[str]:
    """The models and tests of a selection that a command runs."""
    kinds = {"build": (Model, DataTest), "run": (Model,), "test": (DataTest,)}[command]
    return [node for node in nodes if isinstance(manifest.nodes[node], kinds)]
