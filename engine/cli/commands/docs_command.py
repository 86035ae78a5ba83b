"""`engine docs` and `engine lineage`: the site, its server, and lineage in the terminal.

The link to a served page, with its token: printed, and in a file below target/ that only the owner reads.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from engine.api import Selection
from engine.characters import one_line
from engine.cli.command_setup import (
    CommandSettings,
    Warnings,
    check_project,
    compile_and_report,
    report_internal_error,
    select_and_report,
)
from engine.cli.console.safe_output import json_text, write
from engine.docs.page_access import VARIABLE, others_read
from engine.docs.serve import SiteServer
from engine.errors import EngineError, UsageError
from engine.target_folder import TargetFolder

if TYPE_CHECKING:
    from engine.compile import Compiled
    from engine.compile.selection.previous_state import Previous


@dataclass(frozen=True, slots=True)
class LinkPlace:
    fragment: str
    file: str


LIVE = LinkPlace("#/live", "live/page_link")
SITE = LinkPlace("", "docs_link")


@contextmanager
def shown_link(server: SiteServer, place: LinkPlace, target_dir: Path) -> Iterator[str]:
    """What to print while a page is served: its link, or where that is if others can read what is printed.

    Raises ProjectError: `target-link`, `target-unwritable`.
    """
    link, address = server.link(place.fragment), f"{server.address}{place.fragment}"
    content = f"{link}\n".encode()
    with TargetFolder(target_dir) as folder:
        folder.write(place.file, content)
    try:
        if os.environ.get(VARIABLE):
            yield f"{address} (token: {VARIABLE})"
        elif others_read(sys.stdout):
            yield f"{address} (its link with the token: {target_dir / place.file})"
        else:
            yield link
    finally:
        with TargetFolder(target_dir) as folder:
            # Another server may have written its own meanwhile.
            if folder.read(place.file) == content:
                folder.remove(place.file)


_SITE = "docs"


def generate(settings: CommandSettings, compare: Path | None = None, rows: int = 0) -> bool:
    """Write the artifacts and the site, compared with an earlier manifest; False if the project has errors.

    Args:
        rows: so many rows of each table, and a profile of its columns; without personal data.

    Raises UsageError: there is no manifest.json to compare with.
    """
    from engine.compile.selection.previous_state import load_previous

    # Read first: it may be the folder that is written.
    earlier_project = None if compare is None else load_previous(compare, must_exist=True)
    result = compile_and_report(settings, fail_on_errors=False, warnings=Warnings.DAILY)
    page = write_page(settings, result, earlier_project, rows)
    settings.out.say(f"Wrote {_relative_path(page, settings)}; open it in a browser, or run engine docs serve")
    return not result.manifest.errors


def write_page(
    settings: CommandSettings, result: Compiled, earlier_project: Previous | None = None, rows: int = 0
) -> Path:
    from engine.compile.artifacts.write_artifacts import write_artifacts
    from engine.docs.catalog import write_catalog
    from engine.docs.site.differences import differences
    from engine.docs.site.freshness_status import read_freshness
    from engine.docs.site.last_run import read_results, read_watermarks
    from engine.docs.site.shared_page_data import Facts
    from engine.docs.site.table_rows import read_rows
    from engine.docs.site.table_statistics import read_tables
    from engine.docs.site.write_site import write_site
    from engine.runtime.context.run_history import read_history
    from engine.runtime.context.run_results import read_results as stored_results

    manifest, folder = result.manifest, settings.target_dir
    write_artifacts(manifest, folder)
    tables = read_tables(manifest, result.target.catalog)
    if tables:
        write_catalog(manifest, tables, folder)
    run = read_results(stored_results(folder), read_history(folder))
    now, marks = datetime.now(UTC), read_watermarks(manifest, result.target)
    changes = None if earlier_project is None else differences(manifest, earlier_project)
    shown_rows = read_rows(manifest, result.target.catalog, rows) if rows else {}
    facts = Facts(manifest, run, tables, read_freshness(folder), now, marks, changes, shown_rows)
    return write_site(facts, folder / _SITE)


def serve(settings: CommandSettings, port: int, *, reload: bool = True) -> None:
    """Serve the written site on this machine until Ctrl-C; `reload`: write it again after edits and runs.

    Raises UsageError: there is no site, it is a link, or the port is taken.
    """
    from engine.docs.page_access import page_access
    from engine.docs.serve import serving

    check_project(settings)
    access = page_access()
    folder = settings.target_dir / _SITE
    if settings.target_dir.is_symlink() or folder.is_symlink():
        hint = "Remove the link, then run engine docs generate."
        raise UsageError("usage", f"{_relative_path(folder, settings)} is a symbolic link, which is not served", hint)
    if not (folder / "index.html").is_file():
        raise UsageError(
            "usage",
            f"there is no documentation site in {_relative_path(folder, settings)}",
            "Run engine docs generate first.",
        )
    try:
        regeneration = _SiteRegeneration(settings) if reload else None
        version = regeneration.version if regeneration else None
        with (
            serving(folder, access, port, version=version) as server,
            shown_link(server, SITE, settings.target_dir) as page_link,
        ):
            if regeneration is not None:
                Thread(target=regeneration.follow, daemon=True).start()
            write(f"Serving {_relative_path(folder, settings)} at {page_link} (Ctrl-C ends it)")
            server.serve_forever()
    except OSError as error:
        message = f"port {port} cannot be used: {error.strerror}"
        raise UsageError("usage", message, "Choose another port: --port 8081, or --port 0 for any free one.") from error
    except KeyboardInterrupt:
        write("Stopped")


# What a run leaves that the site shows.
_RESULTS = ("run_results.json", "sources.json")


class _SiteRegeneration:
    def __init__(self, settings: CommandSettings) -> None:
        from engine.project.followed_files import FileFollower

        self._settings = settings
        self._files = FileFollower(settings.root)
        self._results = self._stamps()
        self._server, self._count = secrets.token_hex(4), 0

    def version(self) -> str:
        """The version of the site: of this server, and how often it was written."""
        return f"{self._server}x{self._count}"

    def follow(self) -> None:
        for files in self._files.edits():
            results = self._stamps()
            if files or results != self._results:
                self._results = results
                self._rebuild_site()

    def _rebuild_site(self) -> None:
        try:
            result = self._settings.project.compile()
            if not result.project.broken:
                self._files.paths = result.project.paths
            write_page(self._settings, result)
        except EngineError as error:
            self._settings.out.diagnostics(error.diagnostics)
        except Exception as error:  # noqa: BLE001 - the written site is still served
            report_internal_error(error, self._settings)
        else:
            self._count += 1
            changed = datetime.now().astimezone().strftime("%H:%M:%S")
            write(f"{changed}  Wrote the site again")

    def _stamps(self) -> list[tuple[int, int] | None]:
        from engine.target_folder import TargetFolder

        with TargetFolder(self._settings.target_dir) as folder:
            return [folder.file_stamp(name) for name in _RESULTS]


def _relative_path(folder: Path, settings: CommandSettings) -> str:
    return folder.relative_to(settings.root).as_posix() if folder.is_relative_to(settings.root) else str(folder)


def lineage(settings: CommandSettings, column: str | None, selection: Selection, output: str, *, impact: bool) -> None:
    """Print where a column comes from and what goes with it; without a column, the graph of models and sources.

    Raises UsageError: there is no such column.
    """
    from engine.docs.site import render_graph

    manifest = compile_and_report(
        settings, fail_on_errors=False, show_template_output=False, warnings=Warnings.SELECTED
    ).manifest
    if column is None:
        graph = render_graph.graph(
            manifest, select_and_report(settings, manifest, selection, report_empty=output == "text", daily=True)
        )
        write(_graph_text(graph, output, {}) if output != "text" else "\n".join(_graph_lines(graph)))
    else:
        _print_column(manifest, column, output, impact=impact)


def _graph_lines(graph: Any) -> Sequence[str]:
    lines = []
    for node, (name, kind) in graph.nodes.items():
        reads = [f"{graph.nodes[e.start][0]}{' (stream)' if e.solid else ''}" for e in graph.edges if e.end == node]
        lines.append(f"{name}  ({kind})" + (f"  <- {', '.join(reads)}" if reads else ""))
    return list(map(one_line, lines))


def _print_column(manifest: Any, text: str, output: str, *, impact: bool) -> None:
    from engine.docs.site import render_graph
    from engine.docs.site.column_trace import Columns, spot_named, trace
    from engine.docs.site.column_trace import impact as impact_of

    columns, spot = Columns(manifest), spot_named(manifest, text)
    column_trace, impacted = trace(columns, spot), impact_of(columns, spot)
    if output != "text":
        graph = render_graph.path(manifest, column_trace, impacted, columns)
        write(_graph_text(graph, output, render_graph.column_record(manifest, column_trace, impacted)))
        return
    lines = list(render_graph.tree(manifest, column_trace))
    if column_trace.deciders:
        lines += ["", "row-level lineage:", *render_graph.deciders(manifest, column_trace.deciders)]
    if impact:
        lines += ["", "impact:", *render_graph.loss(manifest, impacted)]
    write("\n".join(map(one_line, lines)))


def _graph_text(graph: Any, output: str, extra_fields: dict[str, Any]) -> str:
    from engine.docs.site import render_graph

    if output == "json":
        return json_text({**extra_fields, **render_graph.as_record(graph)}, indent=1)
    return render_graph.mermaid(graph) if output == "mermaid" else render_graph.dot(graph)
