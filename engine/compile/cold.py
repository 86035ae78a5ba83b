"""Compiling what the cache does not have: models are read, brought into order, and finished one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.compile import graph
from engine.compile.assembly import (
    known_names,
    levels,
    loop_finding,
    loops_of,
    selected_names,
    shared_tables,
    taken_files,
)
from engine.compile.cache import Kept, Now, Stored, env_digests
from engine.compile.context import Names
from engine.compile.dbt import About
from engine.compile.entries import digest, encoded
from engine.compile.face import Face
from engine.compile.guarantee import unsafe_source
from engine.compile.inlining import Given
from engine.compile.local import Local
from engine.compile.manifest import Source
from engine.compile.reading import read_model
from engine.compile.shared import share
from engine.compile.target import Target
from engine.compile.typed import source_columns
from engine.compile.values import Values
from engine.compile.workers import Workers, crew
from engine.errors import Diagnostic, Location
from engine.project import Project
from engine.secrets import scrub, secret_values


def compile_models(
    project: Project,
    target: Target,
    names: Names,
    values: Values,
    found: list[Diagnostic],
    before: Stored,
    now: Now,
) -> Stored:
    """Compile what has changed since an earlier compilation.

    Args:
        project: what the files say.
        target: the chosen one.
        names: what templates may call.
        values: renders settings.
        found: what was found already.
        before: the earlier compilation, as far as it may be used.
        now: the hashes of the project.
    """
    shared = share(project, target, names, values, found)
    env = env_digests(names.used_env, names.env)
    about = About(project.name)
    sources = {i: encoded(source, about) for i, source in shared.sources.items()}
    texts = {f"model.{model.name}": model for model in project.models}
    fresh = {i: k for i in texts if (k := before.models.get(i)) and k.fresh(now.texts[i], names.env)}
    stale = len(texts) - len(fresh) if sources == before.sources else len(texts)
    with crew(Local(shared, texts), stale) as workers:
        read = workers.read([i for i in texts if i not in fresh])
        faces = {i: fresh[i].entry.face if i in fresh else read[i] for i in texts}
        known = known_names(faces.values(), shared.sources, sources_whole=project.sources_whole)
        faces = {i: face for i, face in faces.items() if face.enabled}
        loops = loops_of(faces)
        looped = frozenset(i for loop in loops for i in loop)
        workers.meet(known, selected_names(faces.values(), shared.sources), looped)
        models = _finished(faces, shared.sources, fresh, workers, looped, now)
    found += shared_tables(faces.values())
    found += taken_files(faces.values(), shared.sources)
    found += [loop_finding(loop, lambda i, name: read_model(texts[i], shared).place_of(name)) for loop in loops]
    found += [problem for kept in models.values() for problem in kept.entry.problems]
    return Stored(
        shared=now.shared,
        files=now.files,
        env=env,
        repeatable=all(kept.entry.certain for kept in models.values()),
        sources=sources,
        models={i: models[i] for i in faces},
        order=_order(models, alphabetic=bool(loops)),
        found=_sorted(found, names.env),
    )


def _finished(
    faces: Mapping[str, Face],
    sources: Mapping[str, Source],
    fresh: Mapping[str, Kept],
    workers: Local | Workers,
    looped: frozenset[str],
    now: Now,
) -> dict[str, Kept]:
    """All models, each after what it reads; those that nothing has changed for as they were."""
    new = {i: Given(source_columns(s), unsafe=unsafe_source(s)) for i, s in sources.items()}
    hashes = {i: digest(s) for i, s in sources.items()}
    hashes |= {i: digest([f.relation, f.kind, f.rewritten, f.selects]) for i, f in faces.items()}
    given: dict[str, str] = {}
    models: dict[str, Kept] = {}

    def against(i: str, mentions: Iterable[str]) -> str:
        return digest([i in looped, [[m, hashes.get(m, ""), given.get(m, "")] for m in mentions]])

    for level in levels(faces):
        todo = []
        for i in level:
            kept = fresh.get(i)
            if kept is not None and kept.against == against(i, kept.entry.mentions):
                models[i] = kept
            else:
                todo.append(i)
        for i, entry in workers.finish(todo, new).items():
            models[i] = Kept(entry, now.texts[i], against(i, entry.mentions))
        new = {i: models[i].entry.given for i in level}
        given |= {i: digest(item) for i, item in new.items()}
    return models


def _order(models: Mapping[str, Kept], *, alphabetic: bool) -> tuple[str, ...]:
    """Models and tests, each after what it depends on."""
    depends = {node.id: node.depends_on for kept in models.values() for node in kept.entry.nodes}
    parents = {i: tuple(p for p in some if p in depends) for i, some in depends.items()}
    return tuple(sorted(parents)) if alphabetic else graph.order(parents)


def _sorted(found: Iterable[Diagnostic], env: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """All findings once, errors first, in the order of the files; no secret is in them."""
    clean = found
    if secret_values(env):
        clean = (replace(d, message=scrub(d.message, env), hint=scrub(d.hint, env)) for d in found)
    return tuple(sorted(dict.fromkeys(clean), key=_sort_key))


def _sort_key(diagnostic: Diagnostic) -> tuple[bool, str, int, int, str, str]:
    place = diagnostic.location or Location("", 0, 0)
    return (not diagnostic.is_error, place.file, place.line, place.column, diagnostic.code, diagnostic.message)
