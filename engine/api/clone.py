"""`build --clone TARGET`: what an edit changes continues from another target's tables, the rest is read there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api.requests import Selection
from engine.errors import Diagnostic, EngineError, Level, ProjectError

if TYPE_CHECKING:
    from engine.api.project import Project
    from engine.compile import Compiled, Model
    from engine.runtime.clone import Clone
    from engine.state import TableState

# Below target/: the manifest of the other target, to which models are deferred.
_FOLDER = "clone"


@dataclass(frozen=True, slots=True)
class Cloning:
    """What is built here of a selection, and where the rest is read.

    `other`: the project as the other target has it. `nodes`: ids of the models that differ from what is deployed there,
    of all that read them, and of their tests. `selection`: with which models that are not built are deferred to the
    other target.
    """

    other: Compiled
    nodes: tuple[str, ...]
    selection: Selection


def cloning_of(project: Project, compiled: Compiled, nodes: Sequence[str], target: str) -> Cloning:
    """Find what of a selection is built here, and write the manifest of the other target.

    Raises:
        UsageError: there is no such target.
        ProjectError: the project has errors with it.
        EngineError: `clone-unavailable`: no table of it can be cloned.
        StateError: `state-unreadable`.
    """
    from engine.api.project import Project
    from engine.compile.artifacts.write_artifacts import write_artifacts
    from engine.runtime.clone import target_faults

    other_project = Project(project.root, target=target, vars=project.vars, target_path=project.target_dir / _FOLDER)
    other = other_project.compile()
    if other.manifest.errors:
        raise ProjectError.from_diagnostics(other.manifest.errors)
    if clones := [*target_faults(compiled.target, other.target)]:
        raise EngineError.from_diagnostics(clones)
    write_artifacts(other.manifest, other_project.target_dir)
    selected = tuple(_nodes_to_build(compiled, other, nodes))
    return Cloning(other, selected, Selection(defer=True, defer_state=other_project.target_dir))


def clone(project: Project, compiled: Compiled, cloning: Cloning) -> tuple[Diagnostic, ...]:
    """Make the tables that are built here and not here yet over those of the other target; return a note of each.

    Raises:
        EngineError: `clone-unavailable`, `name-taken`: all that forbids it; nothing was made.
        StateError: `table-locked`, `state-unreadable`, `state-unwritable`.
        SetupError: Spark or the catalog cannot be had.
    """
    from engine.plan.actions.action import run_order
    from engine.runtime.clone import clone_models

    order = run_order(compiled.manifest, cloning.nodes)
    clones = [one for node in order if (one := _clone(compiled, cloning.other, node)) is not None]
    if clones:
        clone_models(compiled.manifest, compiled.target, project.target_dir, clones)
    return tuple(_note(one, compiled.target.name) for one in clones)


def _streams_local_table(compiled: Compiled, own: Model) -> bool:
    """Whether a model streams a table that was built here before: the other target's checkpoint is of another one."""
    from engine.compile import Model
    from engine.runtime.clone import is_begun

    read_models = [compiled.manifest.nodes[item.node] for item in own.inputs if item.stream]
    built_here = [node.id for node in read_models if isinstance(node, Model) and node.deferred_from is None]
    folders = [folder for node in built_here if (folder := _folder(compiled, node)) is not None]
    return any(not is_begun(folder) and folder.load() is not None for folder in folders)


def _note(one: Clone, target: str) -> Diagnostic:
    from engine.runtime.clone import TAG_DAYS

    own, other = one.model.relation, one.source_model.relation
    message = f"{own} is a clone of {other} and continues from its checkpoint"
    hint = f"It reads files that {other} keeps for {TAG_DAYS} days; to remove it: engine drop {own} -t {target}"
    return Diagnostic("table-cloned", message, hint, Level.NOTE, node=one.model.name)


def _nodes_to_build(compiled: Compiled, other: Compiled, nodes: Sequence[str]) -> Iterator[str]:
    from engine.compile import DataTest, Model, UnitTest

    built: set[str] = set()
    manifest, selected = compiled.manifest, set(nodes)
    for node in (node for node in manifest.order if node in selected):
        model, read_models = manifest.nodes[node], built.intersection(manifest.parents(node))
        if isinstance(model, Model) and (read_models or _differs(compiled, other, model)):
            built.add(node)
    for node in nodes:
        clones = manifest.nodes[node]
        tested = isinstance(clones, (DataTest, UnitTest)) and built.intersection(clones.depends_on)
        if node in built or tested:
            yield node


def _differs(compiled: Compiled, other: Compiled, model: Model) -> bool:
    """Whether a model is not what the other target has built, or is built here already."""
    from engine.compile.nodes.facts import read_facts
    from engine.compile.nodes.fingerprint import definition_hash
    from engine.plan.deployed.state_folder import table_state

    other_model = _folder(other, model.id)
    state = other_model.load() if other_model is not None else None
    if other_model is None or state is None or table_state(compiled.target, model).load() is not None:
        return True
    facts = read_facts(other_model.facts(state))
    return facts is None or definition_hash(facts) != definition_hash(model.facts)


def _folder(compiled: Compiled, node: str) -> TableState | None:
    """The state of a model in a target; None: it has no such model."""
    from engine.compile import Model
    from engine.plan.deployed.state_folder import table_state

    model = compiled.manifest.nodes.get(node)
    return table_state(compiled.target, model) if isinstance(model, Model) and model.in_catalog else None


def _clone(compiled: Compiled, other: Compiled, node: str) -> Clone | None:
    """The clone of a model; None: it is not a stream, it is not there, or it is here already."""
    from engine.compile import Model
    from engine.runtime.clone import Clone, is_begun

    own, other_model = compiled.manifest.nodes[node], other.manifest.nodes.get(node)
    if (
        not isinstance(own, Model)
        or not isinstance(other_model, Model)
        or not (own.streaming and other_model.streaming)
    ):
        return None
    folder, source = _folder(compiled, node), _folder(other, node)
    if folder is None or source is None or source.load() is None:
        return None
    if not is_begun(folder) and (folder.load() is not None or _streams_local_table(compiled, own)):
        return None
    return Clone(own, other_model, folder, source)
