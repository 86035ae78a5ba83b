"""The models of a project together: what they can refer to, their order, cycles, shared tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.compile.nodes import topological_order
from engine.compile.nodes.manifest import Source
from engine.compile.nodes.model_interface import ModelInterface
from engine.compile.output.change_rows import feed_of
from engine.compile.output.output_mode import MERGED
from engine.compile.references.resolve_references import KnownNodes
from engine.errors import Diagnostic, Location
from engine.sources import source_traits


def known_names(faces: Iterable[ModelInterface], sources: Mapping[str, Source], *, sources_whole: bool) -> KnownNodes:
    """What the models can refer to."""
    every = tuple(faces)
    enabled = [face for face in every if face.enabled]
    return KnownNodes(
        relations={f.name: f.relation for f in enabled},
        kinds={f.name: f.kind for f in enabled if f.kind is not None},
        sources=sources,
        disabled=frozenset(f.name for f in every if not f.enabled),
        sources_whole=sources_whole,
        rewritten={f.name: reason for f in enabled if (reason := f.rewritten or _why_replaced(f, sources))},
    )


def _why_replaced(face: ModelInterface, sources: Mapping[str, Source]) -> str:
    """Why the rows of a model change that leaves it to its source how they are written; empty: they never do."""
    return MERGED if feed_of(sources.get(f"source.{face.merges_like}")) is not None else ""


def selected_names(faces: Iterable[ModelInterface], sources: Mapping[str, Source]) -> dict[str, frozenset[str]]:
    """The columns of models and sources, in lower case, as far as they are in the text."""
    columns = {s.name: frozenset(column.name.lower() for column in s.columns) for s in sources.values()}
    return columns | {face.name: frozenset(face.selects) for face in faces}


def own_tables(faces: Iterable[ModelInterface], sources: Mapping[str, Source]) -> Iterator[Diagnostic]:
    """Findings about sources that are tables of models: what reads one would not wait for the model."""
    written = {(f.relation.schema, f.relation.name): f for f in faces if f.in_catalog}
    for source in sources.values():
        if source.broken or not source_traits(source.spec.format).is_table:
            continue
        catalog, *names = [part.strip("`") for part in str(source.spec.settings.get("table", "")).split(".")]
        face = written.get((".".join(names[:-1]), names[-1])) if len(names) > 1 else None
        face = face if face is not None and catalog == face.relation.catalog else None
        # Without a catalog; of two parts and more, the first may be the catalog or a level of the namespace.
        face = face or (written.get((".".join([catalog, *names[:-1]]), names[-1])) if names else None)
        if face is not None:
            message = f"the source '{source.name}' is the table of the model '{face.name}' ({face.file})"
            hint = f"Remove the source, and read the model: {{{{ ref('{face.name}') }}}}."
            yield Diagnostic("source-is-model", message, hint, node=source.name, location=source.location)


def taken_files(faces: Iterable[ModelInterface], sources: Mapping[str, Source]) -> Iterable[Diagnostic]:
    """Findings about models that read one source whose files go away once they are read."""
    by_id = {face.id: face for face in faces}
    for source in sources.values():
        if "after_reading" not in source.spec.settings:
            continue
        readers = [face for face in by_id.values() if face.in_catalog
                   and _reaches(face, source.id, by_id)]  # fmt: skip
        for face in readers[1:]:
            first = readers[0]
            message = (
                f"'{face.name}' and '{first.name}' both read '{source.name}', whose files are moved or "
                "deleted after reading"
            )
            hint = (
                "The first to read a file would take it away from the other. Let one model read the source and the "
                f"others that model, or remove 'after_reading' in {source.location}."
            )
            yield Diagnostic("after-reading-shared", message, hint, node=face.name, location=Location(face.file))


def _reaches(face: ModelInterface, source: str, faces: Mapping[str, ModelInterface], depth: int = 0) -> bool:
    """Whether a model reads a source itself or through ephemeral models; a cycle is reported elsewhere."""
    through = (faces[i] for i in face.reads if i in faces and faces[i].is_inlined)
    return source in face.reads or (depth < len(faces) and any(_reaches(f, source, faces, depth + 1) for f in through))


def loops_of(faces: Mapping[str, ModelInterface]) -> list[tuple[str, ...]]:
    """The cycles of the references, by id; each model is read by the next."""
    return topological_order.cycles(_models_read(faces))


def loop_finding(loop: tuple[str, ...], place_of: Callable[[str, str], Location]) -> Diagnostic:
    """The diagnostic of a cycle; `place_of` returns where a model (by id) names another (by name)."""
    path = [node.removeprefix("model.") for node in reversed(loop)]
    message = "the model reads itself" if path[0] == path[1] else f"a cycle: {' reads '.join(path)}"
    hint = "Remove one of these references; {{ this }} reads a model's own table."
    place = place_of(loop[-1], path[1])
    return Diagnostic("ref-cycle", message, hint, node=path[0], location=place)


def _models_read(faces: Mapping[str, ModelInterface]) -> dict[str, tuple[str, ...]]:
    return {i: tuple(r for r in face.reads if r in faces) for i, face in faces.items()}
