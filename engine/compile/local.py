"""Reading and finishing models in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.compile.cache import env_digests
from engine.compile.dbt import About
from engine.compile.entries import Entry, encoded
from engine.compile.face import Face
from engine.compile.finishing import Finished, finish
from engine.compile.guarantee import guarantee
from engine.compile.inlining import Given
from engine.compile.inputs import Known
from engine.compile.macros import macros_used, read_macros
from engine.compile.reading import Read, read_model
from engine.compile.shared import Shared
from engine.project import ModelText

# A model that is read takes some 90 KB until it is finished; more than this many are read again instead.
_HELD = 1500


class Local:
    """The models of one process between reading and finishing."""

    def __init__(self, shared: Shared, texts: Mapping[str, ModelText]) -> None:
        self._shared = shared
        self._texts = texts
        self._reads: dict[str, Read] = {}
        self._given: dict[str, Given] = {}
        self._known: Known | None = None
        self._selects: Mapping[str, frozenset[str]] = {}
        self._looped: frozenset[str] = frozenset()
        self._plain = About(shared.project.name)
        self._macros = tuple(macro.name for macro in read_macros(shared.project.macros))

    def read(self, ids: Iterable[str]) -> dict[str, Face]:
        """Read some models and tell what the others must know of them."""
        faces = {}
        for i in ids:
            read = read_model(self._texts[i], self._shared)
            faces[i] = read.face
            if len(self._reads) < _HELD:
                self._reads[i] = read
        return faces

    def meet(self, known: Known, selects: Mapping[str, frozenset[str]], looped: frozenset[str]) -> None:
        """Tell what models can refer to, the columns in their texts, and which are part of a cycle."""
        self._known, self._selects, self._looped = known, selects, looped

    def finish(self, ids: Iterable[str], given: Mapping[str, Given]) -> dict[str, Entry]:
        """Finish some models; `given` is what has become known since the last call."""
        self._given.update(given)
        return {i: self._entry(i) for i in ids}

    def _about(self, done: Finished) -> About:
        promised = guarantee(done.model, done.given.unsafe)
        return About(self._shared.project.name, promised, macros_used(done.model.raw_sql, self._macros))

    def _entry(self, i: str) -> Entry:
        if self._known is None:
            raise RuntimeError("finish before meet")
        read = self._reads.pop(i, None) or read_model(self._texts[i], self._shared)
        done = finish(read, self._shared, self._known, self._selects, self._given, looped=i in self._looped)
        certain = done.repeatable
        return Entry(
            face=read.face,
            given=done.given,
            problems=done.problems,
            nodes=(encoded(done.model, self._about(done)), *(encoded(test, self._plain) for test in done.tests)),
            env=env_digests(done.env, self._shared.names.env),
            certain=certain,
            repeatable=certain and i not in self._looped and not any(p.is_error for p in done.problems),
        )
