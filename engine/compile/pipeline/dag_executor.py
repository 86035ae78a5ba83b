"""Finishing the models in the order of their references, each as soon as what it reads is finished.

Unchanged models are reused. The others go, a few at a time, to whoever has read them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.compile.artifacts.node_json import CompiledEntry, Encoded, digest
from engine.compile.nodes.model_interface import ModelInterface
from engine.compile.pipeline.compile_cache import CachedModel
from engine.compile.pipeline.worker import LocalWorker
from engine.compile.pipeline.worker_pool import Workers

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Before:
    """What may be used of an earlier compilation: `fresh` are the ids of models whose own files are as they were."""

    models: Mapping[str, CachedModel]
    fresh: frozenset[str]
    sources: Mapping[str, str]

    def hashes(self, i: str) -> tuple[str, str]:
        """Hashes of what others must know of a model or source, and of what it gives; empty if there was none."""
        if i in self.models:
            return self.models[i].hashes
        return self.sources.get(i, ""), ""


@dataclass(slots=True)
class Flow:
    """The models on their way.

    `looped` ids are in a cycle: each is finished without knowing what the others give. `sources` and `texts` are hashes
    of the sources and of the models' files, `shared` of what all models share. `nodes` are new, each with its key.
    """

    faces: Mapping[str, ModelInterface]
    looped: frozenset[str]
    before: Before
    sources: Mapping[str, str]
    texts: Mapping[str, str]
    shared: str
    models: dict[str, CachedModel] = field(default_factory=dict)
    nodes: dict[str, tuple[Encoded, str]] = field(default_factory=dict)
    _face_hashes: dict[str, str] = field(default_factory=dict)

    def run(self, workers: LocalWorker | Workers) -> None:
        self._face_hashes = {i: self._face_hash(i) for i in self.faces}
        parents = {i: self._parents(i) for i in self.faces}
        children: dict[str, list[str]] = {i: [] for i in self.faces}
        for i, some in parents.items():
            for parent in some:
                children[parent].append(i)
        missing = {i: len(some) for i, some in parents.items()}
        ready = deque(i for i, number in missing.items() if not number)
        waiting: list[deque[str]] = [deque() for _ in range(workers.number)]
        sent_nodes: list[set[str]] = [set() for _ in range(workers.number)]
        while ready or workers.busy or any(waiting):
            while ready:
                i = ready.popleft()
                if self._unchanged(i):
                    self.models[i] = self.before.models[i]
                    ready += self._released(i, children, missing)
                else:
                    waiting[workers.owner(i)].append(i)
            for n, queue in enumerate(waiting):
                while queue and workers.takes(n):
                    todo = [queue.popleft() for _ in range(max(1, min(_AT_ONCE, len(queue) // 2)))]
                    workers.begin(n, todo, self._results_read_by(todo, sent_nodes[n]))
            if workers.busy:
                n, entries = workers.take_result()
                sent_nodes[n].update(entries)
                for i, entry in entries.items():
                    self._take(i, entry)
                    ready += self._released(i, children, missing)

    def _parents(self, i: str) -> tuple[str, ...]:
        if i in self.looped:
            return ()
        return tuple(r for r in self.faces[i].reads if r in self.faces)

    @staticmethod
    def _released(i: str, children: Mapping[str, list[str]], missing: dict[str, int]) -> list[str]:
        """The models that waited for nothing else."""
        for child in children[i]:
            missing[child] -= 1
        return [child for child in children[i] if not missing[child]]

    def _unchanged(self, i: str) -> bool:
        if i not in self.before.fresh or i in self.looped:
            return False
        cached = self.before.models[i]
        if any(self._hashes(m) != self.before.hashes(m) for m in cached.reads):
            return False
        return all(self._hashes(m)[0] == self.before.hashes(m)[0] for m in cached.mentions)

    def _hashes(self, i: str) -> tuple[str, str]:
        if i in self.models:
            return self.models[i].hashes
        return self._face_hashes.get(i) or self.sources.get(i, ""), ""

    def _face_hash(self, i: str) -> str:
        if i in self.before.fresh:
            return self.before.models[i].hashes[0]
        face = self.faces[i]
        return digest([face.relation, face.kind, face.rewritten, face.selects])

    def _results_read_by(self, ids: Iterable[str], sent_nodes: set[str]) -> dict[str, bytes]:
        """The results of what some models read, without those that were sent before."""
        needed: dict[str, None] = {}
        for i in ids:
            for read in self._parents(i):
                needed[read] = None
                if self.faces[read].is_inlined:
                    needed |= dict.fromkeys(self.models[read].reads)
        new = [i for i in needed if i in self.models and i not in sent_nodes]
        sent_nodes.update(new)
        return {i: bytes(self.models[i].given) for i in new}

    def _take(self, i: str, entry: CompiledEntry) -> None:
        hashes = [self._hashes(m) for m in (*entry.reads, *entry.mentions)]
        for node in entry.nodes:
            self.nodes[node.id] = node, digest([self.shared, node.json, node.record, hashes])
        self.models[i] = CachedModel(
            face=self.faces[i],
            given=entry.given,
            problems=entry.problems,
            nodes=tuple(node.id for node in entry.nodes),
            reads=entry.reads,
            mentions=entry.mentions,
            env=entry.env,
            certain=entry.certain,
            repeatable=entry.repeatable,
            text=self.texts[i],
            hashes=(self._face_hashes[i], digest(entry.given)),
        )
