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
from engine.cli.command_setup import CommandSettings, Warnings, check_project, compiled, selected, unhandled
from engine.cli.console.safe_output import json_text, write
from engine.docs.page_access import VARIABLE, others_read
from engine.docs.serve import SiteServer
from engine.errors import EngineError, UsageError
from engine.target_folder import TargetFolder

if TYPE_CHECKING:
    from engine.compile import Compiled


@dataclass(frozen=True, slots=True)
class LinkPlace:
    fragment: str
    file: str


LIVE = LinkPlace("#/live", "live/page_link")
SITE = LinkPlace("", "docs_link")


@contextmanager
def shown_link(server: SiteServer, place: LinkPlace, target_dir: Path) -> Iterator[str]:
    """What to print while a page is served: its link, or where that is if others can read what is printed.

    Raises:
        ProjectError: `target-link`, `target-unwritable`.
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


def generate(chosen: CommandSettings) -> bool:
    """Write the artifacts and the site; False if the project has errors, which the site shows."""
    result = compiled(chosen, must_hold=False, warnings=Warnings.DAILY)
    page = write_page(chosen, result)
    chosen.out.say(f"Wrote {_shown(page, chosen)}; open it in a browser, or run engine docs serve")
    return not result.manifest.errors


def write_page(chosen: CommandSettings, result: Compiled) -> Path:
    from engine.compile.artifacts.write_artifacts import write_artifacts
    from engine.docs.catalog import write_catalog
    from engine.docs.site.freshness_status import read_freshness
    from engine.docs.site.last_run import read_results, read_watermarks
    from engine.docs.site.shared_page_data import Facts
    from engine.docs.site.table_statistics import read_tables
    from engine.docs.site.write_site import write_site
    from engine.runtime.context.run_results import read_results as stored_results

    manifest, folder = result.manifest, chosen.target_dir
    write_artifacts(manifest, folder)
    tables = read_tables(manifest, result.target.catalog)
    if tables:
        write_catalog(manifest, tables, folder)
    run = read_results(stored_results(folder))
    now, marks = datetime.now(UTC), read_watermarks(manifest, result.target)
    return write_site(Facts(manifest, run, tables, read_freshness(folder), now, marks), folder / _SITE)


def serve(chosen: CommandSettings, port: int, *, reload: bool = True) -> None:
    """Serve the written site on this machine until Ctrl-C.

    Args:
        chosen: the shared options.
        port: 0: any free one.
        reload: write the site again after edits and runs; its pages that are open load again.

    Raises:
        UsageError: there is no site, it is a link, or the port is taken.
    """
    from engine.docs.page_access import page_access
    from engine.docs.serve import serving

    check_project(chosen)
    access = page_access()
    folder = chosen.target_dir / _SITE
    if chosen.target_dir.is_symlink() or folder.is_symlink():
        hint = "Remove the link, then run engine docs generate."
        raise UsageError("usage", f"{_shown(folder, chosen)} is a symbolic link, which is not served", hint)
    if not (folder / "index.html").is_file():
        raise UsageError(
            "usage", f"there is no documentation site in {_shown(folder, chosen)}", "Run engine docs generate first."
        )
    try:
        following = _Following(chosen) if reload else None
        version = following.version if following else None
        with (
            serving(folder, access, port, version=version) as server,
            shown_link(server, SITE, chosen.target_dir) as shown,
        ):
            if following is not None:
                Thread(target=following.follow, daemon=True).start()
            write(f"Serving {_shown(folder, chosen)} at {shown} (Ctrl-C ends it)")
            server.serve_forever()
    except OSError as error:
        message = f"port {port} cannot be used: {error.strerror}"
        raise UsageError("usage", message, "Choose another port: --port 8081, or --port 0 for any free one.") from error
    except KeyboardInterrupt:
        write("Stopped")


# What a run leaves that the site shows.
_RESULTS = ("run_results.json", "sources.json")


class _Following:
    def __init__(self, chosen: CommandSettings) -> None:
        from engine.project.followed_files import FileFollower

        self._chosen = chosen
        self._files = FileFollower(chosen.root)
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
                self._again()

    def _again(self) -> None:
        try:
            result = self._chosen.project.compile()
            if not result.project.broken:
                self._files.paths = result.project.paths
            write_page(self._chosen, result)
        except EngineError as error:
            self._chosen.out.diagnostics(error.diagnostics)
        except Exception as error:  # noqa: BLE001 - the written site is still served
            unhandled(error, self._chosen)
        else:
            self._count += 1
            changed = datetime.now().astimezone().strftime("%H:%M:%S")
            write(f"{changed}  Wrote the site again")

    def _stamps(self) -> list[tuple[int, int] | None]:
        from engine.target_folder import TargetFolder

        with TargetFolder(self._chosen.target_dir) as folder:
            return [folder.seen(name) for name in _RESULTS]


def _shown(folder: Path, chosen: CommandSettings) -> str:
    return folder.relative_to(chosen.root).as_posix() if folder.is_relative_to(chosen.root) else str(folder)


def lineage(chosen: CommandSettings, column: str | None, selection: Selection, output: str, *, impact: bool) -> None:
    """Print where a column comes from and what goes with it; without a column, the graph of models and sources.

    Raises:
        UsageError: there is no such column.
    """
    from engine.docs.site import render_graph

    manifest = compiled(chosen, must_hold=False, heard=False, warnings=Warnings.SELECTED).manifest
    if column is None:
        drawn = render_graph.graph(manifest, selected(chosen, manifest, selection, tell=output == "text", daily=True))
        write(_drawn(drawn, output, {}) if output != "text" else "\n".join(_graph_lines(drawn)))
    else:
        _column(manifest, column, output, impact=impact)


def _graph_lines(drawn: Any) -> Sequence[str]:
    lines = []
    for node, (name, kind) in drawn.nodes.items():
        reads = [f"{drawn.nodes[e.start][0]}{' (stream)' if e.solid else ''}" for e in drawn.edges if e.end == node]
        lines.append(f"{name}  ({kind})" + (f"  <- {', '.join(reads)}" if reads else ""))
    return list(map(one_line, lines))


def _column(manifest: Any, text: str, output: str, *, impact: bool) -> None:
    from engine.docs.site import render_graph
    from engine.docs.site.column_trace import Columns, spot_named, trace
    from engine.docs.site.column_trace import impact as impact_of

    columns, spot = Columns(manifest), spot_named(manifest, text)
    column_trace, lost = trace(columns, spot), impact_of(columns, spot)
    if output != "text":
        drawn = render_graph.path(manifest, column_trace, lost, columns)
        write(_drawn(drawn, output, render_graph.column_record(manifest, column_trace, lost)))
        return
    lines = list(render_graph.tree(manifest, column_trace))
    if column_trace.deciders:
        lines += ["", "row-level lineage:", *render_graph.deciders(manifest, column_trace.deciders)]
    if impact:
        lines += ["", "impact:", *render_graph.loss(manifest, lost)]
    write("\n".join(map(one_line, lines)))


def _drawn(drawn: Any, output: str, more: dict[str, Any]) -> str:
    from engine.docs.site import render_graph

    if output == "json":
        return json_text({**more, **render_graph.as_record(drawn)}, indent=1)
    return render_graph.mermaid(drawn) if output == "mermaid" else render_graph.dot(drawn)
