"""How many links cross in the graph of real dbt projects, and how long the layout takes, compared with igraph.

    python -m benchmarks.layout --igraph VENV PROJECT [PROJECT ...]

A PROJECT is a `manifest.json` of dbt, or a folder of models that call ref() and source(). The layout runs in
chromium, as on the site. VENV is a virtual environment with igraph, which Headrace does not depend on. igraph gets
the same layers, and lays the graph out again in layers of its own. Each pair of links counts as often as it crosses.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._commands import ROOT, keep, wait_until_quiet

_KINDS = ("model.", "source.", "seed.", "snapshot.", "exposure.")
_CALL = re.compile(r"""\b(ref|source)\s*\(\s*['"]([^'"]+)['"]\s*(?:,\s*['"]([^'"]+)['"])?""")
_STATIC = ROOT / "engine" / "docs" / "static"
# The height of a box and the gap below it, in pixels.
_BOX, _GAP = 56, 22
# Without layers igraph chooses its own. Each link becomes a chain with a vertex in each layer that it crosses.
_IGRAPH = """\
import json, sys, time
import igraph
answers = []
for graph in json.load(sys.stdin):
    count, links, layers = graph["count"], graph["links"], graph["layers"]
    begin = time.perf_counter()
    if layers is None:
        drawn = igraph.Graph(count, links, directed=True).layout_sugiyama(maxiter=100)
        layers = [round(y) for _, y in drawn]
    layers, chains = list(layers), []
    for start, end in (sorted(link, key=lambda vertex: layers[vertex]) for link in links):
        between = range(layers[start] + 1, layers[end])
        chains.append([start, *range(len(layers), len(layers) + len(between)), end])
        layers += between
    steps = [step for chain in chains for step in zip(chain, chain[1:])]
    drawn = igraph.Graph(len(layers), steps, directed=True).layout_sugiyama(layers=layers, maxiter=100)
    seconds = time.perf_counter() - begin
    routes = [[(layers[vertex], drawn[vertex][0]) for vertex in chain] for chain in chains]
    answers.append({"routes": routes, "seconds": seconds})
json.dump(answers, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by number, and links from what is read to its reader."""

    name: str
    count: int
    links: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The points of each link as [layer, height], from left to right, and the seconds of the layout."""

    routes: list[list[tuple[float, float]]]
    seconds: float
    layers: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A graph, and by layout the pairs of links that cross and the seconds."""

    graph: str
    nodes: int
    links: int
    crossings: dict[str, int]
    seconds: dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("projects", nargs="+", type=Path)
    parser.add_argument("--igraph", type=Path, required=True, help="virtual environment with igraph")
    options = parser.parse_args()
    wait_until_quiet()
    graphs = [graph for graph in map(_read, options.projects) if graph.links]
    ours = list(_headrace(graphs))
    same = _igraph(options.igraph, graphs, [layout.layers for layout in ours])
    own = _igraph(options.igraph, graphs, [None] * len(graphs))
    results = []
    for graph, *layouts in zip(graphs, ours, same, own, strict=True):
        named = dict(zip(("headrace", "igraph", "igraph, own layers"), layouts, strict=True))
        crossings = {name: crossing_links(layout.routes) for name, layout in named.items()}
        seconds = {name: round(layout.seconds, 4) for name, layout in named.items()}
        results.append(Result(graph.name, graph.count, len(graph.links), crossings, seconds))
        print(f"{graph.name:<44}{graph.count:>6}{len(graph.links):>7}", *(f"{n:>9}" for n in crossings.values()))
    _summarize(results)
    keep("layout", results, 1)


def _summarize(results: list[Result]) -> None:
    for name in results[0].crossings:
        total, seconds = (sum(part[name] for part in parts) for parts in (
            [r.crossings for r in results], [r.seconds for r in results]))  # fmt: skip
        print(f"{name}: {total} crossings of {len(results)} graphs, {seconds:.2f} s")
    for peer in ("igraph", "igraph, own layers"):
        pairs = [(r.crossings["headrace"], r.crossings[peer]) for r in results]
        fewer, more = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
        print(f"fewer crossings than {peer}: {fewer} graphs; more: {more}")


def _read(path: Path) -> Graph:
    links = _links_of_manifest(path) if path.is_file() else _links_of_models(path)
    numbers = {name: number for number, name in enumerate(sorted({end for link in links for end in link}))}
    name = path.parent.name if path.is_file() else path.name
    return Graph(name, len(numbers), sorted((numbers[a], numbers[b]) for a, b in links))


def _links_of_manifest(path: Path) -> set[tuple[str, str]]:
    parents = json.loads(path.read_text(encoding="utf-8"))["parent_map"]
    readers = [(reader, inputs) for reader, inputs in parents.items() if reader.startswith(_KINDS)]
    return {(node, reader) for reader, inputs in readers for node in inputs if node.startswith(_KINDS)}


def _links_of_models(folder: Path) -> set[tuple[str, str]]:
    models = {path.stem: path for path in folder.rglob("*.sql") if "macros" not in path.parts}
    links = set()
    for reader, path in models.items():
        for kind, first, second in _CALL.findall(path.read_text(encoding="utf-8", errors="replace")):
            node = f"source {first}.{second}" if kind == "source" else second or first
            if node != reader and (kind == "source" or node in models):
                links.add((node, reader))
    return links


def _headrace(graphs: list[Graph]) -> Iterator[Layout]:
    from playwright.sync_api import sync_playwright

    path = os.environ.get("ENGINE_CHROMIUM") or shutil.which("chromium")
    if path is None:
        sys.exit("there is no chromium (ENGINE_CHROMIUM names one)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        page = browser.new_page()
        for script in ("core.js", "layered.js"):
            page.add_script_tag(path=_STATIC / script)
        for graph in graphs:
            yield _laid_out(page, graph)
        browser.close()


def _laid_out(page: Any, graph: Graph) -> Layout:
    script = f"([count, links]) => headrace.layered(Array(count).fill({_BOX}), links, {_GAP})"
    begin = time.perf_counter()
    layout = page.evaluate(script, [graph.count, graph.links])
    seconds = time.perf_counter() - begin
    layer, y = layout["layer"], layout["y"]
    routes = []
    for (start, end), bends in zip(graph.links, layout["bends"], strict=True):
        heights = [y[start], *bends, y[end]] if layer[start] < layer[end] else [y[end], y[start]]
        routes.append([(min(layer[start], layer[end]) + step, height) for step, height in enumerate(heights)])
    return Layout(routes, seconds, layer[: graph.count])


def _igraph(environment: Path, graphs: list[Graph], layers: list[list[int] | None]) -> list[Layout]:
    given = [
        {"count": graph.count, "links": graph.links, "layers": own} for graph, own in zip(graphs, layers, strict=True)
    ]
    command = [str(environment / "bin" / "python"), "-c", _IGRAPH]
    answer = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True)
    return [
        Layout([[(layer, height) for layer, height in route] for route in each["routes"]], each["seconds"])
        for each in json.loads(answer.stdout)
    ]


def crossing_links(routes: list[list[tuple[float, float]]]) -> int:
    """Pairs of links that cross between two neighbouring layers; links that meet in a point do not."""
    between: dict[float, list[tuple[float, float]]] = {}
    for route in routes:
        for (layer, start), (after, end) in itertools.pairwise(route):
            if after > layer:
                between.setdefault(layer, []).append((round(start, 3), round(end, 3)))
    return sum(_inversions(sorted(ends)) for ends in between.values())


def _inversions(segments: list[tuple[float, float]]) -> int:
    count, met = 0, list[float]()
    for _, group in itertools.groupby(segments, key=lambda ends: ends[0]):
        ends = [end for _, end in group]
        count += sum(len(met) - bisect.bisect_right(met, end) for end in ends)
        for end in ends:
            bisect.insort(met, end)
    return count


if __name__ == "__main__":
    main()
