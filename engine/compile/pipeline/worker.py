"""Reading and finishing models in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from engine.compile.artifacts.dbt_manifest import About
from engine.compile.artifacts.node_json import CompiledEntry, encoded, to_json
from engine.compile.declarations.compile_context import CompileContext
from engine.compile.nodes.column_facts import InputColumns
from engine.compile.nodes.guarantee import guarantee, unsafe_source
from engine.compile.nodes.macro_docs import macros_used, read_macros
from engine.compile.nodes.model_interface import ModelInterface
from engine.compile.output.infer_columns import source_columns
from engine.compile.pipeline.analyze_model import Finished, finish_model
from engine.compile.pipeline.compile_cache import env_digests
from engine.compile.pipeline.parse_model import Read, read_model
from engine.compile.references.ephemeral import GivenNode
from engine.compile.references.resolve_references import KnownNodes
from engine.errors import Location, ProjectError
from engine.project import ModelText

# A model that is read takes some 90 KB until it is finished; more than this many are read again instead.
_HELD = 1500


class LocalWorker:
    """The models of one process between reading and finishing."""

    number = 1

    def __init__(self, shared: CompileContext, texts: Mapping[str, ModelText]) -> None:
        self._shared = shared
        self._texts = texts
        self._reads: dict[str, Read] = {}
        self._given_nodes = {
            i: GivenNode(source_columns(source), unsafe=unsafe_source(source)) for i, source in shared.sources.items()
        }
        self._known_nodes: KnownNodes | None = None
        self._selects: Mapping[str, frozenset[str]] = {}
        self._looped: frozenset[str] = frozenset()
        self._without_guarantee = About(shared.project.name)
        self._macros = tuple(macro.name for macro in read_macros(shared.project.macros))
        self._results: deque[dict[str, CompiledEntry]] = deque()
        # Told of each model that is begun.
        self.begins: Callable[[str], None] = lambda _: None

    def read(self, ids: Iterable[str]) -> dict[str, ModelInterface]:
        faces = {}
        for i in ids:
            with self._blame_model(i):
                read = read_model(self._texts[i], self._shared)
            faces[i] = read.face
            if len(self._reads) < _HELD:
                self._reads[i] = read
        return faces

    def meet(self, known_nodes: KnownNodes, selects: Mapping[str, frozenset[str]], looped: frozenset[str]) -> None:
        """Tell what models can refer to, the columns in their texts, and which are part of a cycle."""
        self._known_nodes, self._selects, self._looped = known_nodes, selects, looped

    @staticmethod
    def owner(_: str) -> int:
        return 0

    @property
    def busy(self) -> bool:
        return bool(self._results)

    def takes(self, _: int) -> bool:
        return not self._results

    def begin(self, _: int, ids: Iterable[str], given_json: Mapping[str, bytes]) -> None:
        self._results.append(self.finish(ids, given_json))

    def take_result(self) -> tuple[int, dict[str, CompiledEntry]]:
        """What was begun: by whom, and what became of it."""
        return 0, self._results.popleft()

    def finish(self, ids: Iterable[str], given_json: Mapping[str, bytes]) -> dict[str, CompiledEntry]:
        """Finish some models; `given_json` is what other processes have found out since the last call, as JSON."""
        for i, data in given_json.items():
            if i not in self._given_nodes:
                self._given_nodes[i] = msgspec.json.decode(data, type=GivenNode)
        entries = {}
        for i in ids:
            with self._blame_model(i):
                entries[i] = self._entry(i)
        return entries

    def columns_of(self, ids: Iterable[str]) -> dict[str, InputColumns]:
        """The columns of some models and sources, as far as they are known here."""
        return {i: self._given_nodes[i].columns for i in ids if i in self._given_nodes}

    @contextmanager
    def _blame_model(self, i: str) -> Iterator[None]:
        """Name the model at which memory or depth runs out."""
        self.begins(i)
        try:
            yield
        except (MemoryError, RecursionError) as error:
            resource = "memory" if isinstance(error, MemoryError) else "depth of calls"
            message = f"compiling '{self._texts[i].name}' needs more {resource} than available"
            hint = "Make it smaller: look for a macro, CTE or ephemeral model that is expanded many times."
            place = Location(self._texts[i].file)
            raise ProjectError("model-too-large", message, hint, node=self._texts[i].name, location=place) from None

    def _about(self, finished: Finished) -> About:
        promised = guarantee(finished.model, finished.given_node.unsafe)
        return About(self._shared.project.name, promised, macros_used(finished.model.raw_sql, self._macros))

    def _needed(self, face: ModelInterface) -> dict[str, GivenNode]:
        """What a model needs of others: what it reads gives, and what ephemeral models among that read."""
        if face.id in self._looped:
            return {}
        direct = {i: self._given_nodes[i] for i in face.reads if i in self._given_nodes}
        inlined = [given_node.inlined for given_node in direct.values() if given_node.inlined is not None]
        through = {item.node for one in inlined for item in one.inputs}
        return direct | {i: self._given_nodes[i] for i in through if i in self._given_nodes}

    def _entry(self, i: str) -> CompiledEntry:
        if self._known_nodes is None:
            raise RuntimeError("finish before meet")
        read = self._reads.pop(i, None) or read_model(self._texts[i], self._shared)
        needed = self._needed(read.face)
        finished = finish_model(read, self._shared, self._known_nodes, self._selects, needed, looped=i in self._looped)
        self._given_nodes[i] = finished.given_node
        certain = finished.repeatable
        reads = dict.fromkeys((*read.face.reads, *(item.node for item in finished.model.inputs)))
        tested = dict.fromkeys(name for test in finished.tests for name in test.depends_on)
        return CompiledEntry(
            given=to_json(finished.given_node),
            problems=finished.problems,
            nodes=(
                encoded(finished.model, self._about(finished)),
                *(encoded(test, self._without_guarantee) for test in finished.tests),
            ),
            reads=tuple(reads),
            mentions=tuple(name for name in tested if name not in reads),
            env=env_digests(finished.env, self._shared.names.env),
            certain=certain,
            repeatable=certain and i not in self._looped and not any(p.is_error for p in finished.problems),
        )
