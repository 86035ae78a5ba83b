"""How long the site of 1,000 models takes to make, how big it is, and how quickly its graph opens and moves.

    python -m benchmarks.docs [--size 1000] [--runs 3]

`docs generate` is a process of its own, cold (nothing is cached) and again (nothing has changed); `site` is the
writing alone. The browser is chromium, headless and without a graphics card; without one these lines are left out.
The fastest of the runs counts. Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import projects
from benchmarks._commands import keep, wait_until_quiet

_PAN = """async () => {
    const canvas = document.querySelector(".canvas");
    canvas.setPointerCapture = () => {};
    canvas.hasPointerCapture = () => true;
    const fire = (type, clientX) =>
        canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX, clientY: 400, bubbles: true }));
    const times = [];
    fire("pointerdown", 300);
    for (let i = 0; i < 120; i += 1) {
        fire("pointermove", 300 + i * 4);
        const begin = performance.now();
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - begin);
    }
    fire("pointerup", 800);
    return times;
}"""


@dataclass(frozen=True, slots=True)
class Result:
    """A piece of work and the figure of each run; `unit` is s, ms, MB or files."""

    work: str
    unit: str
    values: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    wait_until_quiet()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        os.environ["ENGINE_CACHE"] = str(Path(folder) / "kept")
        projects.headrace(options.size, root)
        for result in _measured(root, options.runs):
            print(f"{result.work:<44}{min(result.values):.2f} {result.unit}", flush=True)
            results.append(result)
    keep("docs", results, options.runs)


def _measured(root: Path, runs: int) -> Iterator[Result]:
    yield from _generate(root, runs)
    site = root / "target" / "docs"
    files = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    yield Result("size of the folder", "MB", [sum(files) / 1e6])
    yield Result("files in the folder", "files", [len(files)])
    yield _write(root, runs)
    yield from _browse(site, runs)


def _timed(command: list[str], root: Path) -> float:
    begin = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    subprocess.run(command, cwd=root, check=True, capture_output=True, env=environment)
    return time.perf_counter() - begin


def _generate(root: Path, runs: int) -> Iterator[Result]:
    command = [sys.executable, "-m", "engine", "docs", "generate"]
    cold = []
    for _ in range(runs):
        shutil.rmtree(root / "target", ignore_errors=True)
        shutil.rmtree(os.environ["ENGINE_CACHE"], ignore_errors=True)
        cold.append(_timed(command, root))
    yield Result("docs generate, first time", "s", cold)
    yield Result("docs generate, nothing changed", "s", [_timed(command, root) for _ in range(runs)])


def _write(root: Path, runs: int) -> Result:
    from engine.compile import compile_project
    from engine.docs.site.last_run import read_results
    from engine.docs.site.shared_page_data import Facts
    from engine.docs.site.write_site import write_site
    from engine.project import load_project

    manifest = compile_project(load_project(root)).manifest
    seconds = []
    for run in range(runs):
        begin = time.perf_counter()
        write_site(Facts(manifest, read_results(None), {}, {}, datetime.now(UTC)), root / f"site{run}")
        seconds.append(time.perf_counter() - begin)
    return Result("writing the site alone", "s", seconds)


def _browse(site: Path, runs: int) -> Iterator[Result]:
    path = os.environ.get("ENGINE_CHROMIUM") or shutil.which("chromium")
    if path is None:
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        yield Result("opening the graph", "s", [_opened(page, site) for _ in range(runs)])
        page.locator("#group-by").select_option("")
        page.get_by_role("button", name="Show all").click()
        yield Result("a frame while panning, all nodes (median)", "ms", [statistics.median(page.evaluate(_PAN))])
        page.get_by_role("button", name="Readable size").click()
        yield Result("a frame while panning, readable size (median)", "ms", [statistics.median(page.evaluate(_PAN))])
        browser.close()


def _opened(page: Any, site: Path) -> float:
    page.goto("about:blank")
    begin = time.perf_counter()
    page.goto(f"{site.as_uri()}/index.html#/graph")
    page.wait_for_function(
        "document.documentElement.dataset.ready === 'true' && document.querySelector('canvas.far:not([hidden]), .box')"
    )
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
