"""--warn-error: every warning of a project and of its runs becomes an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import Diagnostic, Level
from engine.events import Diagnosed, Emit, Event, RunResults

if TYPE_CHECKING:
    from engine.compile import Compiled


def as_error(finding: Diagnostic) -> Diagnostic:
    """Return a warning as an error; notes and errors stay as they are."""
    return replace(finding, level=Level.ERROR) if finding.level is Level.WARNING else finding


def as_errors(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(map(as_error, findings))


def failing_on_warnings(compiled: Compiled) -> Compiled:
    manifest = compiled.manifest
    return replace(compiled, manifest=replace(manifest, diagnostics=as_errors(manifest.diagnostics)))


def results_with_errors(results: RunResults) -> RunResults:
    return replace(results, diagnostics=as_errors(results.diagnostics))


def emitting_errors(emit: Emit) -> Emit:
    def raised(event: Event) -> None:
        emit(Diagnosed(as_error(event.diagnostic)) if isinstance(event, Diagnosed) else event)

    return raised
