"""A project that is run again after each edit, in one session: what is due, and what was done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.api.one_session import session_target
from engine.api.requests import Command, RunOptions
from engine.events import Emit, RunResults

if TYPE_CHECKING:
    from engine.api.project import Project
    from engine.api.warm_session import WarmSession
    from engine.compile import Compiled, Manifest, Node
    from engine.plan import Action, Plan


@dataclass(slots=True)
class WatchedProject:
    """The nodes of a project as they were when they ended well last.

    `done`: the nodes that ended well, as they were then, with those that they need. `failed`: ids of those that did
    not, when they ran last.
    """

    project: Project
    command: Command
    options: RunOptions
    session: WarmSession
    succeeded: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def due(self, compiled: Compiled, nodes: Sequence[str]) -> list[str]:
        """The nodes that a turn runs; needs neither Java nor locks, and writes nothing.

        Raises SetupError: the catalog cannot be read.
        """
        plan, manifest = self.project.decide(compiled, nodes), compiled.manifest
        touched = {node for node in nodes if self.succeeded.get(node) != _deciding_nodes(manifest, node)}
        due = nodes_due(manifest, plan, touched, no_cache=self.options.get("no_cache", False))
        self.failed &= set(nodes)
        for node in set(plan.actions) - set(due):
            if plan.actions[node].unchanged:
                self.succeeded[node] = _deciding_nodes(manifest, node)
                self.failed.discard(node)
        return due

    def run(self, compiled: Compiled, nodes: Sequence[str], due: Sequence[str], on_event: Emit) -> RunResults:
        """Run what is due; parameters as for `due`, errors as for `Project.build`."""
        results = self.project.execute(
            self.command, compiled, due, on_event, self.session.run, within=nodes, **self.options
        )
        for result in results.results:
            if result.status.failed:
                self.succeeded.pop(result.node, None)
                self.failed.add(result.node)
            else:
                self.succeeded[result.node] = _deciding_nodes(compiled.manifest, result.node)
                self.failed.discard(result.node)
        return results

    def warm_up(self, compiled: Compiled, nodes: Sequence[str]) -> None:
        """Have the session open for the turns to come, as they need it; parameters as for `due`.

        Raises SetupError: Java, jars or the session cannot be had.
        """
        from engine.compile import DataTest, Model
        from engine.plan.deployed.deployed_facts import is_little
        from engine.plan.deployed.read_deployed import read_deployed, read_sources
        from engine.runtime.context.run_context import jar_sets

        manifest, target = compiled.manifest, session_target(compiled, nodes)
        place = target.place(self.project.root)
        read_nodes = [node for i in nodes if isinstance(node := manifest.nodes[i], Model | DataTest)]

        def brief() -> bool:
            return is_little(read_deployed(manifest, target, place, nodes, read_sources(manifest, place, nodes)))

        self.session.open(target, self.project.target_dir, jar_sets(manifest, read_nodes), brief)


def _deciding_nodes(manifest: Manifest, node: str) -> tuple[Node, ...]:
    """A node and, of a unit test, its model and what that reads: they may be edited without being watched."""
    from engine.compile import Model, UnitTest

    test = manifest.nodes[node]
    model = manifest.nodes[test.model] if isinstance(test, UnitTest) else None
    if not isinstance(model, Model):
        return (test,)
    return (test, model, *(manifest.nodes[item.node] for item in model.inputs))


def nodes_due(manifest: Manifest, plan: Plan, touched: Iterable[str], *, no_cache: bool = False) -> list[str]:
    """Return the nodes that have work, in the order of the build, with what depends on them.

    What the plan knows to be unchanged is not due; where only a build could tell (Kafka), a node is due if it was
    edited, did not end well, or reads one that is. `touched` are not what they were when they ended well last.
    `no_cache`: due tests run although they have passed.
    """
    from engine.compile import Model

    due: set[str] = set()
    edited = set(touched)
    for node, action in plan.actions.items():
        model = manifest.nodes[node]
        if isinstance(model, Model) and _is_due(action, edited, due & set(manifest.parents(node))):
            due.add(node)
    sources = {i for node in due for i in manifest.parents(node)} - due
    for node, action in plan.actions.items():
        if isinstance(manifest.nodes[node], Model):
            continue
        below = (due | (sources - plan.actions.keys())) & _read_by_test(manifest, node)
        reruns = no_cache and bool(below or node in edited)
        if reruns or _is_due(action, edited, below):
            due.add(node)
    return [node for node in plan.actions if node in due]


def _is_due(action: Action, edited: set[str], below: set[str]) -> bool:
    if action.unchanged:
        return False
    return action.unchanged is False or bool(action.refusals or below) or action.node in edited


def _read_by_test(manifest: Manifest, node: str) -> set[str]:
    from engine.compile import DataTest, UnitTest

    test = manifest.nodes[node]
    if isinstance(test, UnitTest):
        return {test.model}
    return {test.model, *test.depends_on} if isinstance(test, DataTest) else set()
