"""Running nodes in the order of their references, independent ones side by side.

A failed node (or a failed test of severity error) skips what depends on it; everything else continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Thread

from engine.compile import DataTest, Manifest, Severity, UnitTest
from engine.compile.nodes.topological_order import ancestors
from engine.events import Status

# How often what is running is asked to end, until it has.
_INTERRUPT_SECONDS = 0.5


def dependencies(manifest: Manifest, nodes: Iterable[str]) -> dict[str, set[str]]:
    """Return for each selected node the selected nodes that must have ended well before it.

    A model waits for the tests of what it reads (unless they read the model), and for its own unit tests, which wait
    for nothing.
    """
    selected = set(nodes)
    parents = {node: set(manifest.parents(node)) for node in manifest.order}
    above = {node: ancestors(parents, node) for node in manifest.order}
    upstream_ids = {node: above[node] & selected for node in selected}
    for test_id in sorted(selected):
        test = manifest.nodes[test_id]
        if isinstance(test, UnitTest):
            upstream_ids[test_id] = set()
            if test.model in selected:
                upstream_ids[test.model].add(test_id)
            continue
        if not isinstance(test, DataTest) or test.severity is not Severity.ERROR:
            continue
        # Two tests of one model may each read a model that would wait for the other.
        several = len(test.depends_on) > 1
        first = _reached(upstream_ids, test_id) if several else above[test_id]
        for node in selected - {test_id}:
            if (
                test.model in above[node]
                and node not in first
                and not isinstance(manifest.nodes[node], DataTest | UnitTest)
            ):
                upstream_ids[node].add(test_id)
    return upstream_ids


def _reached(upstream_ids: Mapping[str, set[str]], node: str) -> set[str]:
    reached: set[str] = set()
    waiting = list(upstream_ids[node])
    while waiting:
        if (current := waiting.pop()) not in reached:
            reached.add(current)
            waiting += upstream_ids[current]
    return reached


def execute(
    order: list[str],
    upstream_ids: Mapping[str, set[str]],
    work: Callable[[str, str | None], Status],
    *,
    threads: int,
    fail_fast: bool,
    interrupt: Callable[[], None],
) -> None:
    """Run all nodes, in `order` where nothing holds them back.

    `work` gets a node and what failed above it, in which case it only reports the node as skipped. `interrupt` makes
    what is running end when a signal's handler raises; the exception continues after that.
    """
    waiting = list(order)
    statuses: dict[str, Status] = {}
    blamed: dict[str, str] = {}
    running: dict[Future[Status], str] = {}
    stopped: str | None = None
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="node") as pool, _interruptible(interrupt, pool):
        while waiting or running:
            for node in list(waiting):
                failed_upstream = sorted(n for n in upstream_ids[node] if n in statuses and statuses[n].failed)
                if failed_upstream or stopped:
                    waiting.remove(node)
                    cause = blamed.get(failed_upstream[0], failed_upstream[0]) if failed_upstream else str(stopped)
                    blamed[node] = cause
                    statuses[node] = work(node, cause)
                elif upstream_ids[node] <= statuses.keys() and len(running) < threads:
                    waiting.remove(node)
                    running[pool.submit(work, node, None)] = node
            if not running:
                continue
            finished_futures, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished_futures:
                node = running.pop(future)
                statuses[node] = future.result()
                if fail_fast and statuses[node].failed:
                    stopped = stopped or node


@contextmanager
def _interruptible(interrupt: Callable[[], None], pool: ThreadPoolExecutor) -> Iterator[None]:
    """End what is running when the block is left by an exception; a query may start after the first attempt."""
    try:
        yield
    except BaseException:  # whatever a handler of signals raises; it continues after that
        interrupt()
        ending = Thread(target=pool.shutdown)
        ending.start()
        while ending.is_alive():
            ending.join(_INTERRUPT_SECONDS)
            interrupt()
        raise
