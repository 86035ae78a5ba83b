"""Reading and finishing models in several processes at a time, forked with everything that was loaded and read.

Each keeps the trees of its share; faces, columns and entries go between them. On two cores 1,000 models take 1.4 times
as long without them (measured as the processor time of the longest chain of processes).
"""

from __future__ import annotations

import gc
import mmap
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from engine.compile.artifacts.node_json import CompiledEntry
from engine.compile.nodes.model_interface import ModelInterface
from engine.compile.pipeline.worker import LocalWorker
from engine.compile.references.resolve_references import KnownNodes
from engine.compile.templates.confined_process import STOPS, blocked_signals, process_ended_error
from engine.jinja.template_limits import NAME_BYTES, confine

# Starting the processes costs as much as compiling some thirty models.
WORTH = 150
_MOST = 8
# One request is at work and one waits for it, so that no process waits for us.
_AHEAD = 2
# Bytes of payload that fit in the pipe buffer unread; sockets buffer some 200,000.
_FITS = 32_000
_MODEL_BYTES = 256


@contextmanager
def compile_workers(local: LocalWorker, models: int) -> Iterator[LocalWorker | Workers]:
    """Who compiles so many models: this process, or several where that is worth their start."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    # A fork copies only the calling thread; elsewhere than on Linux it is not safe either.
    forks = sys.platform == "linux" and threading.active_count() == 1
    number = min(cores, models // WORTH + 1, _MOST) if forks and models >= WORTH else 1
    if number == 1:
        yield local
        return
    with ExitStack() as stack:
        yield Workers([_start_worker(local, stack) for _ in range(number)])


@dataclass(frozen=True, slots=True)
class _Worker:
    """A process, the line to it, and the pages on which it writes the model that it is at, and the file it renders."""

    process: BaseProcess
    line: Connection
    page: mmap.mmap
    rendered: mmap.mmap

    def ask(self, method: str, *arguments: Any) -> None:
        with self._alive():
            self.line.send((method, arguments))

    def receive(self) -> Any:
        with self._alive():
            succeeded, value = self.line.recv()
        if not succeeded:
            raise value
        return value

    @contextmanager
    def _alive(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError) as error:
            self.process.join()
            name = self.page[:].rstrip(b"\0").decode("utf-8", "replace").removeprefix("model.")
            raise process_ended_error(self.process.exitcode or 0, self.rendered, name or None) from error


class Workers:
    """The same as `Local`, in several processes."""

    def __init__(self, workers: Sequence[_Worker]) -> None:
        self._workers = workers
        self.number = len(workers)
        self._owners: dict[str, int] = {}
        self._open_requests = [0] * len(workers)
        self._early: deque[tuple[int, dict[str, CompiledEntry]]] = deque()

    def read(self, ids: Iterable[str]) -> dict[str, ModelInterface]:
        every = list(ids)
        number = len(self._workers)
        self._owners = {i: index % number for index, i in enumerate(every)}
        for index, worker in enumerate(self._workers):
            worker.ask("read", every[index::number])
        return self._answers()

    def meet(self, known_nodes: KnownNodes, selects: Mapping[str, frozenset[str]], looped: frozenset[str]) -> None:
        for worker in self._workers:
            worker.ask("meet", known_nodes, selects, looped)
        for worker in self._workers:
            worker.receive()

    def owner(self, i: str) -> int:
        """Who finishes a model: who has read it; else each in turn."""
        return self._owners.setdefault(i, len(self._owners) % self.number)

    @property
    def busy(self) -> bool:
        return bool(self._early) or any(self._open_requests)

    def takes(self, n: int) -> bool:
        return self._open_requests[n] < _AHEAD

    def begin(self, n: int, ids: Iterable[str], given_json: Mapping[str, bytes]) -> None:
        """Let a process finish some models, after those that it is at."""
        if sum(map(len, given_json.values())) > _FITS:
            # It reads nothing while it works: what the line does not take would wait for an answer that waits for us.
            while self._open_requests[n]:
                self._early.append((n, self._finished(n)))
        self._workers[n].ask("finish", ids, given_json)
        self._open_requests[n] += 1

    def take_result(self) -> tuple[int, dict[str, CompiledEntry]]:
        """The first that is done of what was begun: by whom, and what became of it."""
        if self._early:
            return self._early.popleft()
        lines = {self._workers[n].line: n for n, number in enumerate(self._open_requests) if number}
        line: Any = wait(list(lines))[0]
        return lines[line], self._finished(lines[line])

    def _finished(self, n: int) -> dict[str, CompiledEntry]:
        self._open_requests[n] -= 1
        entries: dict[str, CompiledEntry] = self._workers[n].receive()
        return entries

    def _answers(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for worker in self._workers:
            merged |= worker.receive()
        return merged


def _start_worker(local: LocalWorker, stack: ExitStack) -> _Worker:
    context = multiprocessing.get_context("fork")
    own_end, worker_end = context.Pipe()
    page = mmap.mmap(-1, _MODEL_BYTES)
    rendered = mmap.mmap(-1, NAME_BYTES)
    stack.callback(page.close)
    stack.callback(rendered.close)
    process = context.Process(target=_serve, args=(worker_end, own_end, local, page, rendered), daemon=True)
    with blocked_signals():
        process.start()
    worker_end.close()
    stack.callback(process.join)

    def leave(kind: type[BaseException] | None, *_: object) -> None:
        own_end.close()
        if kind is not None:
            # Nobody waits for what it is at; it has nothing to put in order.
            process.terminate()

    stack.push(leave)
    return _Worker(process, own_end, page, rendered)


def _serve(line: Connection, other: Connection, local: LocalWorker, page: mmap.mmap, rendered: mmap.mmap) -> None:
    """Answer until the other end of the line is closed; an interrupt is for the process that asks."""
    other.close()

    def begins(i: str) -> None:
        page[:] = i.encode("utf-8", "replace")[:_MODEL_BYTES].ljust(_MODEL_BYTES, b"\0")

    local.begins = begins
    confine(rendered)
    # The command's own handler of SIGTERM came with the fork.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    # What came with the fork stays; trees are garbage all at once, so that looking for it often finds little.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    while True:
        try:
            method, arguments = line.recv()
        except (EOFError, OSError):
            return
        call: Callable[..., Any] = getattr(local, method)
        try:
            result = (True, call(*arguments))
        except Exception as error:  # noqa: BLE001 - raised again in the process that asked
            error.add_note(traceback.format_exc())
            result = (False, error)
        try:
            line.send(result)
        except OSError:
            # Nobody waits for it any more.
            return
